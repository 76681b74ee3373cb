//! Recorded sessions: raw wire bytes with their chunk boundaries and pauses, and what answers from them.
//!
//! # The file
//! JSON Lines, one record per line, in order, human-readable and -writable. Blank lines are ignored, an
//! unknown key is an error.
//!
//! ```text
//! {"tidegate_recording":3,"wire":"anthropic","model":"claude-sonnet-4-5"}
//! {"request":{"model":"claude-sonnet-4-5","messages":[…]},"expect":{"contains":["fix the bug"]}}
//! {"response":200,"headers":{"content-type":"text/event-stream"},"at_ms":120}
//! {"text":"event: message_start\ndata: {\"type\":\"message_start\"…}\n\n","at_ms":121}
//! {"base64":"w6Q=","at_ms":140}
//! {"end":"complete","at_ms":160}
//! {"rules":{"fired":[{"rule":"no-ai","stream":"text","action":"remind","start":6,"end":14}]},"at_ms":161}
//! ```
//!
//! - The first line: the format's version, the wire format (`anthropic`, `openai-chat`, `openai-responses`), the model.
//! - `request`: one attempt; its body as JSON (`{}` if it is not compared), without headers. Requests are answered in
//!   this order, whatever they say.   `expect` (optional) contains strings that some string of the request must
//!   contain (`contains`) and texts that none may (`absent`): a replay that deviates from the recording fails
//!   instead of sending an unrelated answer.
//! - `response`: the HTTP status and those headers that matter to the reader of an answer.
//! - `text` or `base64`: one chunk of the body, exactly as it came; `base64` where it is not UTF-8 by itself (a chunk may
//!   end inside a character).
//! - `end`: `complete` (the server ended the answer, or it was complete), `cut` (our side dropped it, as a stream rule
//!   does), `failed` with `message` and `kind`, a [`flow::FailureKind`] such as `transport` (the connection broke); versions 1 and 2
//!   have a `class` instead of the `kind`, and with a `class` the error is not classified when it is replayed. No `end` = `cut`: a
//!   killed program leaves a good recording, and a torn last line is passed over.
//! - `rules`: what stream rules did with the answer. `fired` lists the rules that fired, in order: the stream (`text`,
//!   `thinking`, or `tool` with `call` and `tool`), the action (`pass`, `remind`, `block`, `interrupt`, `stop`) and the
//!   bytes of the match in its stream; the matched text is not written. `prefix` is the text of an earlier attempt that the
//!   answer continued. The line comes after `end`. A request without it has no information about rules, which does
//!   not mean that none fired: version 1 of the format did not have it.
//! - `at_ms`: milliseconds since the request; without it, the time of the line before.
//! - `n`: the request a line belongs to, counted from 1; without it, the latest. Written where answers overlap.
//!
//! Where a replay is read beyond a `cut`, it fails: what would have come is not known.
//!
//! # Secrets
//! A recording is its owner's alone (mode 0600), and secrets are masked before they reach the disk, a byte for a byte, so
//! that chunks keep their boundaries and valid events remain valid. Two kinds are secrets:
//!
//! - What was configured: the key and the values of headers, of 6 bytes or more. Their bytes become `*`.
//! - Shapes that keys are known to have (`secrets`): prefixes of vendors, and private keys in PEM. What follows the prefix
//!   becomes `x`, `X` and `0`, so that a rule that looks for the shape finds it in a replay, too.
//!
//! They are looked for in the strings of the request; in a refusal's body; and in a stream in what its events *say*: the
//! chunks of one text are joined over all events, JSON's escapes are decoded (those of a call's arguments a second
//! time), and what is found there is masked where it is spelled. Names and types of events are never masked.
//!
//! A chunk is written when no secret can continue from it: an event that is not complete, and what may be the
//! beginning of a secret, hold back the chunks from there on, with the times at which they came. The wait ends with
//! the answer, after 64 KiB (then what is there of a configured secret, 6 bytes or more, is masked by itself), and
//! with an event of 8 MiB. A killed program loses what waited. Not found is what a model encodes otherwise (base64,
//! one letter a line), and the part of a key that nothing completes in the middle of an answer.

mod events;
mod format;
mod held;
mod read;
mod recorder;
mod replay;
mod secrets;
mod watch;
mod writer;

pub use self::format::{Expect, RecordedEnd, RecordedFire, RecordedRules, RecordingError};
pub use self::read::{RecordedAnswer, RecordingReader};
pub use self::writer::{RecordingWriter, RequestNumber};

pub(crate) use self::recorder::{Recorder, Taken};
pub(crate) use self::replay::{Replay, requests};
pub(crate) use self::secrets::LEAST_BYTES;
