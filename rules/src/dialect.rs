//! The dialect of conditions: Rust's syntax, with `\w`, `\d` and `\b` of ASCII as in the files rules are written in.

use std::fmt;
use std::ops::Range;

use regex_syntax::ast::{self, AssertionKind, Ast, ClassPerlKind, ClassSetItem, ErrorKind};
use regex_syntax::hir::Hir;

/// Why a condition cannot be used, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Where, in bytes of the condition.
    pub span: Range<usize>,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PatternError {}

/// Reads a condition.
pub(crate) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let translated = translate(pattern)?;
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    parser.parse(&translated).map_err(|error| PatternError {
        message: last_line(&error.to_string()),
        help: None,
        span: 0..pattern.len(),
    })
}

/// The condition in Rust's own dialect: the same text with ASCII classes and boundaries spelled out.
pub(crate) fn translate(pattern: &str) -> Result<String, PatternError> {
    let escaped;
    let (pattern, ast) = match ast::parse::Parser::new().parse(pattern) {
        Ok(ast) => (pattern, ast),
        Err(error) => {
            // Rule files are written in a dialect where a `{` that counts nothing is itself.
            escaped = escape_braces(pattern);
            let ast = ast::parse::Parser::new().parse(&escaped).map_err(|_| refuse(&error))?;
            (escaped.as_str(), ast)
        }
    };
    let mut places = match ast::visit(&ast, Places(Vec::new())) {
        Ok(places) => places,
        Err(never) => match never {},
    };
    places.sort_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (String::with_capacity(pattern.len() + 16), 0);
    for (span, text) in places {
        out.push_str(&pattern[at..span.start]);
        out.push_str(text);
        at = span.end;
    }
    out.push_str(&pattern[at..]);
    Ok(out)
}

/// Puts a backslash before each brace that is no count (`{2}`, `{2,}`, `{2,5}`) and no part of an escape (`\\p{L}`).
fn escape_braces(pattern: &str) -> String {
    let (mut out, mut rest, mut class, mut open) = (String::new(), pattern, false, false);
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match c {
            '\\' => {
                taken += rest[1..].chars().next().map_or(0, char::len_utf8);
                open = rest[1..].starts_with(['p', 'P', 'x', 'u', 'U', 'b']) && rest[taken..].starts_with('{');
            }
            '[' => class = true,
            ']' => class = false,
            '{' if !class && !open && !counts(&rest[1..]) => out.push('\\'),
            '{' => open = true,
            '}' if !class && !open => out.push('\\'),
            '}' => open = false,
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

fn counts(after_brace: &str) -> bool {
    let Some((inside, _)) = after_brace.split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

fn refuse(error: &ast::Error) -> PatternError {
    let span = error.span().start.offset..error.span().end.offset;
    let help = match error.kind() {
        ErrorKind::UnsupportedLookAround => Some(
            "put what must also match into `all` and what must not match into `unless`; \
             the rest stays as the condition"
                .to_owned(),
        ),
        ErrorKind::UnsupportedBackreference => {
            Some("a condition cannot refer back to a group: write the repeated text out".to_owned())
        }
        ErrorKind::RepetitionMissing | ErrorKind::RepetitionCountUnclosed | ErrorKind::RepetitionCountDecimalEmpty => {
            Some("a literal `{`, `*`, `+` or `?` is written with a backslash before it".to_owned())
        }
        _ => None,
    };
    PatternError { message: error.kind().to_string(), help, span }
}

fn last_line(text: &str) -> String {
    let line = text.trim_end().rsplit('\n').next().unwrap_or(text);
    line.trim_start_matches("error: ").to_owned()
}

/// Finds what must be spelled out, with the text to put there.
struct Places(Vec<Place>);

type Place = (Range<usize>, &'static str);

impl Places {
    fn perl(&mut self, class: &ast::ClassPerl) {
        let text = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "[0-9]",
            (ClassPerlKind::Digit, true) => "[^0-9]",
            (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
            (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
            // `\s` takes in the same blanks beyond ASCII in both dialects, but for one.
            (ClassPerlKind::Space, _) => return,
        };
        self.0.push((class.span.start.offset..class.span.end.offset, text));
    }

    fn assertion(&mut self, assertion: &ast::Assertion) {
        let text = match assertion.kind {
            AssertionKind::WordBoundary => r"(?-u:\b)",
            AssertionKind::NotWordBoundary => r"(?-u:\B)",
            AssertionKind::WordBoundaryStart | AssertionKind::WordBoundaryStartAngle => r"(?-u:\b{start})",
            AssertionKind::WordBoundaryEnd | AssertionKind::WordBoundaryEndAngle => r"(?-u:\b{end})",
            AssertionKind::WordBoundaryStartHalf => r"(?-u:\b{start-half})",
            AssertionKind::WordBoundaryEndHalf => r"(?-u:\b{end-half})",
            AssertionKind::StartLine | AssertionKind::EndLine | AssertionKind::StartText | AssertionKind::EndText => {
                return;
            }
        };
        self.0.push((assertion.span.start.offset..assertion.span.end.offset, text));
    }
}

impl ast::Visitor for Places {
    type Output = Vec<Place>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::ClassPerl(class) => self.perl(class),
            Ast::Assertion(assertion) => self.assertion(assertion),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        if let ClassSetItem::Perl(class) = item {
            self.perl(class);
        }
        Ok(())
    }
}
