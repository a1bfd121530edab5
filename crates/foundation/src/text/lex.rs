//! From text to tokens. A token is a kind and a span; its text stays in the source.

use crate::Span;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A name or a word of the language.
    Word,
    /// A number, perhaps a malformed one.
    Number,
    /// A string with its quotes.
    Text,
    /// A string that the line ended.
    OpenText,
    /// A sign of the language.
    Sign,
    /// A comment without the end of its line.
    Comment,
    /// A character that no token begins with.
    Unknown,
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Signs of two characters; every other sign is one.
const PAIRS: [&[u8; 2]; 10] = [b"==", b"!=", b"<=", b">=", b"<<", b">>", b"&&", b"||", b"..", b"->"];
const SIGNS: &[u8] = b"{}()[],;:=<>+-*/%&|^!~.";

/// An iterator over the tokens of a text. It ends after [`Kind::End`].
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    ended: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        // Some editors begin a file with a byte order mark.
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { text, at, ended: false }
    }

    /// Goes to the end of the text; nothing follows.
    pub(super) fn stop(&mut self) {
        self.at = self.text.len();
        self.ended = true;
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.at < self.bytes().len() && test(self.peek(0)) {
            self.at += 1;
        }
    }

    fn number(&mut self) {
        let hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        self.skip_while(is_word);
        if hex {
            return;
        }
        // `1..2` is a range, and `1.x` is an error that the parser words better than the lexer could.
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip_while(is_word);
        }
        // The sign of an exponent: `1e-3`, `1.5E+7f32`.
        if matches!(self.peek(0), b'+' | b'-')
            && self.peek(1).is_ascii_digit()
            && matches!(self.bytes()[self.at - 1], b'e' | b'E')
        {
            self.at += 1;
            self.skip_while(is_word);
        }
    }

    fn string(&mut self) -> Kind {
        self.at += 1;
        loop {
            match self.bytes().get(self.at) {
                None | Some(b'\n') => return Kind::OpenText,
                Some(b'"') => {
                    self.at += 1;
                    return Kind::Text;
                }
                Some(b'\\') if !matches!(self.peek(1), b'\n' | 0) => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
        let start = self.at;
        let kind = match self.bytes().get(start) {
            None if self.ended => return None,
            None => {
                self.ended = true;
                Kind::End
            }
            Some(b'/') if self.peek(1) == b'/' => {
                self.skip_while(|b| b != b'\n');
                Kind::Comment
            }
            Some(b'"') => self.string(),
            Some(b'0'..=b'9') => {
                self.number();
                Kind::Number
            }
            Some(byte) if is_word(*byte) => {
                self.skip_while(is_word);
                Kind::Word
            }
            Some(byte) if SIGNS.contains(byte) => {
                let pair = PAIRS.iter().any(|pair| self.bytes()[start..].starts_with(*pair));
                self.at += 1 + usize::from(pair);
                Kind::Sign
            }
            Some(_) => {
                self.at += self.text[start..].chars().next().map_or(1, char::len_utf8);
                Kind::Unknown
            }
        };
        // A backslash before a multi-byte character can leave the position inside it.
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        Some(Token { kind, span: Span::new(start, self.at) })
    }
}
