//! Stage: splits the model's text into segments, lets `on_tag` and `on_plain_text` change them, and returns what to show.
//!
//! The splitting is [`tidegate_segments`]; this is its connection to the extensions of a session.

use flow::{
    CallFailure, CallbackKind, CallbackOutcome, EventKind, Tag, TagAnswer, TagPattern, TagPlace, TextAnswer, TextPlace,
    TextStream, TextUnit,
};
use tidegate_segments::{Handlers, Pattern, Section, SectionAnswer, Unit, UnitAnswer, UnitPlace};

use crate::chain::{Asked, Caller};

/// The segments of one stream of one message.
pub type Segments = tidegate_segments::Segments<Caller>;

impl Handlers for Caller {
    type Failure = CallFailure;

    fn units(&self, thinking: bool) -> Vec<Unit> {
        let unit = |unit: &TextUnit| match unit {
            TextUnit::Line => Unit::Line,
            TextUnit::Paragraph => Unit::Paragraph,
            TextUnit::Whole => Unit::Whole,
        };
        self.chains.text_of(stream(thinking)).iter().map(|(_, of)| unit(of)).collect()
    }

    fn tags(&self) -> Vec<Pattern> {
        self.chains.tags.iter().flat_map(|(_, patterns)| patterns.iter().cloned().map(pattern)).collect()
    }

    fn closed_tags(&self) -> Vec<Pattern> {
        self.closed_tag_patterns().into_iter().map(pattern).collect()
    }

    async fn unit(&self, stage: usize, unit: &str, place: UnitPlace) -> Result<UnitAnswer, CallFailure> {
        let UnitPlace { thinking, number, inside } = place;
        let stream = stream(thinking);
        let (plugin, _) = self.chains.text_of(stream)[stage];
        let place = TextPlace { at: self.events.place(), stream, unit: number, inside };
        let call = self.extensions.plain_text(plugin, unit, &place);
        Ok(match self.ask(plugin, CallbackKind::PlainText, call).await? {
            Asked::Answer(TextAnswer::Replace(new)) => UnitAnswer::Replace(new),
            Asked::Answer(TextAnswer::Pass | TextAnswer::Ignored(_)) | Asked::Nothing => UnitAnswer::Pass,
            Asked::Closed(why) => {
                UnitAnswer::Withheld(Caller::withhold(self, plugin, CallbackKind::PlainText, unit.len(), why))
            }
        })
    }

    async fn section(&self, section: Section, inside: Vec<String>) -> Result<SectionAnswer, CallFailure> {
        let Section { name, attributes, open, content, close } = section;
        let mut tag = Tag { name, attributes, open, content, close };
        let place = TagPlace { at: self.events.place(), inside };
        let handlers = self.chains.tag_handlers(&tag.name);
        for (at, &plugin) in handlers.iter().enumerate() {
            let call = self.extensions.tag(plugin, &tag, &place);
            match self.ask(plugin, CallbackKind::Tag, call).await? {
                Asked::Answer(TagAnswer::Content(content)) => tag.content = content,
                Asked::Answer(TagAnswer::Replace(text)) => {
                    self.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "replaced the section");
                    return Ok(SectionAnswer::Replace(text));
                }
                Asked::Answer(TagAnswer::Keep | TagAnswer::Ignored(_)) | Asked::Nothing => {}
                Asked::Closed(why) => {
                    self.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "did not check the section");
                    let bytes = tag.open.len() + tag.content.len() + tag.close.len();
                    return Ok(SectionAnswer::Replace(Caller::withhold(self, plugin, CallbackKind::Tag, bytes, why)));
                }
            }
        }
        let Tag { name, attributes, open, content, close } = tag;
        Ok(SectionAnswer::Keep(Section { name, attributes, open, content, close }))
    }

    fn closed_handler(&self, name: &str) -> Option<usize> {
        self.closed_tag_handler(name)
    }

    fn skipped(&self, name: &str, why: &str) {
        for handler in self.chains.tag_handlers(name) {
            self.report(handler, CallbackKind::Tag, CallbackOutcome::Skipped(why.to_owned()), 0);
        }
    }

    fn withhold(&self, handler: usize, bytes: usize, why: String) -> String {
        Caller::withhold(self, handler, CallbackKind::Tag, bytes, why)
    }

    fn notice(&self, message: String) {
        self.events.emit(EventKind::Notice { message });
    }
}

fn stream(thinking: bool) -> TextStream {
    if thinking { TextStream::Thinking } else { TextStream::Answer }
}

fn pattern(pattern: TagPattern) -> Pattern {
    match pattern {
        TagPattern::Exact(name) => Pattern::Exact(name),
        TagPattern::Prefix(prefix) => Pattern::Prefix(prefix),
    }
}
