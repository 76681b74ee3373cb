//! Tracks, byte by byte, whether a text is inside code: a fenced block or an inline span.
//!
//! A fence opens with three or more backticks or tildes at the start of a line (up to three spaces before it) and closes
//! with at least as many of the same, alone on a line. An inline span runs from a run of backticks to the next run of
//! the same length in the same line; one that is not closed ends with its line. Nothing here looks ahead, so a text cut
//! anywhere is judged the same.

/// The state after the bytes seen so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    line: Line,
    /// The open fence: its character and length.
    fence: Option<(u8, u32)>,
    /// Length of the backtick run that opened an inline span.
    span: Option<u32>,
}

/// The position within the line, as far as fences and spans depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// At the start, after so many spaces.
    Start(u8),
    /// In a run of a fence character that began at the start.
    Fence(u8, u32),
    /// After a run that closes the open fence if only white space follows.
    Closing,
    /// In a run of backticks further on.
    Ticks(u32),
    /// Behind the first character of the line that is not a blank.
    Middle,
}

impl Code {
    pub(crate) fn new() -> Self {
        Self { line: Line::Start(0), fence: None, span: None }
    }

    /// Whether a `<` here would be code.
    pub(crate) fn is_code(&self) -> bool {
        if self.fence.is_some() {
            return true;
        }
        match self.line {
            // The run just ended (a `<` is not a backtick), so it opens or closes a span here.
            Line::Ticks(run) => self.after_ticks(run).is_some(),
            Line::Fence(b'`', run) if run < 3 => self.after_ticks(run).is_some(),
            // Three or more and then text: the fence's info string.
            Line::Fence(_, run) => run >= 3,
            _ => self.span.is_some(),
        }
    }

    /// Whether the next bytes, as long as they are none of backtick, tilde and line feed, change nothing here.
    pub(crate) fn is_settled(&self) -> bool {
        self.line == Line::Middle
    }

    /// Takes the next byte.
    pub(crate) fn step(&mut self, byte: u8) {
        if byte == b'\n' {
            self.end_line();
            return;
        }
        self.line = match (self.line, byte) {
            (Line::Start(spaces), b' ') if spaces < 3 => Line::Start(spaces + 1),
            (Line::Start(_), b'`' | b'~') => Line::Fence(byte, 1),
            (Line::Fence(mark, run), _) if mark == byte => Line::Fence(mark, run.saturating_add(1)),
            (Line::Fence(mark, run), _) => self.after_fence_run(mark, run, byte),
            (Line::Closing, b' ' | b'\t' | b'\r') => Line::Closing,
            (Line::Ticks(run), b'`') => Line::Ticks(run.saturating_add(1)),
            (Line::Ticks(run), _) => {
                self.span = self.after_ticks(run);
                Line::Middle
            }
            (_, b'`') if self.fence.is_none() => Line::Ticks(1),
            _ => Line::Middle,
        };
    }

    fn after_ticks(&self, run: u32) -> Option<u32> {
        match self.span {
            None => Some(run),
            Some(open) if open == run => None,
            open => open,
        }
    }

    fn after_fence_run(&mut self, mark: u8, run: u32, next: u8) -> Line {
        match self.fence {
            Some((open, length)) => {
                if open == mark && run >= length && matches!(next, b' ' | b'\t' | b'\r') {
                    Line::Closing
                } else {
                    Line::Middle
                }
            }
            None if run >= 3 => {
                self.fence = Some((mark, run));
                Line::Middle
            }
            None => {
                if mark == b'`' {
                    self.span = self.after_ticks(run);
                }
                if next == b'`' { Line::Ticks(1) } else { Line::Middle }
            }
        }
    }

    fn end_line(&mut self) {
        match (self.line, self.fence) {
            (Line::Closing, _) => self.fence = None,
            (Line::Fence(mark, run), Some((open, length))) if mark == open && run >= length => self.fence = None,
            (Line::Fence(mark, run), None) if run >= 3 => self.fence = Some((mark, run)),
            _ => {}
        }
        self.span = None;
        self.line = Line::Start(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks every `<` of the text: `#` where it is code, `<` where it is not.
    fn marks(text: &str) -> String {
        let mut code = Code::new();
        let mut out = String::new();
        for byte in text.bytes() {
            if byte == b'<' {
                out.push(if code.is_code() { '#' } else { '<' });
            }
            code.step(byte);
        }
        out
    }

    #[test]
    fn code_is_told_from_text() {
        for (text, expected) in [
            ("a < b", "<"),
            ("`<` <", "#<"),
            ("``<`<``<", "##<"),
            ("`<\n<", "#<"),
            ("```\n<\n```\n<", "#<"),
            ("```rust <\n<\n```\n<", "##<"),
            ("  ~~~~\n<\n~~~\n<\n~~~~  \n<", "##<"),
            ("    ```\n<", "<"),
            ("x ```<``` <", "#<"),
            ("`<` `<` <", "##<"),
            ("~<", "<"),
            ("~~~<\n<", "##"),
            ("```\r\n<\r\n```\r\n<", "#<"),
            ("```\n``` x\n<", "#"),
        ] {
            assert_eq!(marks(text), expected, "{text:?}");
        }
    }
}
