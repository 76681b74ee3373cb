//! When there is nothing to do: text then bypasses the stage, which no text that is shown can reveal.

use std::convert::Infallible;
use std::sync::Arc;

use flow::{Place, Segment, Tag, TagPattern, TagPlace, TextPlace, TextStream, TextUnit};

use super::{Handlers, Segments, UnitAnswer};

/// Handlers of which none is called.
struct Silent {
    units: Vec<TextUnit>,
    tags: Vec<TagPattern>,
}

impl Handlers for Silent {
    type Failure = Infallible;

    fn at(&self) -> Place {
        Place::default()
    }

    fn units(&self, stream: TextStream) -> Vec<TextUnit> {
        if stream == TextStream::Answer { self.units.clone() } else { Vec::new() }
    }

    fn tags(&self) -> Vec<TagPattern> {
        self.tags.clone()
    }

    fn closed_tags(&self) -> Vec<TagPattern> {
        Vec::new()
    }

    async fn unit(&self, _: usize, _: &str, _: TextPlace) -> Result<UnitAnswer, Infallible> {
        unreachable!("nothing is called")
    }

    async fn section(&self, _: Tag, _: TagPlace) -> Result<Segment, Infallible> {
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
    let of = |units: &[TextUnit], tags: &[TagPattern]| Arc::new(Silent { units: units.to_vec(), tags: tags.to_vec() });
    assert!(Segments::new(of(&[], &[])).is_idle());
    assert!(!Segments::new(of(&[TextUnit::Line], &[])).is_idle());
    assert!(!Segments::new(of(&[], &[TagPattern::Exact("a".into())])).is_idle());
    // Tags in reasoning are text.
    assert!(Segments::of_thinking(of(&[TextUnit::Line], &[TagPattern::Exact("a".into())])).is_idle());
}
