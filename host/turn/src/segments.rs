//! Stage: splits the model's text into segments, lets `on_tag` and `on_plain_text` change them, and gives what to show.
//!
//! Innermost tags are handled first; an outer handler sees inner results. Text inside a handled tag reaches
//! `on_plain_text` as part of that tag's inside. A tag that is never closed, and a section larger than [`MAX_SECTION`], is
//! given on with its tag as text; the second is reported. An outer close also closes what is still open inside it.

mod code;
mod tags;
mod units;

use std::sync::Arc;

use flow::{CallFailure, CallbackKind, CallbackOutcome, EventKind, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace};

use self::tags::{Found, Mark, TagParser};
use self::units::UnitBuffer;
use crate::chain::Caller;
use crate::ports::EventSink;

/// The largest section a handler gets, in bytes of its inside.
pub const MAX_SECTION: usize = 1 << 20;

/// The segments of one message.
pub(crate) struct Segments {
    caller: Arc<Caller>,
    /// `None`: nobody handles tags.
    parser: Option<TagParser>,
    found: Found,
    /// The message, and inside it each open tag that is handled.
    levels: Vec<Level>,
    /// Units given so far, by place in the chain of `on_plain_text`.
    units: Vec<u32>,
}

/// The message itself or the inside of an open tag.
struct Level {
    /// The opening tag; `None` for the message.
    tag: Option<Tag>,
    /// One buffer for each handler of `on_plain_text`.
    pipe: Vec<UnitBuffer>,
    /// What is processed.
    out: String,
}

impl Segments {
    pub(crate) fn new(caller: Arc<Caller>) -> Self {
        let patterns: Vec<_> = caller.chains.tags.iter().flat_map(|(_, patterns)| patterns.iter().cloned()).collect();
        let units = vec![0; caller.chains.text.len()];
        let parser = if patterns.is_empty() { None } else { Some(TagParser::new(patterns)) };
        let mut segments = Self { caller, parser, found: Found::default(), levels: Vec::new(), units };
        segments.levels.push(segments.level(None));
        segments
    }

    /// Whose callbacks it calls.
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Whether text goes through as it is.
    pub(crate) fn is_idle(&self) -> bool {
        self.parser.is_none() && self.units.is_empty()
    }

    /// Takes the next piece and gives what can be shown now.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn push(&mut self, piece: &str) -> Result<String, CallFailure> {
        match &mut self.parser {
            Some(parser) => {
                parser.push(piece, &mut self.found);
                self.take_found().await?;
            }
            None => self.text(piece).await?,
        }
        Ok(std::mem::take(&mut self.levels[0].out))
    }

    /// The message is complete: gives the rest.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn finish(&mut self) -> Result<String, CallFailure> {
        if let Some(parser) = &mut self.parser {
            parser.finish(&mut self.found);
            self.take_found().await?;
        }
        // What waits for its unit waits in the innermost level only: the others were flushed when a tag opened in them.
        self.flush().await?;
        // Tags that were never closed are text, each as written before its processed inside.
        let open = self.levels.split_off(1);
        let mut shown = std::mem::take(&mut self.levels[0].out);
        for Level { tag, out, .. } in open {
            shown.push_str(tag.as_ref().map_or("", |tag| &tag.open));
            shown.push_str(&out);
        }
        Ok(shown)
    }

    async fn take_found(&mut self) -> Result<(), CallFailure> {
        let Found { mut text, mut marks } = std::mem::take(&mut self.found);
        let mut from = 0;
        for (at, mark) in marks.drain(..) {
            self.text(&text[from..at]).await?;
            from = at;
            match mark {
                Mark::Open { name, attributes, closed, raw } => self.open(name, attributes, closed, raw).await?,
                Mark::Close { name, raw } => self.close(&name, &raw).await?,
            }
        }
        self.text(&text[from..]).await?;
        text.clear();
        self.found = Found { text, marks };
        Ok(())
    }

    async fn open(
        &mut self,
        name: String,
        attributes: Vec<(String, String)>,
        closed: bool,
        raw: String,
    ) -> Result<(), CallFailure> {
        self.flush().await?;
        let tag = Tag { name, attributes, open: raw, content: String::new(), close: String::new() };
        let level = self.level(Some(tag));
        self.levels.push(level);
        if closed { self.close_top("").await } else { Ok(()) }
    }

    async fn close(&mut self, name: &str, raw: &str) -> Result<(), CallFailure> {
        let is_open = |level: &Level| level.tag.as_ref().is_some_and(|tag| tag.name == name);
        let Some(at) = self.levels.iter().rposition(is_open) else {
            return self.text(raw).await;
        };
        while self.levels.len() > at + 1 {
            self.close_top("").await?;
        }
        self.close_top(raw).await
    }

    /// Closes the innermost tag: its handlers are asked and the result goes to what is around it.
    async fn close_top(&mut self, close: &str) -> Result<(), CallFailure> {
        self.flush().await?;
        let Some((mut tag, out)) = self.pop() else { return Ok(()) };
        tag.content = out;
        close.clone_into(&mut tag.close);
        let inside = self.inside();
        let place = TagPlace { depth: u32::try_from(inside.len()).unwrap_or(u32::MAX), inside };
        let caller = Arc::clone(&self.caller);
        let handlers = caller.chains.tag_handlers(&tag.name);
        for (at, &plugin) in handlers.iter().enumerate() {
            let call = caller.extensions.tag(plugin, &tag, &place);
            match caller.ask(plugin, CallbackKind::Tag, call, tag_outcome).await? {
                Some(TagAnswer::Content(content)) => tag.content = content,
                Some(TagAnswer::Replace(text)) => {
                    caller.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "replaced the section");
                    self.give(&text);
                    return self.bound().await;
                }
                Some(TagAnswer::Keep | TagAnswer::Ignored(_)) | None => {}
            }
        }
        let whole = format!("{}{}{}", tag.open, tag.content, tag.close);
        self.give(&whole);
        self.bound().await
    }

    /// The innermost tag is text after all: its opening stands as written before its processed inside.
    async fn dissolve(&mut self) -> Result<(), CallFailure> {
        self.flush().await?;
        if let Some((tag, out)) = self.pop() {
            let around = self.top();
            around.out.push_str(&tag.open);
            around.out.push_str(&out);
        }
        Ok(())
    }

    /// Adds processed text to the innermost level.
    fn give(&mut self, text: &str) {
        self.top().out.push_str(text);
    }

    /// Sections that have grown too large are text after all.
    async fn bound(&mut self) -> Result<(), CallFailure> {
        while self.levels.len() > 1 && self.top().size() > MAX_SECTION {
            let name = self.inside().pop().unwrap_or_default();
            let message = format!("a <{name}> section is larger than {MAX_SECTION} bytes: shown as it is, not handled");
            self.caller.hub.emit(EventKind::Notice { message });
            self.dissolve().await?;
        }
        Ok(())
    }

    /// Sends text through the handlers of `on_plain_text`.
    async fn text(&mut self, text: &str) -> Result<(), CallFailure> {
        if text.is_empty() {
            return Ok(());
        }
        if self.units.is_empty() {
            self.give(text);
        } else {
            let out = self.pipe(text, false).await?;
            self.give(&out);
        }
        self.bound().await
    }

    /// A tag or the end of the message: every handler gets what is left of its unit.
    async fn flush(&mut self) -> Result<(), CallFailure> {
        if self.units.is_empty() {
            return Ok(());
        }
        let out = self.pipe("", true).await?;
        self.give(&out);
        Ok(())
    }

    async fn pipe(&mut self, text: &str, finish: bool) -> Result<String, CallFailure> {
        let caller = Arc::clone(&self.caller);
        // Most pieces complete no unit, and many tags may be open: the names are put together when they are asked for.
        let mut inside: Option<Vec<String>> = None;
        let mut carry = text.to_owned();
        for (stage, (plugin, _)) in caller.chains.text.iter().enumerate() {
            self.top().pipe[stage].push(&carry);
            carry.clear();
            loop {
                let buffer = &mut self.top().pipe[stage];
                let unit = buffer.next_unit().or_else(|| if finish { buffer.finish() } else { None });
                let Some(unit) = unit else { break };
                let names = inside.get_or_insert_with(|| self.inside()).clone();
                let place = TextPlace { unit: self.units[stage], inside: names };
                self.units[stage] += 1;
                let call = caller.extensions.plain_text(*plugin, &unit, &place);
                match caller.ask(*plugin, CallbackKind::PlainText, call, text_outcome).await? {
                    Some(TextAnswer::Replace(new)) => carry.push_str(&new),
                    Some(TextAnswer::Pass | TextAnswer::Ignored(_)) | None => carry.push_str(&unit),
                }
            }
        }
        Ok(carry)
    }

    fn level(&self, tag: Option<Tag>) -> Level {
        let pipe = self.caller.chains.text.iter().map(|(_, unit)| UnitBuffer::new(*unit)).collect();
        Level { tag, pipe, out: String::new() }
    }

    fn top(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Takes the innermost open tag off; the message itself stays.
    fn pop(&mut self) -> Option<(Tag, String)> {
        if self.levels.len() < 2 {
            return None;
        }
        let level = self.levels.pop()?;
        level.tag.map(|tag| (tag, level.out))
    }

    /// Names of the open tags, outermost first.
    fn inside(&self) -> Vec<String> {
        self.levels.iter().filter_map(|level| level.tag.as_ref().map(|tag| tag.name.clone())).collect()
    }
}

/// The search for tags alone, for the benches.
#[derive(Debug)]
pub(crate) struct TagProbe {
    parser: TagParser,
    found: Found,
}

impl TagProbe {
    pub(crate) fn new(patterns: Vec<flow::TagPattern>) -> Self {
        Self { parser: TagParser::new(patterns), found: Found::default() }
    }

    /// Bytes decided to be text, and tags, of what this piece decided.
    pub(crate) fn push(&mut self, piece: &str) -> (usize, usize) {
        self.parser.push(piece, &mut self.found);
        let decided = (self.found.text.len(), self.found.marks.len());
        self.found.text.clear();
        self.found.marks.clear();
        decided
    }
}

impl Level {
    fn size(&self) -> usize {
        self.out.len() + self.pipe.iter().map(UnitBuffer::len).sum::<usize>()
    }
}

fn text_outcome(answer: &TextAnswer) -> CallbackOutcome {
    match answer {
        TextAnswer::Pass => CallbackOutcome::Passed,
        TextAnswer::Replace(_) => CallbackOutcome::Changed,
        TextAnswer::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
    }
}

fn tag_outcome(answer: &TagAnswer) -> CallbackOutcome {
    match answer {
        TagAnswer::Keep => CallbackOutcome::Passed,
        TagAnswer::Content(_) | TagAnswer::Replace(_) => CallbackOutcome::Changed,
        TagAnswer::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
    }
}
