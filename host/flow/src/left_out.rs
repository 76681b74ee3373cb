//! What is left out of the conversation for the model, so that a request fits its context.

/// A part of the conversation that no request has any more. The transcript keeps it, and the model reads that it is missing.
///
/// Indexes are those of the conversation as it was when this was left out, hidden messages included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The middle of the result of a tool call.
    ToolResult {
        /// The index of its message.
        message: u64,
        /// The index of the result in the message.
        part: u64,
        /// The tool's name.
        tool: String,
        /// The bytes that are left out.
        bytes: u64,
        /// The bytes of its start that remain.
        head: u64,
        /// The bytes of its end that remain.
        tail: u64,
    },
    /// An image of the user's input.
    Image {
        /// The index of its message.
        message: u64,
        /// The index of the image in the message.
        part: u64,
        /// The bytes of its file.
        bytes: u64,
    },
    /// Whole messages: a note takes their place.
    Messages {
        /// The index of the first.
        message: u64,
        /// How many there are.
        count: u64,
        /// The bytes of their texts.
        bytes: u64,
    },
}

impl LeftOut {
    /// Its kind in one word: `tool_result`, `image` or `messages`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ToolResult { .. } => "tool_result",
            Self::Image { .. } => "image",
            Self::Messages { .. } => "messages",
        }
    }

    /// The bytes that are left out.
    pub fn bytes(&self) -> u64 {
        let (Self::ToolResult { bytes, .. } | Self::Image { bytes, .. } | Self::Messages { bytes, .. }) = self;
        *bytes
    }

    /// Everything that is left out, in words: `the middle of 3 tool results (120,000 bytes), 2 images (…)`; empty where there is nothing.
    pub fn in_words(all: &[Self]) -> String {
        let of = |kind: &str, one: &str, many: &str| {
            let these = || all.iter().filter(|one| one.kind() == kind);
            let count: u64 = these().map(|one| if let Self::Messages { count, .. } = one { *count } else { 1 }).sum();
            let bytes: u64 = these().map(Self::bytes).sum();
            (count > 0).then(|| format!("{count} {} ({} bytes)", if count == 1 { one } else { many }, grouped(bytes)))
        };
        let results = of("tool_result", "tool result", "tool results").map(|all| format!("the middle of {all}"));
        [results, of("image", "image", "images"), of("messages", "message", "messages")]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A number with a comma between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{LeftOut, grouped};

    #[test]
    fn what_is_left_out_is_counted_by_its_kind() {
        let result =
            |bytes| LeftOut::ToolResult { message: 3, part: 0, tool: "read".into(), bytes, head: 100, tail: 50 };
        let image = LeftOut::Image { message: 0, part: 1, bytes: 70 };
        let messages = LeftOut::Messages { message: 0, count: 4, bytes: 9 };
        let words = LeftOut::in_words(&[result(1_000), image, result(234_567), messages]);
        assert_eq!(words, "the middle of 2 tool results (235,567 bytes), 1 image (70 bytes), 4 messages (9 bytes)");
        assert_eq!(LeftOut::in_words(&[]), "");
        assert_eq!([0, 999, 1_000, 12_345_678].map(grouped), ["0", "999", "1,000", "12,345,678"]);
    }
}
