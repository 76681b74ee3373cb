//! What is left out of the conversation, as records have it.

use flow::LeftOut;

use super::payload;

impl payload::ContextCompactionEnd {
    /// What is left out, in words; `None`: nothing is.
    pub fn left_out_in_words(&self) -> Option<String> {
        let parts = self.left_out.as_ref()?.iter().filter_map(|one| one.left_out().ok()).collect::<Vec<_>>();
        Some(LeftOut::in_words(&parts))
    }
}

impl payload::LeftOut {
    /// The record of a part that is left out.
    pub(super) fn of(one: &LeftOut) -> Self {
        let of = |message: u64| Self { kind: one.kind().to_owned(), message, bytes: one.bytes(), ..Self::default() };
        match one {
            LeftOut::ToolResult { message, part, tool, head, tail, .. } => Self {
                part: Some(*part),
                tool: Some(tool.clone()),
                head_bytes: Some(*head),
                tail_bytes: Some(*tail),
                ..of(*message)
            },
            LeftOut::Image { message, part, .. } => Self { part: Some(*part), ..of(*message) },
            LeftOut::Messages { message, count, .. } => Self { count: Some(*count), ..of(*message) },
        }
    }

    /// What is left out.
    ///
    /// # Errors
    /// The record does not say it, or is of a later version.
    pub fn left_out(&self) -> Result<LeftOut, &'static str> {
        let number = |number: Option<u64>| number.ok_or("left_out");
        let Self { message, bytes, .. } = *self;
        Ok(match self.kind.as_str() {
            "tool_result" => LeftOut::ToolResult {
                message,
                part: number(self.part)?,
                tool: self.tool.clone().unwrap_or_default(),
                bytes,
                head: number(self.head_bytes)?,
                tail: number(self.tail_bytes)?,
            },
            "image" => LeftOut::Image { message, part: number(self.part)?, bytes },
            "messages" => LeftOut::Messages { message, count: number(self.count)?, bytes },
            _ => return Err("left_out"),
        })
    }
}
