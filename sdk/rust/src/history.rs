//! Power `history`: the messages of the conversation. Name `history` under `[capabilities]` in `plugin.toml`, with the reason;
//! the operator grants it.

use crate::{Message, host};

/// Returns the number of messages. Hidden messages, such as reminders of stream rules, do not count.
pub fn length() -> u32 {
    host::history_length()
}

/// Returns messages from position `from` on, 0 = oldest, hidden ones left out: at most `count`, at most 256, and only as many
/// as have at most 1 MiB together. An empty list: there are none from `from` on. A message that alone is larger is returned
/// with its text cut and the attribute `tidegate.cut`.
pub fn messages(from: u32, count: u32) -> Vec<Message> {
    host::history_messages(from, count)
}

/// Returns all messages from position `from` on, one after the other, asking the host for more as needed.
///
/// ```
/// use tidegate_sdk::history;
/// let words: usize = history::from(0).map(|message| message.text().split_whitespace().count()).sum();
/// assert_eq!(words, 0);
/// ```
pub fn from(from: u32) -> impl Iterator<Item = Message> {
    let mut next = from;
    std::iter::from_fn(move || {
        let page = messages(next, u32::MAX);
        next = next.saturating_add(u32::try_from(page.len()).unwrap_or(u32::MAX));
        Some(page).filter(|page| !page.is_empty())
    })
    .flatten()
}
