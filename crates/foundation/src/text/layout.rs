//! The one canonical layout: indentation, spaces, line ends. It works on tokens, so nothing but white space
//! can change.

use super::lex::{Kind, Lexer, Token};

const WIDTH: usize = 100;
const INDENT: usize = 4;
/// Deeper levels are indented no further, so that the text of a deeply nested program stays linear in its size.
const DEEPEST: usize = 64;

/// The text in canonical layout. The text must be syntactically right.
pub(super) fn layout(text: &str) -> String {
    let mut layout = Layout {
        text,
        out: String::with_capacity(text.len()),
        line: Vec::new(),
        level: 0,
        previous: "",
        before_previous: "",
        unary: false,
        line_open: false,
        broken: false,
        end: 0,
        line_start: 0,
    };
    for token in Lexer::new(text).filter(|t| t.kind != Kind::End) {
        layout.add(token);
    }
    layout.flush();
    layout.finish_line();
    layout.out
}

/// A token on the line that is being collected.
struct Piece<'a> {
    text: &'a str,
    space: bool,
    may_break: bool,
}

struct Layout<'a> {
    text: &'a str,
    out: String,
    /// The tokens of the statement or header that has not been written yet.
    line: Vec<Piece<'a>>,
    level: usize,
    previous: &'a str,
    before_previous: &'a str,
    /// Whether the previous token is a prefix operator.
    unary: bool,
    /// Whether `out` ends in a line to which a comment may still be added.
    line_open: bool,
    /// Whether a comment has broken the statement, so that what follows is a continuation.
    broken: bool,
    /// Where the previous token ended.
    end: usize,
    /// Where the last line of `out` begins.
    line_start: usize,
}

impl<'a> Layout<'a> {
    fn add(&mut self, token: Token) {
        let text = self.text[token.span.range()].trim_end();
        let gap = &self.text[self.end..token.span.start as usize];
        let newlines = gap.bytes().filter(|b| *b == b'\n').count();
        self.end = token.span.end as usize;
        if token.kind == Kind::Comment {
            return self.comment(text, newlines);
        }
        if self.line.is_empty() && !self.broken && newlines > 1 && text != "}" && self.previous != "{" {
            self.blank();
        }
        match text {
            "}" => {
                self.flush();
                self.level = self.level.saturating_sub(1);
                if self.previous == "{" && self.line_open {
                    self.out.push('}');
                } else {
                    self.push(text);
                    self.flush();
                }
            }
            "else" if self.line_open && self.previous == "}" => {
                self.out.push_str(" else");
                self.remember(text, false);
                return;
            }
            "{" if self.previous == "else" && self.line.is_empty() && self.line_open => {
                self.out.push_str(" {");
                self.level += 1;
            }
            "if" if self.previous == "else" && self.line.is_empty() && self.line_open => {
                // The rest of the header joins the line that `else` stands on.
                self.out.push_str(" if");
            }
            "{" => {
                self.push(text);
                self.flush();
                self.level += 1;
            }
            ";" => {
                self.push(text);
                self.flush();
            }
            _ => self.push(text),
        }
        self.remember(text, self.is_unary(text));
    }

    fn remember(&mut self, text: &'a str, unary: bool) {
        self.before_previous = self.previous;
        self.previous = text;
        self.unary = unary;
    }

    fn is_unary(&self, text: &str) -> bool {
        matches!(text, "!" | "~") || text == "-" && !self.ends_operand()
    }

    /// Whether the previous token ends an operand, so that a minus after it is binary.
    fn ends_operand(&self) -> bool {
        match self.previous {
            ")" | "]" => true,
            "if" | "in" | "return" | "else" => false,
            word => word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        }
    }

    /// Whether `text` is a bracket of `bitcast<type>`.
    fn is_type_bracket(&self, text: &str) -> bool {
        text == "<" && self.previous == "bitcast"
            || text == ">" && self.before_previous == "<" && {
                let n = self.line.len();
                n >= 3 && self.line[n - 3].text == "bitcast"
            }
    }

    fn push(&mut self, text: &'a str) {
        let first = self.line.is_empty();
        let binary = is_operator(text) && !self.is_unary(text) && !self.is_type_bracket(text);
        let after_bracket = self.previous == "<" && self.before_previous == "bitcast"
            || self.previous == ">" && text == "(" && {
                let n = self.line.len();
                n >= 4 && self.line[n - 4].text == "bitcast"
            };
        let space = !first
            && !after_bracket
            && !self.is_type_bracket(text)
            && !self.unary
            && match text {
                ")" | "]" | "," | ";" | ":" | "." | ".." => false,
                "(" => is_keyword(self.previous) || !self.ends_operand(),
                "[" => false,
                _ => true,
            }
            && !matches!(self.previous, "(" | "[" | "." | "..");
        let may_break = !first && (binary || self.previous == ",");
        self.line.push(Piece { text, space, may_break });
    }

    /// Writes the collected tokens as a line, or as several if they are too long for one.
    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let joins = self.previous_else_if();
        let mut column = if joins {
            self.out.len() - self.line_start
        } else {
            self.finish_line();
            self.indent(usize::from(self.broken))
        };
        let continuation = (self.level.min(DEEPEST) + 2) * INDENT;
        let line = std::mem::take(&mut self.line);
        let mut i = 0;
        while i < line.len() {
            // A chunk reaches to the next place where the line may break.
            let next = (i + 1..line.len()).find(|&k| line[k].may_break).unwrap_or(line.len());
            let width: usize = line[i..next].iter().map(|p| p.text.len() + usize::from(p.space)).sum();
            if line[i].may_break && column + width > WIDTH {
                self.end_line();
                self.out.extend(std::iter::repeat_n(' ', continuation));
                column = continuation;
                self.out.push_str(line[i].text);
                column += line[i].text.len();
                i += 1;
                for piece in &line[i..next] {
                    self.write(piece, &mut column);
                }
            } else {
                for (k, piece) in line[i..next].iter().enumerate() {
                    if joins && i + k == 0 {
                        self.out.push(' ');
                        column += 1;
                    }
                    self.write(piece, &mut column);
                }
            }
            i = next;
        }
        self.line_open = true;
        self.broken = false;
    }

    fn write(&mut self, piece: &Piece<'_>, column: &mut usize) {
        if piece.space {
            self.out.push(' ');
        }
        self.out.push_str(piece.text);
        *column += piece.text.len() + usize::from(piece.space);
    }

    /// Whether the collected tokens go on a line that ends in `else if`.
    fn previous_else_if(&self) -> bool {
        self.line_open && self.out.ends_with(" else if")
    }

    /// Indents a new line by the level and `further` levels; gives the column.
    fn indent(&mut self, further: usize) -> usize {
        let column = (self.level.min(DEEPEST) + further) * INDENT;
        self.out.extend(std::iter::repeat_n(' ', column));
        column
    }

    fn finish_line(&mut self) {
        if self.line_open {
            self.end_line();
            self.line_open = false;
        }
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.line_start = self.out.len();
    }

    fn blank(&mut self) {
        self.finish_line();
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.end_line();
        }
    }

    fn comment(&mut self, text: &'a str, newlines: usize) {
        let inside = !self.line.is_empty();
        self.flush();
        if newlines == 0 && self.line_open {
            self.out.push(' ');
        } else {
            if newlines > 1 && !inside && !self.broken && self.previous != "{" {
                self.blank();
            }
            self.finish_line();
            self.indent(usize::from(inside || self.broken));
        }
        self.out.push_str(text);
        self.end_line();
        self.line_open = false;
        self.broken |= inside || self.previous == "else";
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "if" | "in" | "return" | "else" | "for" | "let" | "mut" | "from" | "fn")
}

fn is_operator(text: &str) -> bool {
    matches!(
        text,
        "||" | "&&"
            | "=="
            | "!="
            | "<"
            | "<="
            | ">"
            | ">="
            | "|"
            | "^"
            | "&"
            | "<<"
            | ">>"
            | "+"
            | "-"
            | "*"
            | "/"
            | "%"
    )
}
