//! The parser: tokens and items. It recovers after an error and goes on, so that one run reports several.

use super::lex::{Kind, Lexer, Token};
use super::number::shorten;
use crate::diagnostic::{Diagnostic, Diagnostics, Problem};
use crate::source::{BufferSpans, FunctionSpans, SourceMap};
use crate::{
    BufferAccess, BufferDecl, Element, Expr, Function, Name, Program, Span, Type, WorkgroupSize, is_reserved,
};
use rustc_hash::FxHashMap;

/// After this many errors the rest of the text is not read: it is no program.
const MAX_ERRORS: usize = 100;

/// An error was reported; the caller recovers.
pub(super) struct Reported;
pub(super) type Parsed<T> = Result<T, Reported>;

/// Reads a program from text. It is not yet [validated](crate::validate()).
///
/// ```
/// let program = vyre_foundation::text::parse("program p { let x = 1; }").unwrap();
/// assert_eq!(program.name(), "p");
/// let errors = vyre_foundation::text::parse("program p { let = 1; let y 2; }").unwrap_err();
/// assert_eq!(errors.len(), 2);
/// ```
pub fn parse(text: &str) -> Result<Program, Diagnostics> {
    if text.len() >= u32::MAX as usize {
        let problem = Problem::TextTooLong(text.len() as u64);
        return Err([Diagnostic::new(problem, Span::default())].into_iter().collect());
    }
    let mut parser = Parser::new(text);
    let program = parser.program();
    match program {
        Ok(program) if parser.errors.is_empty() => Ok(program.with_source(parser.source)),
        _ => Err(parser.errors.sorted()),
    }
}

pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token that was read last, the one to read now and the one after it.
    window: [Token; 3],
    pub(super) errors: Diagnostics,
    names: FxHashMap<&'a str, Name>,
    pub(super) source: SourceMap,
    pub(super) statements: usize,
    pub(super) nesting: u32,
    /// Whether the text has ended inside a body.
    pub(super) ended_early: bool,
}

/// What the items of a program declare.
#[derive(Default)]
struct Items {
    workgroup_size: Option<WorkgroupSize>,
    subgroup_size: Option<u32>,
    buffers: Vec<BufferDecl>,
    functions: Vec<Function>,
}

// Tokens.
impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let none = Token { kind: Kind::End, span: Span::default() };
        let mut parser = Parser {
            text,
            lexer: Lexer::new(text),
            window: [none; 3],
            errors: Diagnostics::default(),
            names: FxHashMap::default(),
            source: SourceMap::default(),
            statements: 0,
            nesting: 0,
            ended_early: false,
        };
        parser.advance();
        parser.advance();
        parser
    }

    pub(super) fn token(&self) -> Token {
        self.window[1]
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.span.range()]
    }

    pub(super) fn word(&self) -> &'a str {
        let token = self.token();
        if token.kind == Kind::Word { self.text_of(token) } else { "" }
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.token().kind == Kind::Sign && self.text_of(self.token()) == sign
    }

    /// Passes over a token and gives it. At the end of the text it stays there.
    pub(super) fn advance(&mut self) -> Token {
        let [_, current, next] = self.window;
        let following = self.lexer.find(|token| token.kind != Kind::Comment).unwrap_or(next);
        self.window = [current, next, following];
        current
    }

    /// Leaves the rest of the text unread.
    pub(super) fn stop(&mut self) {
        let end = Token { kind: Kind::End, span: Span::new(self.text.len(), self.text.len()) };
        self.lexer.stop();
        self.ended_early = true;
        self.window = [self.window[0], end, end];
    }

    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn previous_span(&self) -> Span {
        self.window[0].span
    }

    pub(super) fn report(&mut self, problem: Problem, span: Span) -> Reported {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(Diagnostic::new(problem, span));
            if self.errors.len() == MAX_ERRORS {
                self.stop();
            }
        }
        Reported
    }

    /// Something familiar from other languages that stands where the parser is stuck.
    fn foreign(&self) -> Option<(Problem, Span)> {
        let [previous, current, next] = self.window;
        let [before, here, after] = self.window.map(|token| self.text_of(token));
        let touches = |a: Token, b: Token| a.span.end == b.span.start;
        let (what, instead, span) = match (before, here, after) {
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" | "<<" | ">>", "=", _)
                if touches(previous, current) =>
            {
                let instead = "write the variable again: `x = x + …;`";
                ("assignment operator such as `+=`", instead, previous.span.to(current.span))
            }
            ("/", "*", _) if touches(previous, current) => {
                ("block comment", "begin each line of it with `//`", previous.span.to(current.span))
            }
            (_, "/", "*") if touches(current, next) => {
                ("block comment", "begin each line of it with `//`", current.span.to(next.span))
            }
            ("while", ..) => {
                let instead =
                    "use a `for` with a bound, and `break` out of it: `for i in 0..1000 { if … { break; } }`";
                ("`while`", instead, previous.span)
            }
            ("loop", "{", _) => {
                let instead = "use a `for` with a bound, and `break` out of it: `for i in 0..1000 { … }`";
                ("`loop`", instead, previous.span)
            }
            ("var" | "const", ..) => {
                ("`var` and no `const`", "use `let`, or `let mut` to assign it", previous.span)
            }
            _ => return None,
        };
        Some((Problem::Foreign { what, instead }, span))
    }

    pub(super) fn unexpected(&mut self, expected: &'static str) -> Reported {
        if let Some((problem, span)) = self.foreign() {
            return self.report(problem, span);
        }
        let token = self.token();
        let text = self.text_of(token);
        match token.kind {
            Kind::Unknown => {
                let character = text.chars().next().unwrap_or('\u{fffd}');
                self.report(Problem::UnexpectedCharacter(character), token.span)
            }
            Kind::OpenText => self.report(Problem::UnterminatedString, token.span),
            Kind::End => {
                // The end itself has no text to mark: mark the last thing that stands before it.
                let found = "the end of the text".to_owned();
                let span = if self.text.is_empty() { token.span } else { self.previous_span() };
                self.report(Problem::Expected { expected, found }, span)
            }
            _ => {
                let found = format!("`{}`", shorten(text));
                self.report(Problem::Expected { expected, found }, token.span)
            }
        }
    }

    pub(super) fn expect(&mut self, sign: &str, expected: &'static str) -> Parsed<Span> {
        if self.is_sign(sign) { Ok(self.advance().span) } else { Err(self.unexpected(expected)) }
    }

    /// The bracket that closes the one at `open`; where the statement ends first, that one is blamed.
    pub(super) fn expect_closing(&mut self, open: Span, sign: &str, expected: &'static str) -> Parsed<Span> {
        let ended = ["{", "}", ";"].iter().any(|sign| self.is_sign(sign)) || self.token().kind == Kind::End;
        if ended {
            let bracket = if sign == ")" { '(' } else { '[' };
            return Err(self.report(Problem::Unclosed(bracket), open));
        }
        self.expect(sign, expected)
    }

    /// The name for a word, shared between its uses.
    pub(super) fn intern(&mut self, word: &'a str) -> Name {
        self.names.entry(word).or_insert_with(|| word.into()).clone()
    }

    /// A new name: an identifier that is not reserved.
    pub(super) fn name(&mut self, expected: &'static str) -> Parsed<(Name, Span)> {
        let token = self.token();
        if token.kind != Kind::Word {
            return Err(self.unexpected(expected));
        }
        let word = self.text_of(token);
        if is_reserved(word) {
            return Err(self.report(Problem::ReservedName(word.into()), token.span));
        }
        self.advance();
        Ok((self.intern(word), token.span))
    }

    fn count(&mut self, expected: &'static str) -> Parsed<u32> {
        let token = self.token();
        if token.kind != Kind::Number {
            return Err(self.unexpected(expected));
        }
        self.advance();
        match super::number::parse(self.text_of(token), false) {
            Ok(crate::Literal::U32(value)) => Ok(value),
            Ok(_) => {
                let found = format!("`{}`", shorten(self.text_of(token)));
                Err(self.report(Problem::Expected { expected: "a `u32`", found }, token.span))
            }
            Err(problem) => Err(self.report(problem, token.span)),
        }
    }

    pub(super) fn string(&mut self) -> Parsed<Name> {
        let token = self.token();
        if token.kind != Kind::Text {
            return Err(self.unexpected("a string"));
        }
        self.advance();
        let text = self.text_of(token);
        match unescape(&text[1..text.len() - 1]) {
            Some(value) => Ok(value.into()),
            None => Err(self.report(Problem::BadEscape, token.span)),
        }
    }
}

/// The text that a string spells between its quotes; `None` on an unknown escape.
fn unescape(body: &str) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            '"' => '"',
            '\\' => '\\',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let digits = chars.as_str().strip_prefix('{')?;
                let (digits, _) = digits.split_once('}')?;
                let value = u32::from_str_radix(digits, 16).ok()?;
                chars.nth(digits.len() + 1);
                char::from_u32(value)?
            }
            _ => return None,
        });
    }
    Some(out)
}

// Items.
impl Parser<'_> {
    fn program(&mut self) -> Parsed<Program> {
        if !self.accept_word("program") {
            return Err(self.unexpected("`program`"));
        }
        let (name, span) = self.name("a name")?;
        self.source.name = span;
        let open = self.expect("{", "`{`")?;
        let mut items = Items::default();
        let mut nodes = Vec::new();
        while !self.at_body_end() {
            if self.at_item() {
                if !nodes.is_empty() {
                    let span = self.token().span;
                    self.report(Problem::LateItem, span);
                }
                if self.item(&mut items).is_err() {
                    self.recover();
                }
            } else {
                self.statement_into(&mut nodes);
            }
        }
        self.close(open);
        if self.token().kind != Kind::End {
            let span = self.token().span;
            self.report(Problem::TrailingText, span);
        }
        Ok(Program::new(items.buffers, items.workgroup_size.unwrap_or_default(), nodes)
            .with_name(name)
            .with_functions(items.functions)
            .with_subgroup_size(items.subgroup_size.unwrap_or(Program::DEFAULT_SUBGROUP_SIZE)))
    }

    pub(super) fn at_item(&self) -> bool {
        match self.word() {
            "workgroup_size" | "buffer" | "workgroup" | "local" | "fn" => true,
            // As an expression `subgroup_size` is never followed by a number.
            "subgroup_size" => self.window[2].kind == Kind::Number,
            _ => false,
        }
    }

    fn item(&mut self, items: &mut Items) -> Parsed<()> {
        let start = self.token().span;
        match self.word() {
            "workgroup_size" => {
                self.advance();
                let mut sizes = vec![self.count("a number of invocations")?];
                while sizes.len() < 3 && self.accept(",") {
                    sizes.push(self.count("a number of invocations")?);
                }
                self.expect(";", "`;`")?;
                self.source.workgroup_size = start.to(self.previous_span());
                let size = match sizes[..] {
                    [x] => x.into(),
                    [x, y] => [x, y].into(),
                    _ => [sizes[0], sizes[1], sizes[2]].into(),
                };
                if items.workgroup_size.replace(size).is_some() {
                    self.report(Problem::RepeatedItem("workgroup_size"), start);
                }
                Ok(())
            }
            "subgroup_size" => {
                self.advance();
                let size = self.count("a number of lanes")?;
                self.expect(";", "`;`")?;
                self.source.subgroup_size = start.to(self.previous_span());
                if items.subgroup_size.replace(size).is_some() {
                    self.report(Problem::RepeatedItem("subgroup_size"), start);
                }
                Ok(())
            }
            "fn" => {
                items.functions.extend(self.function()?);
                Ok(())
            }
            _ => {
                let (decl, spans) = self.buffer(start)?;
                items.buffers.push(decl);
                self.source.buffers.push(spans);
                Ok(())
            }
        }
    }

    fn buffer(&mut self, start: Span) -> Parsed<(BufferDecl, BufferSpans)> {
        let keyword = self.advance();
        let kind = self.text_of(keyword);
        let (name, name_span) = self.name("a name")?;
        self.expect(":", "`:`")?;
        let access = match kind {
            "workgroup" => BufferAccess::Workgroup,
            "local" => BufferAccess::Local,
            _ => {
                const EXPECTED: &str = "`read`, `read_write`, `write`, `output`, `uniform` or `scratch`";
                let word = self.word();
                let access = BufferAccess::ALL.into_iter().find(|a| a.name() == word);
                let Some(access) = access.filter(|a| a.is_shared_by_grid()) else {
                    return Err(self.unexpected(EXPECTED));
                };
                self.advance();
                access
            }
        };
        let Some(element) = Element::from_name(self.word()) else {
            return Err(self.unexpected("an element type (u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32)"));
        };
        self.advance();
        self.expect("[", "`[`")?;
        let mut decl = BufferDecl::storage(name, access, element);
        if !self.is_sign("]") {
            decl = decl.with_count(self.count("a number of elements or `]`")?);
        }
        self.expect("]", "`]`")?;
        self.expect(";", "`;`")?;
        Ok((decl, BufferSpans { whole: start.to(self.previous_span()), name: name_span }))
    }

    /// A function; nothing after an error in its body, which has been passed over.
    fn function(&mut self) -> Parsed<Option<Function>> {
        self.advance();
        let (name, name_span) = self.name("a name")?;
        let mut spans = FunctionSpans { name: name_span, ..FunctionSpans::default() };
        self.expect("(", "`(`")?;
        let mut params = Vec::new();
        while !self.is_sign(")") {
            let (param, span) = self.name("a parameter or `)`")?;
            self.expect(":", "`:`")?;
            params.push((param, self.value_type()?));
            spans.params.push(span);
            if !self.is_sign(")") {
                self.expect(",", "`,` or `)`")?;
            }
        }
        self.expect(")", "`)`")?;
        self.expect("->", "`->`")?;
        let result_type = self.value_type()?;
        let open = self.expect("{", "`{`")?;
        let Ok((lets, result)) = self.function_body(&mut spans) else {
            self.skip_body();
            return Ok(None);
        };
        self.close(open);
        self.source.functions.push(spans);
        Ok(Some(Function { name, params, result_type, lets, result }))
    }

    fn function_body(&mut self, spans: &mut FunctionSpans) -> Parsed<(Vec<(Name, Expr)>, Expr)> {
        let mut lets = Vec::new();
        while self.accept_word("let") {
            let (name, span) = self.name("a name")?;
            self.expect("=", "`=`")?;
            lets.push((name, self.expr()?));
            spans.lets.push(span);
            self.expect(";", "`;`")?;
        }
        if !self.accept_word("return") {
            return Err(self.unexpected("`let` or `return`"));
        }
        let result = self.expr()?;
        self.expect(";", "`;`")?;
        Ok((lets, result))
    }

    pub(super) fn value_type(&mut self) -> Parsed<Type> {
        match Type::from_name(self.word()) {
            Some(ty) => {
                self.advance();
                Ok(ty)
            }
            None => Err(self.unexpected("a value type (bool u32 i32 u64 i64 f32)")),
        }
    }
}
