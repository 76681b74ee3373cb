//! When there is nothing to do: text then bypasses the stage, which no text that is shown can reveal.

use std::convert::Infallible;
use std::sync::Arc;

use crate::{Handlers, Pattern, Section, SectionAnswer, Segments, Unit, UnitAnswer, UnitPlace};

/// Handlers of which none is called.
struct Silent {
    units: Vec<Unit>,
    tags: Vec<Pattern>,
}

impl Handlers for Silent {
    type Failure = Infallible;

    fn units(&self, thinking: bool) -> Vec<Unit> {
        if thinking { Vec::new() } else { self.units.clone() }
    }

    fn tags(&self) -> Vec<Pattern> {
        self.tags.clone()
    }

    fn closed_tags(&self) -> Vec<Pattern> {
        Vec::new()
    }

    async fn unit(&self, _: usize, _: &str, _: UnitPlace) -> Result<UnitAnswer, Infallible> {
        unreachable!("nothing is called")
    }

    async fn section(&self, _: Section, _: Vec<String>) -> Result<SectionAnswer, Infallible> {
        unreachable!("nothing is called")
    }

    fn closed_handler(&self, _: &str) -> Option<usize> {
        None
    }

    fn skipped(&self, _: &str, _: &str) {}

    fn withhold(&self, _: usize, _: usize, _: String) -> String {
        unreachable!("nothing fails closed")
    }

    fn notice(&self, _: String) {}
}

#[test]
fn handlers_of_text_or_tags_keep_it_busy() {
    let of = |units: &[Unit], tags: &[Pattern]| Arc::new(Silent { units: units.to_vec(), tags: tags.to_vec() });
    assert!(Segments::new(of(&[], &[])).is_idle());
    assert!(!Segments::new(of(&[Unit::Line], &[])).is_idle());
    assert!(!Segments::new(of(&[], &[Pattern::Exact("a".into())])).is_idle());
    // Tags in reasoning are text.
    assert!(Segments::of_thinking(of(&[Unit::Line], &[Pattern::Exact("a".into())])).is_idle());
}

#[test]
fn tags_that_open_are_listed_once_each_time() {
    for (text, expected) in [
        ("<a><b/></b><a x='1'>", &["a", "b", "a"][..]),
        ("<a x=\"<b>\"> `<c>` <!-- <d> --> <e", &["a"]),
        ("<a x=\"<b>", &["b"]),
        ("a < b, Vec<String>, <1>", &["String"]),
        ("```\n<a>\n```\n<b>", &["b"]),
    ] {
        assert_eq!(crate::opened_tags(text), expected, "{text}");
    }
}
