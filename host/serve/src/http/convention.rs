//! The two conventions as texts of server-sent events.

use record::Shown;
use serde::Serialize;

use crate::conventions::ag_ui::{AgUi, Run};
use crate::conventions::ui_stream::{DONE, UiStream};
use crate::conventions::{Act, Open};

/// A convention, and where its stream is.
#[derive(Debug)]
pub(super) enum Convention {
    /// The UI message stream; `None`: its turn has not begun.
    Ui(Option<UiStream>),
    AgUi(AgUi),
}

impl Convention {
    /// A UI message stream.
    pub(super) fn ui() -> Self {
        Self::Ui(None)
    }

    /// A run of AG-UI, which begins now.
    pub(super) fn ag_ui(run: Run, text: &mut String) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut events = Vec::new();
        let run = AgUi::begin(run, u64::try_from(now.as_millis()).unwrap_or(u64::MAX), &mut events);
        frames(&events, text);
        Self::AgUi(run)
    }

    /// The turn that is streamed has begun.
    pub(super) fn turn(&mut self, number: u32, text: &mut String) {
        if let Self::Ui(stream) = self {
            let mut chunks = Vec::new();
            *stream = Some(UiStream::begin(number, &mut chunks));
            frames(&chunks, text);
        }
    }

    /// What the turn shows of a line, or of the state of a chat.
    pub(super) fn take(&mut self, line: Option<&Shown>, acts: Vec<Act>, text: &mut String) {
        match self {
            Self::Ui(Some(stream)) => {
                let mut chunks = Vec::new();
                acts.into_iter().for_each(|act| stream.take(act, &mut chunks));
                frames(&chunks, text);
            }
            Self::Ui(None) => {}
            Self::AgUi(run) => {
                let mut events = Vec::new();
                if let Some(line) = line {
                    run.at(line.ts);
                }
                acts.into_iter().for_each(|act| run.take(act, &mut events));
                frames(&events, text);
            }
        }
    }

    /// Whether the stream of a turn that waits for this ends.
    pub(super) fn pauses(&self, open: &[Open]) -> bool {
        match self {
            Self::Ui(_) => UiStream::pauses(open),
            Self::AgUi(_) => !open.is_empty(),
        }
    }

    /// The stream ends where the turn waits for a person.
    pub(super) fn pause(&mut self, open: &[Open], text: &mut String) {
        match self {
            Self::Ui(stream) => {
                let mut chunks = Vec::new();
                if let Some(stream) = stream {
                    stream.pause(&mut chunks);
                }
                frames(&chunks, text);
            }
            Self::AgUi(run) => {
                let mut events = Vec::new();
                run.pause(open, &mut events);
                frames(&events, text);
            }
        }
        self.done(text);
    }

    /// The stream ends without the end of a turn.
    pub(super) fn fail(&mut self, code: &str, why: &str, text: &mut String) {
        match self {
            Self::Ui(_) => frames(&UiStream::failed(why), text),
            Self::AgUi(run) => {
                let mut events = Vec::new();
                run.fail(code, why, &mut events);
                frames(&events, text);
            }
        }
        self.done(text);
    }

    /// What follows the last event.
    pub(super) fn done(&self, text: &mut String) {
        if matches!(self, Self::Ui(_)) {
            text.push_str(&format!("data: {DONE}\n\n"));
        }
    }
}

fn frames(all: &[impl Serialize], text: &mut String) {
    for one in all {
        match serde_json::to_string(one) {
            // JSON has no line ends between its parts.
            Ok(json) => text.push_str(&format!("data: {json}\n\n")),
            Err(error) => tracing::error!("an event of a convention cannot be written: {error}"),
        }
    }
}
