//! Stage: splits the model's text into segments, lets `on_tag` and `on_plain_text` change them, and returns what to show.
//!
//! The splitting is [`tidegate_segments`]; this is its connection to the extensions of a session.

use flow::{
    CallFailure, CallbackKind, CallbackOutcome, EventKind, Place, Segment, Tag, TagAnswer, TagPattern, TagPlace,
    TextAnswer, TextPlace, TextStream, TextUnit,
};
use tidegate_segments::{Handlers, UnitAnswer};

use crate::chain::{Asked, Caller};
use crate::ports::EventSink;

/// The segments of one stream of one message.
pub(crate) type Segments = tidegate_segments::Segments<Caller>;

impl Handlers for Caller {
    type Failure = CallFailure;

    fn at(&self) -> Place {
        self.hub.place()
    }

    fn units(&self, stream: TextStream) -> Vec<TextUnit> {
        self.chains.text_of(stream).iter().map(|(_, unit)| *unit).collect()
    }

    fn tags(&self) -> Vec<TagPattern> {
        self.chains.tags.iter().flat_map(|(_, patterns)| patterns.iter().cloned()).collect()
    }

    fn closed_tags(&self) -> Vec<TagPattern> {
        self.closed_tag_patterns()
    }

    async fn unit(&self, stage: usize, unit: &str, place: TextPlace) -> Result<UnitAnswer, CallFailure> {
        let (plugin, _) = self.chains.text_of(place.stream)[stage];
        let call = self.extensions.plain_text(plugin, unit, &place);
        Ok(match self.ask(plugin, CallbackKind::PlainText, call).await? {
            Asked::Answer(TextAnswer::Replace(new)) => UnitAnswer::Replace(new),
            Asked::Answer(TextAnswer::Pass | TextAnswer::Ignored(_)) | Asked::Nothing => UnitAnswer::Pass,
            Asked::Closed(why) => {
                UnitAnswer::Withheld(Caller::withhold(self, plugin, CallbackKind::PlainText, unit.len(), why))
            }
        })
    }

    async fn section(&self, mut tag: Tag, place: TagPlace) -> Result<Segment, CallFailure> {
        let handlers = self.chains.tag_handlers(&tag.name);
        for (at, &plugin) in handlers.iter().enumerate() {
            let call = self.extensions.tag(plugin, &tag, &place);
            match self.ask(plugin, CallbackKind::Tag, call).await? {
                Asked::Answer(TagAnswer::Content(content)) => tag.content = content,
                Asked::Answer(TagAnswer::Replace(text)) => {
                    self.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "replaced the section");
                    return Ok(Segment::Text(text));
                }
                Asked::Answer(TagAnswer::Keep | TagAnswer::Ignored(_)) | Asked::Nothing => {}
                Asked::Closed(why) => {
                    self.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "did not check the section");
                    let bytes = tag.open.len() + tag.content.len() + tag.close.len();
                    return Ok(Segment::Text(Caller::withhold(self, plugin, CallbackKind::Tag, bytes, why)));
                }
            }
        }
        Ok(Segment::Tag(tag))
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
        self.hub.emit(EventKind::Notice { message });
    }
}
