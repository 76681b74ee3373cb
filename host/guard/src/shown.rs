//! Shows the text of an answer to the reader.

use flow::EventKind;
use flow::ports::EventSink;

use crate::attempt::Answer;

/// Shows the next text of an answer; nothing where it is empty.
pub(crate) fn shown(events: &(impl EventSink + ?Sized), answer: &mut Answer, text: String) {
    if !text.is_empty() {
        show(events, answer, text, false);
    }
}

/// Shows the last text of an answer that is complete, which can be empty. Of an answer without any text nothing is shown.
pub(crate) fn shown_last(events: &(impl EventSink + ?Sized), answer: &mut Answer, text: String) {
    if !text.is_empty() || !answer.shown.is_empty() {
        show(events, answer, text, true);
    }
}

fn show(events: &(impl EventSink + ?Sized), answer: &mut Answer, text: String, is_final: bool) {
    answer.shown.push_str(&text);
    let index = answer.pieces;
    answer.pieces += 1;
    events.emit(EventKind::CognitionOutDelta { text, index, is_final });
}
