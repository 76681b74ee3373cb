//! Leaves parts of a conversation out of what the model is sent. What is left out is in the transcript; a note says that it is missing.

use std::sync::Arc;

use flow::{LeftOut, Message, Origin, Part, Role, grouped};

/// What the model reads in the place of messages that are left out.
const NOTE: &str = "[Earlier messages were left out here, because the conversation has to fit your context. You cannot see them any more: \
ask the user, or use your tools again, if you need what they contained.]";

/// The start of the note in a result, and what follows the number of bytes.
const RESULT: (&str, &str) = ("[… ", " bytes of this result were left out");

/// Leaves out parts of a conversation, in order. `T` is kept with each message; that of a note is `of_note`.
///
/// # Errors
/// It has no such part: the records are damaged.
pub(crate) fn leave_out<T: Clone>(
    conversation: &mut Vec<(Arc<Message>, T)>,
    parts: &[LeftOut],
    of_note: &T,
) -> Result<(), &'static str> {
    const NO_PART: &str = "left_out";
    let at = |index: u64| usize::try_from(index).map_err(|_| NO_PART);
    for one in parts {
        match one {
            LeftOut::ToolResult { message, part, tool, head, tail, .. } => {
                let (message, _) = conversation.get_mut(at(*message)?).ok_or(NO_PART)?;
                let Some(Part::ToolResult(result)) = Arc::make_mut(message).parts.get_mut(at(*part)?) else {
                    return Err(NO_PART);
                };
                // Reminders of rules precede what the tool gave.
                let own = result.content.last_mut().ok_or(NO_PART)?;
                *own = shortened(own, tool, at(*head)?, at(*tail)?);
            }
            LeftOut::Image { message, part, .. } => {
                let (message, _) = conversation.get_mut(at(*message)?).ok_or(NO_PART)?;
                let part = Arc::make_mut(message).parts.get_mut(at(*part)?).ok_or(NO_PART)?;
                let Part::Image(image) = part else { return Err(NO_PART) };
                *part = Part::Text(format!(
                    "[An image was left out here: {}, {} bytes. Ask the user to attach it again if you need it.]",
                    image.media_type(),
                    grouped(image.bytes() as u64)
                ));
            }
            LeftOut::Messages { message, count, .. } => {
                let from = at(*message)?;
                let to = from.checked_add(at(*count)?).filter(|to| *to <= conversation.len()).ok_or(NO_PART)?;
                conversation.splice(from..to, [(Arc::new(note()), of_note.clone())]);
            }
        }
    }
    Ok(())
}

/// The note in the place of messages.
pub(super) fn note() -> Message {
    Message { hidden: true, ..Message::text(Role::User, Origin::Host, NOTE) }
}

/// Whether a message is such a note.
pub(super) fn is_note(message: &Message) -> bool {
    message.hidden && message.origin == Origin::Host && matches!(&message.parts[..], [Part::Text(text)] if text == NOTE)
}

/// What remains of the result of a tool.
pub(super) fn shortened(text: &str, tool: &str, head: usize, tail: usize) -> String {
    let (from, to) = middle(text, head, tail);
    let (start, middle, end) = (&text[..from], &text[from..to], &text[to..]);
    let again = if tool.is_empty() { "Call the tool".to_owned() } else { format!("Call `{tool}`") };
    format!(
        "{start}\n\n{}{}{}, because the conversation has to fit your context. {again} again if you need them, for a smaller part where it \
         can give one.]\n\n{end}",
        RESULT.0,
        grouped(left_out_of(middle)),
        RESULT.1
    )
}

/// The part of a text between its first `head` and its last `tail` bytes, in whole characters.
pub(super) fn middle(text: &str, head: usize, tail: usize) -> (usize, usize) {
    let from = text.floor_char_boundary(head);
    (from, text.ceil_char_boundary(text.len().saturating_sub(tail)).max(from))
}

/// The bytes of a tool's own text that are missing with this part of it: those of a note count for what they stand for.
fn left_out_of(middle: &str) -> u64 {
    let mut bytes = middle.len() as u64;
    let mut rest = middle;
    while let Some(at) = rest.find(RESULT.0) {
        rest = &rest[at + RESULT.0.len()..];
        let Some((number, _)) = rest.split_once(RESULT.1) else { break };
        if let Ok(earlier) = number.replace(',', "").parse::<u64>() {
            bytes = bytes.saturating_add(earlier);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_result_keeps_its_start_and_its_end() {
        let text = format!("{}{}", "begin ".repeat(100), "end. ".repeat(100));
        let once = shortened(&text, "read_file", 60, 25);
        assert!(once.starts_with("begin begin") && once.ends_with("end. end. "), "{once}");
        assert!(
            once.contains("[… 1,015 bytes of this result were left out,") && once.contains("Call `read_file` again")
        );
        // Again, less of it: the number is that of the tool's own bytes, but for the note itself.
        let twice = shortened(&once, "read_file", 6, 5);
        assert!(twice.contains("[… 1,2") && !twice.contains("1,015"), "{twice}");
        assert_eq!(shortened("äöü", "", 1, 1).matches('ä').count(), 0, "no half characters");
    }

    #[test]
    fn damaged_records_are_reported() {
        let message = Arc::new(Message::user("hi"));
        for one in [
            LeftOut::Image { message: 0, part: 0, bytes: 1 },
            LeftOut::Image { message: 1, part: 0, bytes: 1 },
            LeftOut::ToolResult { message: 0, part: 0, tool: "t".into(), bytes: 1, head: 0, tail: 0 },
            LeftOut::Messages { message: 0, count: 2, bytes: 1 },
            LeftOut::Messages { message: u64::MAX, count: u64::MAX, bytes: 1 },
        ] {
            assert_eq!(leave_out(&mut vec![(Arc::clone(&message), ())], &[one], &()), Err("left_out"));
        }
    }
}
