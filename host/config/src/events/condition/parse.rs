//! The parser of conditions: recursive descent with one token of look-ahead, and a type for each part.

use std::ops::Range;

use super::token::{Token, error, next};
use super::{ConditionError, Node, VARIABLES, Value, VariableKind};

/// Bytes of a condition.
const MAX_BYTES: usize = 1024;
/// Parentheses and negations inside of each other.
const MAX_DEPTH: usize = 32;

/// A part of the condition with its type and place.
struct Part {
    node: Node,
    kind: VariableKind,
    span: Range<usize>,
}

struct Parser<'t> {
    text: &'t str,
    token: Token<'t>,
    /// Where the token is.
    span: Range<usize>,
    depth: usize,
}

type Parsed<T> = Result<T, ConditionError>;

pub(super) fn parse(text: &str) -> Parsed<Node> {
    if text.len() > MAX_BYTES {
        return Err(error(0..0, &format!("the condition is longer than {MAX_BYTES} bytes"), "shorten it"));
    }
    let (token, span) = next(text, 0)?;
    let mut parser = Parser { text, token, span, depth: 0 };
    let root = parser.any()?;
    let root = parser.boolean(root)?;
    if parser.token != Token::End {
        let message = format!("nothing is expected before {}", parser.token.name());
        return Err(error(parser.span, &message, "combine conditions with `and` or `or`"));
    }
    Ok(root.node)
}

impl<'t> Parser<'t> {
    /// Returns the token and reads the next one.
    fn take(&mut self) -> Parsed<(Token<'t>, Range<usize>)> {
        let (token, span) = next(self.text, self.span.end)?;
        Ok((std::mem::replace(&mut self.token, token), std::mem::replace(&mut self.span, span)))
    }

    fn any(&mut self) -> Parsed<Part> {
        self.chain("or", Self::all, Node::Or)
    }

    fn all(&mut self) -> Parsed<Part> {
        self.chain("and", Self::negation, Node::And)
    }

    fn chain(
        &mut self,
        word: &str,
        inner: fn(&mut Self) -> Parsed<Part>,
        join: fn(Box<Node>, Box<Node>) -> Node,
    ) -> Parsed<Part> {
        let mut left = inner(self)?;
        while self.token == Token::Word(word) {
            left = self.boolean(left)?;
            self.take()?;
            let right = inner(self)?;
            let right = self.boolean(right)?;
            let span = left.span.start..right.span.end;
            left = Part { node: join(left.node.into(), right.node.into()), kind: VariableKind::Bool, span };
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parsed<Part> {
        if self.token != Token::Word("not") {
            return self.comparison();
        }
        self.enter()?;
        let (_, start) = self.take()?;
        let of = self.negation()?;
        let of = self.boolean(of)?;
        self.depth -= 1;
        Ok(Part { node: Node::Not(of.node.into()), kind: VariableKind::Bool, span: start.start..of.span.end })
    }

    fn comparison(&mut self) -> Parsed<Part> {
        let left = self.operand()?;
        if self.token != Token::Equal {
            return Ok(left);
        }
        self.take()?;
        let right = self.operand()?;
        let span = left.span.start..right.span.end;
        if left.kind != right.kind {
            let message = format!("{} is never equal to {}", left.kind.noun(), right.kind.noun());
            return Err(error(span, &message, "compare two values of one type"));
        }
        let node = Node::Equal(left.node.into(), right.node.into());
        Ok(Part { node, kind: VariableKind::Bool, span })
    }

    fn operand(&mut self) -> Parsed<Part> {
        if self.token == Token::Open {
            return self.parentheses();
        }
        let literal = |value, kind| (Node::Literal(value), kind);
        let (node, kind) = match &self.token {
            Token::Word("true") => literal(Value::Bool(true), VariableKind::Bool),
            Token::Word("false") => literal(Value::Bool(false), VariableKind::Bool),
            Token::Number(number) => literal(Value::Number(*number), VariableKind::Number),
            Token::String(text) => literal(Value::String((*text).to_owned()), VariableKind::String),
            Token::Word(word) if !matches!(*word, "and" | "or" | "not") => self.variable(word)?,
            other => {
                let message = format!("a value is expected before {}", other.name());
                return Err(error(self.span.clone(), &message, "name a variable, or write a string or a number"));
            }
        };
        let (_, span) = self.take()?;
        Ok(Part { node, kind, span })
    }

    fn parentheses(&mut self) -> Parsed<Part> {
        self.enter()?;
        let (_, open) = self.take()?;
        let inner = self.any()?;
        if self.token != Token::Close {
            let message = format!("`)` is expected before {}", self.token.name());
            return Err(error(self.span.clone(), &message, "close the parenthesis"));
        }
        let (_, close) = self.take()?;
        self.depth -= 1;
        Ok(Part { span: open.start..close.end, ..inner })
    }

    fn variable(&self, word: &str) -> Parsed<(Node, VariableKind)> {
        if let Some(known) = VARIABLES.iter().find(|known| known.name == word) {
            return Ok((Node::Variable(known.name), known.kind));
        }
        let names: Vec<&str> = VARIABLES.iter().map(|known| known.name).collect();
        let message = format!("unknown variable `{word}`");
        Err(error(self.span.clone(), &message, &crate::check::suggest(word, &names, "variables")))
    }

    fn boolean(&self, part: Part) -> Parsed<Part> {
        if part.kind == VariableKind::Bool {
            return Ok(part);
        }
        let message = format!("{} alone is not a condition", part.kind.noun());
        Err(error(part.span, &message, "compare it with `==`"))
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("the condition is nested deeper than {MAX_DEPTH} levels");
        Err(error(self.span.clone(), &message, "simplify it"))
    }
}
