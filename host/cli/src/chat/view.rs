//! Prints the messages of a chat as they grow: each delta, each tool call once when it runs and once when it has a result.
//!
//! What is printed stays on the screen, so of a message only what is new is printed; what has become void is marked as such.

use std::collections::{HashMap, HashSet};

use tidegate::chat::{Author, Block, BlockKind, ChatMessage, LogSnapshot, MessageId, Str, ToolEntry, ToolStatus};
use tidegate::event::Interrupted;

use crate::print::{result_lines, shorten};
use crate::say::count;
use crate::screen::clean::flat;
use crate::screen::wrap::{CONTINUED, text_columns, wrapped};
use crate::screen::{self, Answer, Reasoning};
use crate::style::{self, err};

/// Characters of the arguments of a call that are printed.
const ARGUMENTS: usize = 160;
/// The most messages of a session that continues that are printed.
const EARLIER: usize = 20;

/// What is printed of the messages.
#[derive(Debug)]
pub(super) struct View {
    answer: Answer,
    reasoning: Reasoning,
    /// Reasoning is printed, and not only how long it is.
    shows_reasoning: bool,
    /// The last message such that it and all before it are printed to their end.
    frontier: Option<MessageId>,
    /// What is printed of the messages after it.
    printed: HashMap<MessageId, Printed>,
    /// The call that was printed last: its result needs no name.
    last_call: Option<(MessageId, usize)>,
    /// The last message with calls that did not end, and what is printed of it: a turn that continues can run them.
    cut: Option<(MessageId, Printed)>,
    /// The calls that were approved as a question has shown them: their change is not printed again.
    asked: HashSet<Str>,
    /// What a process that ended has left of the last turn, while its conversation is printed.
    interrupted: Option<Interrupted>,
}

/// What is printed of a message.
#[derive(Debug, Default)]
struct Printed {
    /// Bytes of all its text, what is void included.
    bytes: usize,
    /// Bytes of its reasoning, or what is not printed of it and reported.
    thoughts: usize,
    /// Blocks that are marked as void.
    void: usize,
    /// Of each call.
    calls: Vec<Call>,
    is_ended: bool,
}

/// What is printed of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
enum Call {
    #[default]
    Nothing,
    Begun,
    /// Printed as cancelled. The call can be asked about or run again in another turn.
    Cut,
    Ended,
}

impl View {
    pub(super) fn new() -> Self {
        Self {
            answer: Answer::new(),
            reasoning: Reasoning::new(),
            shows_reasoning: false,
            frontier: None,
            printed: HashMap::new(),
            last_call: None,
            cut: None,
            asked: HashSet::new(),
            interrupted: None,
        }
    }

    /// A question has shown what this call does.
    pub(super) fn was_asked(&mut self, call: &Str) {
        self.asked.insert(call.clone());
    }

    /// Ends the model's line, before a line of the host.
    pub(super) fn finish(&mut self) -> std::io::Result<()> {
        self.reasoning.finish()?;
        self.answer.pause()
    }

    /// Prints the reasoning that follows, or only how long it is. Returns whether it is printed.
    pub(super) fn toggle_reasoning(&mut self) -> bool {
        self.shows_reasoning = !self.shows_reasoning;
        self.shows_reasoning
    }

    /// Draws what can still change again, because the terminal has got another size.
    pub(super) fn redraw(&mut self) -> std::io::Result<()> {
        self.answer.redraw()
    }

    /// Prints what is new. `is_idle`: nothing runs, so that no message grows any more.
    ///
    /// # Errors
    /// Standard output is gone.
    pub(super) fn update(&mut self, log: &LogSnapshot, is_idle: bool) -> std::io::Result<()> {
        self.continued(log)?;
        let is_new = |message: &ChatMessage| self.frontier.as_ref() != Some(&message.id);
        let mut messages: Vec<_> = log.messages().rev().take_while(|message| is_new(message)).collect();
        messages.reverse();
        let mut all_done = true;
        for message in &messages {
            let is_done = self.message(message, is_idle)?;
            all_done &= is_done;
            if all_done {
                let printed = self.printed.remove(&message.id);
                let is_cut = message.calls.iter().any(is_open);
                self.cut = printed.filter(|_| is_cut).map(|printed| (message.id.clone(), printed)).or(self.cut.take());
                self.frontier = Some(message.id.clone());
            }
        }
        Ok(())
    }

    /// Prints what a turn that continues does with the calls that an earlier turn has left.
    fn continued(&mut self, log: &LogSnapshot) -> std::io::Result<()> {
        let Some((id, mut printed)) = self.cut.take() else { return Ok(()) };
        let Some(message) = log.get(&id) else { return Ok(()) };
        self.calls(&message, &mut printed)?;
        self.cut = message.calls.iter().any(is_open).then_some((id, printed));
        Ok(())
    }

    /// Takes a conversation that another process has begun: its last messages are printed. `interrupted`: what that process has left of
    /// the last turn.
    pub(super) fn earlier(&mut self, log: &LogSnapshot, interrupted: Option<Interrupted>) -> std::io::Result<()> {
        let left_out = log.messages().count().saturating_sub(EARLIER);
        if left_out > 0 {
            screen::note(err(style::DIM, &format!("  {left_out} earlier messages are not shown")));
        }
        self.frontier = left_out.checked_sub(1).and_then(|last| log.messages().nth(last)).map(|last| last.id.clone());
        self.interrupted = interrupted;
        self.update(log, true)?;
        self.interrupted = None;
        Ok(())
    }

    /// Takes a conversation that is on the screen already.
    pub(super) fn known(&mut self, log: &LogSnapshot) {
        self.frontier = log.messages().next_back().map(|last| last.id.clone());
        self.cut = log.messages().rev().take(EARLIER).find(|one| one.calls.iter().any(is_open)).map(|message| {
            let state = |call: &ToolEntry| if is_open(call) { Call::Cut } else { Call::Ended };
            let calls = message.calls.iter().map(state).collect();
            (message.id.clone(), Printed { calls, ..Printed::default() })
        });
    }

    /// Prints what is new of a message; `true`: nothing follows.
    fn message(&mut self, message: &ChatMessage, is_idle: bool) -> std::io::Result<bool> {
        let mut printed = self.printed.remove(&message.id).unwrap_or_default();
        match message.author {
            Author::User if !printed.is_ended => {
                self.input(message)?;
                printed.is_ended = true;
            }
            Author::Host if !printed.is_ended => {
                self.finish()?;
                message.text().lines().for_each(|line| screen::note(err(style::DIM, &format!("  {line}"))));
                printed.is_ended = true;
            }
            Author::User | Author::Host => {}
            _ => self.grown(message, &mut printed, is_idle)?,
        }
        let calls_done = message.calls.iter().all(|call| call.status.is_final());
        let is_done = printed.is_ended && (is_idle || calls_done);
        self.printed.insert(message.id.clone(), printed);
        Ok(is_done)
    }

    fn input(&mut self, message: &ChatMessage) -> std::io::Result<()> {
        self.finish()?;
        let text = message.text();
        for (index, line) in text.trim_end().lines().enumerate() {
            let begin = if index == 0 { "› " } else { "  " };
            screen::note(err(style::STRONG, &format!("{begin}{line}")));
        }
        for image in message.images.iter() {
            let bytes = image.data.trim_end_matches('=').len() * 3 / 4;
            screen::note(err(style::DIM, &format!("  image: {}, {bytes} bytes", image.media_type)));
        }
        Ok(())
    }

    fn grown(&mut self, message: &ChatMessage, printed: &mut Printed, is_idle: bool) -> std::io::Result<()> {
        self.text(message, printed)?;
        if (message.complete || message.partial.is_some() || is_idle) && !printed.is_ended {
            printed.is_ended = true;
            self.answer.finish()?;
            if let Some(why) = &message.partial {
                screen::note(err(style::DIM, &format!("  the answer is not complete: {why}")));
            }
        }
        self.calls(message, printed)
    }

    fn calls(&mut self, message: &ChatMessage, printed: &mut Printed) -> std::io::Result<()> {
        printed.calls.resize(message.calls.len(), Call::Nothing);
        for (index, (call, done)) in message.calls.iter().zip(&mut printed.calls).enumerate() {
            self.call((&message.id, index), call, done)?;
        }
        Ok(())
    }

    /// Prints new text and reasoning. What becomes void stays in the message, so that both only grow.
    fn text(&mut self, message: &ChatMessage, printed: &mut Printed) -> std::io::Result<()> {
        let (mut start, mut thought, mut void) = (0, 0, 0);
        for (index, block) in message.blocks.iter().enumerate() {
            if block.kind == BlockKind::Reasoning {
                self.thought(block, thought, printed)?;
                thought += block.text.len();
                continue;
            }
            let end = start + block.text.len();
            if end > printed.bytes {
                self.reasoning.finish()?;
                for chunk in block.text.chunks_from(printed.bytes.saturating_sub(start)) {
                    self.answer.push(chunk)?;
                }
                printed.bytes = end;
            }
            start = end;
            let Some(why) = &block.void else { continue };
            void += 1;
            if void > printed.void {
                printed.void = void;
                self.finish()?;
                let last = shorten(&block.text.to_string(), 60);
                screen::note(err(style::DIM, &format!("  void ({why}): {last}")));
                self.answer.continue_after(&valid(message, index));
            }
        }
        // Text that was corrected is not printed again.
        printed.bytes = printed.bytes.min(start);
        printed.thoughts = printed.thoughts.min(thought);
        Ok(())
    }

    /// Prints what is new of a block of reasoning, which follows so many bytes of others; or how long it is, when it is complete.
    fn thought(&mut self, block: &Block, start: usize, printed: &mut Printed) -> std::io::Result<()> {
        let end = start + block.text.len();
        if end <= printed.thoughts || !(self.shows_reasoning || block.complete) {
            return Ok(());
        }
        let new = block.text.chunks_from(printed.thoughts.saturating_sub(start));
        printed.thoughts = end;
        if self.shows_reasoning {
            self.answer.pause()?;
            new.into_iter().try_for_each(|chunk| self.reasoning.push(chunk))?;
            return if block.complete { self.reasoning.finish() } else { Ok(()) };
        }
        let characters: u64 = new.into_iter().map(|chunk| chunk.chars().count() as u64).sum();
        self.finish()?;
        let characters = count(characters, "character", "characters");
        screen::note(err(style::DIM, &format!("  reasoning, {characters} (Ctrl+T shows the next)")));
        Ok(())
    }

    fn call(&mut self, at: (&MessageId, usize), call: &ToolEntry, done: &mut Call) -> std::io::Result<()> {
        match (*done, call.status) {
            // It is asked about or has run again, and that is shown in full.
            (Call::Cut, ToolStatus::Asking | ToolStatus::Running | ToolStatus::Done | ToolStatus::Failed) => {
                *done = Call::Nothing;
            }
            (Call::Cut, _) => return Ok(()),
            (Call::Nothing | Call::Begun | Call::Ended, _) => {}
        }
        // A question shows its call itself.
        let is_shown = !matches!(call.status, ToolStatus::Proposed | ToolStatus::Asking);
        let at = (at.0.clone(), at.1);
        if is_shown && *done < Call::Begun {
            self.finish()?;
            *done = Call::Begun;
            // A question has already shown the arguments.
            let was_asked = self.asked.contains(&call.call);
            let arguments = if was_asked { String::new() } else { shorten(&call.arguments, ARGUMENTS) };
            begun(&call.tool, &arguments).iter().for_each(screen::note);
            self.last_call = Some(at.clone());
        }
        if !call.status.is_final() || *done == Call::Ended {
            return Ok(());
        }
        *done = if call.status == ToolStatus::Cancelled { Call::Cut } else { Call::Ended };
        self.finish()?;
        if self.last_call.as_ref() != Some(&at) {
            screen::note(err(style::DIM, &format!("  {} {}", call.tool, shorten(&call.arguments, 60))));
            self.last_call = Some(at);
        }
        let output = call.output.as_deref().unwrap_or_default();
        let was_asked = self.asked.remove(&call.call);
        let diff = call.diff.as_deref().filter(|_| !was_asked);
        let lines = match call.status {
            ToolStatus::Cancelled => vec![err(style::BAD, &format!("  {}", left(call, self.interrupted)))],
            ToolStatus::NotRun => {
                // The result for the model begins so itself.
                let why = output.strip_prefix("not run: ").unwrap_or(output);
                vec![format!("  {} {}", err(style::BAD, "not run:"), shorten(why, 400))]
            }
            status => result_lines(output, diff, status == ToolStatus::Failed),
        };
        lines.iter().for_each(screen::note);
        Ok(())
    }
}

/// Returns the rows of a call that begins.
fn begun(tool: &str, arguments: &str) -> Vec<String> {
    let columns = screen::note_columns().map_or(usize::MAX, text_columns);
    let tool = flat(tool);
    let mark = format!("● {tool}");
    let mut rows = Vec::new();
    for (index, part) in wrapped(&format!("{mark} {}", flat(arguments)), columns).iter().enumerate() {
        let begin = if index == 0 { "" } else { CONTINUED };
        let (of_tool, rest) = if index == 0 { part.split_at(mark.len().min(part.len())) } else { ("", part.as_str()) };
        let head = if of_tool.is_empty() { String::new() } else { err(style::TOOL, of_tool) };
        rows.push(format!("{begin}{head}{}", rest.trim_end()));
    }
    rows
}

/// The text before a block that is not void.
fn valid(message: &ChatMessage, before: usize) -> String {
    let blocks = message.blocks.iter().take(before).filter(|one| one.kind == BlockKind::Text && one.void.is_none());
    blocks.flat_map(|block| block.text.chunks()).collect()
}

/// Whether a turn that continues can ask about the call or run it.
fn is_open(call: &ToolEntry) -> bool {
    call.status == ToolStatus::Cancelled || !call.status.is_final()
}

/// What became of a call without a result.
fn left(call: &ToolEntry, interrupted: Option<Interrupted>) -> &'static str {
    match interrupted {
        None => "cancelled",
        Some(_) if call.started_ms.is_some() => "its process ended while it ran: its outcome is not known",
        Some(left) if left.questions > 0 => "not answered",
        Some(_) => "its process ended before it ran",
    }
}
