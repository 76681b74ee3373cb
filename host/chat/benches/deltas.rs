//! What a delta costs in the chat primitives: at the start and at the end of a long answer, next to a list of strings that is rebuilt.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use flow::{Event, EventKind, RunPosition};
use tidegate_chat::{ChatOptions, ChatSession, LogOptions, MessageLog, RenderMode, StreamingText};

/// Deltas of one answer.
const DELTAS: u64 = 100_000;
/// Messages before it.
const MESSAGES: u32 = 1_000;

fn delta(seq: u64, turn: u32) -> Event {
    let kind = EventKind::CognitionOutDelta { text: "word ".into(), index: 0, is_final: false };
    Event::new(seq, 0, RunPosition { turn, step: 1, attempt: 1 }, kind)
}

/// Nanoseconds for each delta of the first and of the last tenth, and the most that one took.
fn measure(mut process: impl FnMut(&Event)) -> (f64, f64, u128) {
    for turn in 0..MESSAGES {
        process(&delta(u64::from(turn), turn));
    }
    let events: Vec<Event> = (0..DELTAS).map(|number| delta(u64::from(MESSAGES) + number, MESSAGES)).collect();
    let mut times = Vec::with_capacity(events.len());
    for event in &events {
        let begun = Instant::now();
        process(event);
        times.push(begun.elapsed().as_nanos());
    }
    let tenth = times.len() / 10;
    let mean = |times: &[u128]| times.iter().sum::<u128>() as f64 / times.len() as f64;
    let figures = (mean(&times[..tenth]), mean(&times[times.len() - tenth..]));
    times.sort_unstable();
    (figures.0, figures.1, times[times.len() * 999 / 1000])
}

fn main() {
    println!("{DELTAS} deltas of 5 bytes after {MESSAGES} messages; nanoseconds for each, the clock's own included");
    println!("{:<44} {:>9} {:>9} {:>9}", "", "first 10%", "last 10%", "p99.9");
    let print = |name: &str, (first, last, most): (f64, f64, u128)| {
        println!("{name:<44} {first:>9.0} {last:>9.0} {most:>9}");
    };
    print("the clock alone", measure(|event| _ = black_box(event)));
    let mut text = StreamingText::default();
    print("streaming text", measure(|event| _ = text.process(event)));
    let mut log = MessageLog::default();
    print("message log", measure(|event| _ = log.process(event)));
    let mut log = MessageLog::new(LogOptions::default().render_mode(RenderMode::Block));
    print("message log, block by block", measure(|event| _ = log.process(event)));
    let mut log = MessageLog::default();
    let mut kept = log.snapshot();
    print(
        "message log, and a snapshot of each",
        measure(|event| {
            _ = log.process(event);
            kept = log.snapshot();
        }),
    );
    let mut chat = ChatSession::new(ChatOptions::default());
    print("chat session", measure(|event| _ = chat.process(event)));
    let mut state = chat.snapshot();
    let mut chat = ChatSession::new(ChatOptions::default());
    print(
        "chat session, and a snapshot of each",
        measure(|event| {
            _ = chat.process(event);
            state = chat.snapshot();
        }),
    );
    // What `SessionOptions::backlog` has a session do with each event.
    let (mut chat, mut recent) = (ChatSession::new(ChatOptions::default()), VecDeque::new());
    print(
        "chat session, and the last 1,024 events",
        measure(|event| {
            _ = chat.process(event);
            recent.push_back(event.clone());
            if recent.len() > 1024 {
                recent.pop_front();
            }
        }),
    );
    black_box((kept, state, recent));
    // What a list of messages costs that is made anew for each delta, as front ends of immutable values often do.
    let mut list: Vec<String> = Vec::new();
    print(
        "a list that is rebuilt",
        measure(|event| {
            if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
                let same = event.place.turn as usize + 1 == list.len();
                let mut next = list.clone();
                if same {
                    next.last_mut().into_iter().for_each(|last| last.push_str(text));
                } else {
                    next.push(text.clone());
                }
                list = next;
            }
        }),
    );
}
