//! Conditions of event types: expressions over the configuration of a session.

mod parse;
mod token;
mod variables;

use std::fmt;
use std::ops::Range;

pub use variables::{VARIABLES, Variable, VariableKind, Variables};

/// The grammar of conditions, as the reference page shows it.
pub const GRAMMAR: &str = r#"condition  = all { "or" all }
all        = negation { "and" negation }
negation   = "not" negation | comparison
comparison = operand [ "==" operand ]
operand    = variable | string | number | "true" | "false" | "(" condition ")"
string     = "'" { any character but "'" } "'" | '"' { any character but '"' } '"'
number     = [ "-" ] digits [ "." digits ]
"#;

/// A condition that was parsed: every variable is known, and both sides of each comparison have one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    root: Node,
    text: String,
}

/// What a condition consists of.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Variable(&'static str),
    Literal(Value),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Equal(Box<Node>, Box<Node>),
}

/// The value of a variable or of a part of a condition.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bool(bool),
    Number(f64),
    String(String),
}

/// Why a string is not a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConditionError {
    /// The bytes of the condition that are wrong; empty at its end where something is missing.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl std::error::Error for ConditionError {}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// It does not follow [`GRAMMAR`], names an unknown variable, compares values of two types, is no statement (such as a string
    /// alone), or is longer or nested deeper than any useful one.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        Ok(Self { root: parse::parse(text)?, text: text.to_owned() })
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is fulfilled in a session with this configuration.
    pub fn is_fulfilled(&self, variables: &Variables) -> bool {
        self.root.value(variables) == Value::Bool(true)
    }
}

impl Node {
    /// The depth is bounded by the parser.
    fn value(&self, variables: &Variables) -> Value {
        let holds = |node: &Self| node.value(variables) == Value::Bool(true);
        match self {
            Self::Variable(name) => variables.value(name),
            Self::Literal(value) => value.clone(),
            Self::Not(of) => Value::Bool(!holds(of)),
            Self::And(one, other) => Value::Bool(holds(one) && holds(other)),
            Self::Or(one, other) => Value::Bool(holds(one) || holds(other)),
            Self::Equal(one, other) => Value::Bool(one.value(variables) == other.value(variables)),
        }
    }
}
