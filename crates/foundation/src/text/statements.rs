//! The parser's statements, and where it goes on after an error.

use super::lex::Kind;
use super::parse::{Parsed, Parser, Reported};
use crate::diagnostic::Problem;
use crate::ops::MemoryOrdering;
use crate::source::NodeSpans;
use crate::validate::limits;
use crate::{Body, Expr, Name, Node, Span};

impl Parser<'_> {
    pub(super) fn at_body_end(&self) -> bool {
        self.is_sign("}") || self.token().kind == Kind::End
    }

    /// The `}` for the `{` at `open`.
    pub(super) fn close(&mut self, open: Span) {
        if !self.accept("}") {
            if self.token().kind == Kind::End {
                // One missing brace leaves all bodies around it open too.
                if !std::mem::replace(&mut self.ended_early, true) {
                    self.report(Problem::Unclosed('{'), open);
                }
            } else {
                self.unexpected("`}`");
            }
        }
    }

    /// Skips what is left of a broken statement or item: to after its `;`, or to before whatever begins next.
    pub(super) fn recover(&mut self) {
        let mut depth = 0u32;
        let start = self.token().span;
        loop {
            let token = self.token();
            match (token.kind, self.text_of(token)) {
                (Kind::End, _) => return,
                (Kind::Sign, "{") => depth += 1,
                // The body around the broken statement ends here; whoever opened it closes it.
                (Kind::Sign, "}") if depth == 0 => return,
                (Kind::Sign, "}") => {
                    depth -= 1;
                    if depth == 0 {
                        self.advance();
                        return;
                    }
                }
                (Kind::Sign, ";") if depth == 0 => {
                    self.advance();
                    return;
                }
                (Kind::Word, word) if depth == 0 && token.span != start && begins_statement(word) => return,
                _ => {}
            }
            self.advance();
        }
    }

    pub(super) fn statement_into(&mut self, nodes: &mut Vec<Node>) {
        let start = self.token().span;
        self.statements += 1;
        if self.statements == limits::STATEMENTS as usize + 1 {
            let span = self.token().span;
            self.report(Problem::TooManyStatements, span);
            return self.stop();
        }
        match self.statement() {
            Ok(node) => nodes.push(node),
            Err(Reported) => {
                self.recover();
                if self.token().span == start && !self.at_body_end() {
                    self.advance();
                }
            }
        }
    }

    fn body(&mut self) -> Parsed<Body> {
        let open = self.expect("{", "`{`")?;
        self.nesting += 1;
        if self.nesting > limits::NESTING {
            self.report(Problem::TooNested, open);
            self.skip_body();
            self.nesting -= 1;
            return Ok(Body::EMPTY);
        }
        let mut nodes = Vec::new();
        while !self.at_body_end() {
            self.statement_into(&mut nodes);
        }
        self.nesting -= 1;
        self.close(open);
        Ok(nodes.into())
    }

    /// Skips to after the `}` of a body whose `{` has been read.
    pub(super) fn skip_body(&mut self) {
        let mut depth = 1;
        while depth > 0 && self.token().kind != Kind::End {
            let token = self.advance();
            match (token.kind, self.text_of(token)) {
                (Kind::Sign, "{") => depth += 1,
                (Kind::Sign, "}") => depth -= 1,
                _ => {}
            }
        }
    }

    /// Reserves the number of a statement before the statements nested in it take theirs.
    fn open_node(&mut self) -> usize {
        self.source.nodes.push(NodeSpans::default());
        self.source.nodes.len() - 1
    }

    fn statement(&mut self) -> Parsed<Node> {
        let id = self.open_node();
        let start = self.token().span;
        let result = match self.word() {
            "if" => return self.if_chain(id),
            "for" => return self.for_loop(id),
            "let" => self.let_statement(id),
            "break" => self.simple(Node::Break),
            "continue" => self.simple(Node::Continue),
            "return" => self.simple(Node::Return),
            "barrier" => self.barrier(),
            "trap" => self.trap(),
            "region" => self.region(),
            _ if self.is_sign("{") => {
                self.source.nodes[id].whole = start;
                self.body().map(|body| Node::Block { body })
            }
            _ if self.at_item() => Err(self.report(Problem::LateItem, start)),
            _ => self.expr_statement(id),
        };
        let end = self.previous_span();
        let spans = &mut self.source.nodes[id];
        if spans.whole == Span::default() {
            spans.whole = start.to(end);
        }
        if spans.name == Span::default() {
            spans.name = spans.whole;
        }
        result
    }

    fn simple(&mut self, node: Node) -> Parsed<Node> {
        self.advance();
        self.expect(";", "`;`")?;
        Ok(node)
    }

    fn let_statement(&mut self, id: usize) -> Parsed<Node> {
        self.advance();
        self.source.nodes[id].mutable = self.accept_word("mut");
        let (name, span) = self.name("a name")?;
        self.source.nodes[id].name = span;
        if self.is_sign(":") {
            let (what, instead) =
                ("type on a `let`", "leave it out: the value says it, as in `let x = 1i32;`");
            let span = self.token().span;
            return Err(self.report(Problem::Foreign { what, instead }, span));
        }
        self.expect("=", "`=`")?;
        let value = self.expr()?;
        self.expect(";", "`;`")?;
        Ok(Node::Let { name, value })
    }

    fn barrier(&mut self) -> Parsed<Node> {
        self.advance();
        self.expect("(", "`(`")?;
        let ordering = match self.word() {
            "workgroup" => MemoryOrdering::SeqCst,
            "grid" => MemoryOrdering::GridSync,
            _ => return Err(self.unexpected("`workgroup` or `grid`")),
        };
        self.advance();
        self.expect(")", "`)`")?;
        self.expect(";", "`;`")?;
        Ok(Node::Barrier { ordering })
    }

    fn trap(&mut self) -> Parsed<Node> {
        self.advance();
        self.expect("(", "`(`")?;
        let tag = self.string()?;
        self.expect(",", "`,`")?;
        let value = self.expr()?;
        self.expect(")", "`)`")?;
        self.expect(";", "`;`")?;
        Ok(Node::Trap { tag, value })
    }

    fn region(&mut self) -> Parsed<Node> {
        self.advance();
        let generator = self.string()?;
        let source_region = if self.accept_word("from") { Some(self.string()?) } else { None };
        let body = self.body()?;
        Ok(Node::Region { generator, source_region, body })
    }

    /// A store, an assignment or an expression for its effect: what follows the expression tells.
    fn expr_statement(&mut self, id: usize) -> Parsed<Node> {
        let start = self.token().span;
        let named = !self.word().is_empty();
        let expr = self.expr()?;
        if !self.is_sign("=") || !named {
            self.expect(";", "`;` or an operator")?;
            return Ok(Node::Eval { expr });
        }
        let name_span = |name: &Name| Span::new(start.start as usize, start.start as usize + name.len());
        let node = match expr {
            Expr::Var(name) => {
                self.source.nodes[id].name = name_span(&name);
                self.source.exprs.pop();
                self.advance();
                Node::Assign { name, value: self.expr()? }
            }
            Expr::Load { buffer, index } => {
                self.source.nodes[id].name = name_span(&buffer);
                self.source.exprs.pop();
                self.advance();
                Node::Store { buffer, index: index.into_expr(), value: self.expr()? }
            }
            _ => return Err(self.unexpected("`;`")),
        };
        self.expect(";", "`;` or an operator")?;
        Ok(node)
    }

    /// The condition or bounds before a body. After an error there, the body is still read for its own errors.
    fn header<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let parsed = parse(self);
        if parsed.is_err() {
            while !(self.is_sign("{") || self.is_sign(";") || self.at_body_end()) {
                self.advance();
            }
        }
        parsed
    }

    fn if_chain(&mut self, first: usize) -> Parsed<Node> {
        // The links of an `else if` chain, folded together from the last one.
        let mut links = Vec::new();
        let mut failed = false;
        let mut id = first;
        let mut last = Body::EMPTY;
        loop {
            let start = self.advance().span;
            let cond = self.header(Self::expr);
            let whole = start.to(self.previous_span());
            self.source.nodes[id] = NodeSpans { whole, name: whole, mutable: false };
            let then = self.body();
            match (cond, then) {
                (Ok(cond), Ok(then)) => links.push((cond, then)),
                (_, Err(Reported)) => return Err(Reported),
                _ => failed = true,
            }
            if !self.accept_word("else") {
                break;
            }
            if self.word() == "if" {
                self.statements += 1;
                if self.statements > limits::STATEMENTS as usize {
                    let span = self.token().span;
                    return Err(self.report(Problem::TooManyStatements, span));
                }
                id = self.open_node();
            } else {
                last = self.body()?;
                break;
            }
        }
        if failed {
            return Ok(Node::Block { body: Body::EMPTY });
        }
        let fold = |otherwise: Body, (cond, then)| Body::from([Node::If { cond, then, otherwise }]);
        let chain = links.into_iter().rev().fold(last, fold);
        Ok(chain[0].clone())
    }

    fn for_loop(&mut self, id: usize) -> Parsed<Node> {
        let start = self.advance().span;
        let header = self.header(|parser| {
            let (var, span) = parser.name("a name")?;
            parser.source.nodes[id].name = span;
            if !parser.accept_word("in") {
                return Err(parser.unexpected("`in`"));
            }
            let from = parser.expr()?;
            parser.expect("..", "`..`")?;
            let to = parser.expr()?;
            Ok((var, from, to))
        });
        self.source.nodes[id].whole = start.to(self.previous_span());
        let body = self.body()?;
        match header {
            Ok((var, from, to)) => Ok(Node::Loop { var, from, to, body }),
            Err(Reported) => Ok(Node::Block { body }),
        }
    }
}

fn begins_statement(word: &str) -> bool {
    matches!(
        word,
        "let"
            | "if"
            | "for"
            | "break"
            | "continue"
            | "return"
            | "barrier"
            | "trap"
            | "region"
            | "buffer"
            | "fn"
    )
}
