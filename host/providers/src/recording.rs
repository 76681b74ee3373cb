//! Recorded sessions: raw wire bytes with their chunk boundaries and pauses, and what answers from them.
//!
//! # The file
//! JSON Lines, one thing a line, in order, so that people can read, diff and write it. Blank lines are passed over, an
//! unknown key is an error.
//!
//! ```text
//! {"tidegate_recording":1,"wire":"anthropic","model":"claude-sonnet-4-5"}
//! {"request":{"model":"claude-sonnet-4-5","messages":[…]},"expect":{"contains":["fix the bug"]}}
//! {"response":200,"headers":{"content-type":"text/event-stream"},"at_ms":120}
//! {"text":"event: message_start\ndata: {\"type\":\"message_start\"…}\n\n","at_ms":121}
//! {"base64":"w6Q=","at_ms":140}
//! {"end":"complete","at_ms":160}
//! ```
//!
//! - The first line: the format's version, the wire format (`anthropic`, `openai-chat`, `openai-responses`), the model.
//! - `request`: one attempt; its body as JSON (`{}` where nobody will compare it), without headers. Requests are answered in this order, whatever they say.
//!   `expect` (optional) holds texts that some string of the request must contain (`contains`) and texts that none may
//!   (`absent`): a replay that has left the recorded path says so instead of answering something senseless.
//! - `response`: the HTTP status and those headers that matter to the reader of an answer.
//! - `text` or `base64`: one chunk of the body, exactly as it came; `base64` where it is not UTF-8 by itself (a chunk may
//!   end inside a character).
//! - `end`: `complete` (the server ended the answer, or it was complete), `cut` (our side dropped it, as a stream rule
//!   does), `failed` with `class` and `message` (the connection broke). No `end` = `cut`: a killed program leaves a good
//!   recording, and a torn last line is passed over.
//! - `at_ms`: milliseconds since the request; without it, the time of the line before.
//! - `n`: the request a line belongs to, counted from 1; without it, the latest. Written where answers overlap.
//!
//! Where a replay is read beyond a `cut`, it fails: what would have come is not known.

mod format;
mod read;
mod recorder;
mod replay;
mod writer;

pub use self::format::{End, Expect, RecordingError};
pub use self::read::{RecordedAnswer, RecordingReader};
pub use self::writer::{RecordingWriter, RequestNumber};

pub(crate) use self::recorder::{Recorder, Taken};
pub(crate) use self::replay::{Replay, requests};
