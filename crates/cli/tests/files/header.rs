//! The header of a test file: what is run and what is expected.

use vyre_cli::RunArgs;

/// What a test file asks for.
#[derive(Default)]
pub(crate) struct Header {
    /// The codes that checking must give, in order, with positions where they are given.
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
    pub(crate) runs: Vec<Run>,
}

/// A diagnostic that is expected.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) code: String,
    /// Line and column, both from 1.
    pub(crate) at: Option<(usize, usize)>,
}

/// One `// run:` with what follows it.
pub(crate) struct Run {
    pub(crate) args: RunArgs,
    /// The line of the `// run:`.
    pub(crate) line: usize,
    /// Names and values of outputs, with their lines.
    pub(crate) outputs: Vec<(String, String, usize)>,
    pub(crate) trap: Option<(String, u32, u64)>,
    pub(crate) passes: Option<u32>,
    pub(crate) converged: Option<bool>,
    pub(crate) error: Option<String>,
}

/// A command line for `// run:` lines, with the arguments of `vyre run`.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    run: RunArgs,
}

impl Header {
    pub(crate) fn parse(text: &str) -> Result<Header, String> {
        let mut header = Header::default();
        for (i, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let Some((key, value)) = comment.trim().split_once(':') else { continue };
            let value = value.trim();
            let wrong = |what: String| format!("line {}: {what}", i + 1);
            match (key, header.runs.last_mut()) {
                ("run", _) => {
                    let args = arguments(value).map_err(wrong)?;
                    header.runs.push(Run {
                        args,
                        line: i + 1,
                        outputs: Vec::new(),
                        trap: None,
                        passes: None,
                        converged: None,
                        error: None,
                    });
                }
                ("error", Some(run)) => run.error = Some(value.to_owned()),
                ("error", None) => header.errors.push(Finding::parse(value).map_err(wrong)?),
                ("warn", _) => header.warnings.push(Finding::parse(value).map_err(wrong)?),
                ("expect", Some(run)) => {
                    let (name, value) = value.split_once('=').ok_or_else(|| wrong("NAME = VALUE".into()))?;
                    run.outputs.push((name.trim().to_owned(), value.trim().to_owned(), i + 1));
                }
                ("trap", Some(run)) => run.trap = Some(trap(value).ok_or_else(|| wrong("a trap".into()))?),
                ("passes", Some(run)) => {
                    run.passes = Some(value.parse().map_err(|_| wrong("a number of passes".into()))?);
                }
                ("converged", Some(run)) => {
                    run.converged = Some(value.parse().map_err(|_| wrong("true or false".into()))?);
                }
                ("expect" | "trap" | "passes" | "converged", None) => {
                    return Err(wrong(format!("`{key}` before any `run`")));
                }
                _ => {}
            }
        }
        Ok(header)
    }
}

impl Finding {
    fn parse(text: &str) -> Result<Finding, String> {
        let (code, at) = match text.split_once(" at ") {
            Some((code, at)) => (code, Some(at)),
            None => (text, None),
        };
        let position = |at: &str| {
            let (line, column) = at.trim().split_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?))
        };
        let at = match at {
            Some(at) => Some(position(at).ok_or_else(|| "a position LINE:COLUMN".to_owned())?),
            None => None,
        };
        Ok(Finding { code: code.trim().to_owned(), at })
    }
}

/// `"tag" VALUE INVOCATION`
fn trap(text: &str) -> Option<(String, u32, u64)> {
    let (tag, rest) = text.strip_prefix('"')?.rsplit_once('"')?;
    let (value, invocation) = rest.trim().split_once(' ')?;
    Some((tag.to_owned(), value.trim().parse().ok()?, invocation.trim().parse().ok()?))
}

/// The arguments of a `run` line, split as a shell does.
fn arguments(line: &str) -> Result<RunArgs, String> {
    let mut words = vec!["vyre".to_owned(), "FILE".to_owned()];
    let mut word = None::<String>;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    clap::Parser::try_parse_from(words).map(|line: Line| line.run).map_err(|error| error.to_string())
}
