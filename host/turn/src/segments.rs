//! Stage: splits the model's text into segments, lets `on_tag` and `on_plain_text` change them, and gives what to show.
//!
//! Innermost tags are handled first; an outer handler sees inner results. Text inside a handled tag reaches
//! `on_plain_text` as part of that tag's inside. A tag that is never closed, and a section larger than [`MAX_SECTION`], is
//! given on with its tag as text; the second is reported. An outer close also closes what is still open inside it.
//!
//! Where a handler fails closed, nothing that it did not check is given on: a marker replaces the unit, or the section. That
//! includes sections that its handler never gets, since they are too large, were never closed, or open with a tag that
//! cannot be read. A marker is given on as it is: the remaining handlers of its callback are not called with it.

mod code;
mod tags;
mod units;

use std::sync::Arc;

use flow::{
    CallFailure, CallbackKind, CallbackOutcome, EventKind, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, TextStream,
};

use self::tags::{Found, Mark, TagParser};
use self::units::UnitBuffer;
use crate::chain::{Asked, Caller};
use crate::ports::EventSink;

/// The largest section a handler gets, in bytes of its inside.
pub const MAX_SECTION: usize = 1 << 20;

/// The segments of one stream of one message.
pub(crate) struct Segments {
    caller: Arc<Caller>,
    stream: TextStream,
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
    /// Set where nothing of the section is given on.
    withheld: Option<Withheld>,
}

/// A section of which nothing is given on.
#[derive(Debug)]
enum Withheld {
    /// A marker of this plugin replaces it. The reason says why the plugin cannot check it.
    Marked { plugin: usize, bytes: usize, why: String },
    /// It is inside a section that a marker replaces.
    Inside,
}

/// A part of the text on its way through the handlers of `on_plain_text`.
enum Carried {
    Text(String),
    /// Replaces a unit; no further handler is called with it.
    Marker(String),
}

impl Segments {
    pub(crate) fn new(caller: Arc<Caller>) -> Self {
        let patterns: Vec<_> = caller.chains.tags.iter().flat_map(|(_, patterns)| patterns.iter().cloned()).collect();
        let closed = caller.closed_tag_patterns();
        let parser = if patterns.is_empty() { None } else { Some(TagParser::new(patterns).failing_closed(closed)) };
        Self::of(caller, TextStream::Answer, parser)
    }

    /// The units of reasoning, in which tags are text.
    pub(crate) fn of_thinking(caller: Arc<Caller>) -> Self {
        Self::of(caller, TextStream::Thinking, None)
    }

    fn of(caller: Arc<Caller>, stream: TextStream, parser: Option<TagParser>) -> Self {
        let units = vec![0; caller.chains.text_of(stream).len()];
        let mut segments = Self { caller, stream, parser, found: Found::default(), levels: Vec::new(), units };
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

    /// Takes a whole message and gives what is shown of it.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn whole(mut self, text: &str) -> Result<String, CallFailure> {
        let mut shown = self.push(text).await?;
        shown.push_str(&self.finish().await?);
        Ok(shown)
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
        // Tags that were never closed are text, each as written before its processed inside: from the outermost to the first
        // that is withheld with all that is in it.
        let mut open = self.levels.split_off(1).into_iter();
        while let Some(mut level) = open.next() {
            level.withhold(&self.caller, |name| format!("a <{name}> section was never closed"));
            let Level { tag, out, withheld, .. } = level;
            if let Some(withheld) = withheld {
                self.give_marker(withheld, open.map(|inner| inner.size()).sum());
                break;
            }
            self.text_through(tag.as_ref().map_or("", |tag| &tag.open)).await?;
            if !out.is_empty() {
                self.flush().await?;
                self.give(&out);
            }
        }
        self.flush().await?;
        Ok(std::mem::take(&mut self.levels[0].out))
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
                Mark::Broken { name, raw } => self.broken(name, raw).await?,
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
        let mut level = self.level(Some(tag));
        level.withheld = self.top().withheld.as_ref().map(|_| Withheld::Inside);
        self.levels.push(level);
        if closed { self.close_top("").await } else { Ok(()) }
    }

    /// The opening of a tag whose handler fails closed cannot be read: the section that it opens is withheld.
    async fn broken(&mut self, name: String, raw: String) -> Result<(), CallFailure> {
        if self.caller.closed_tag_handler(&name).is_none() {
            return self.text(&raw).await;
        }
        self.open(name, Vec::new(), false, raw).await?;
        let caller = Arc::clone(&self.caller);
        self.top().withhold(&caller, |name| format!("the opening tag <{name}> of a section cannot be read"));
        Ok(())
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
        let Some(Level { tag: Some(mut tag), out, withheld, .. }) = self.pop() else { return Ok(()) };
        if let Some(withheld) = withheld {
            self.give_marker(withheld, 0);
            return self.bound().await;
        }
        tag.content = out;
        close.clone_into(&mut tag.close);
        let caller = Arc::clone(&self.caller);
        let place = TagPlace { at: caller.hub.place(), inside: self.inside() };
        let handlers = caller.chains.tag_handlers(&tag.name);
        for (at, &plugin) in handlers.iter().enumerate() {
            let call = caller.extensions.tag(plugin, &tag, &place);
            match caller.ask(plugin, CallbackKind::Tag, call).await? {
                Asked::Answer(TagAnswer::Content(content)) => tag.content = content,
                Asked::Answer(TagAnswer::Replace(text)) => {
                    caller.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "replaced the section");
                    self.give(&text);
                    return self.bound().await;
                }
                Asked::Answer(TagAnswer::Keep | TagAnswer::Ignored(_)) | Asked::Nothing => {}
                Asked::Closed(why) => {
                    caller.skip(&handlers[at + 1..], CallbackKind::Tag, plugin, "did not check the section");
                    let bytes = tag.open.len() + tag.content.len() + tag.close.len();
                    let marker = caller.withhold(plugin, CallbackKind::Tag, bytes, why);
                    self.give(&marker);
                    return self.bound().await;
                }
            }
        }
        let whole = format!("{}{}{}", tag.open, tag.content, tag.close);
        self.give(&whole);
        self.bound().await
    }

    /// The innermost tag is text after all: its opening as written before its processed inside. The opening has not been seen
    /// as text yet.
    async fn dissolve(&mut self) -> Result<(), CallFailure> {
        self.flush().await?;
        if let Some(Level { tag: Some(tag), out, .. }) = self.pop() {
            self.text_through(&tag.open).await?;
            self.flush().await?;
            self.give(&out);
        }
        Ok(())
    }

    /// A withheld section ends, with so many more bytes in sections that are open inside it.
    fn give_marker(&mut self, withheld: Withheld, more: usize) {
        if let Withheld::Marked { plugin, bytes, why } = withheld {
            let marker = self.caller.withhold(plugin, CallbackKind::Tag, bytes + more, why);
            self.give(&marker);
        }
    }

    /// Adds processed text to the innermost level.
    fn give(&mut self, text: &str) {
        self.top().out.push_str(text);
    }

    /// Sections that have grown too large are text after all.
    async fn bound(&mut self) -> Result<(), CallFailure> {
        while self.levels.len() > 1 && self.top().size() > MAX_SECTION {
            let caller = Arc::clone(&self.caller);
            let why = |name: &str| format!("a <{name}> section is larger than {MAX_SECTION} bytes");
            self.top().withhold(&caller, why);
            if self.top().withheld.is_none() {
                let why = why(self.top().tag.as_ref().map_or("", |tag| &tag.name));
                caller.hub.emit(EventKind::Notice { message: format!("{why}: shown as it is, not handled") });
                self.dissolve().await?;
            }
        }
        Ok(())
    }

    /// Sends text through the handlers of `on_plain_text`.
    async fn text(&mut self, text: &str) -> Result<(), CallFailure> {
        if text.is_empty() {
            return Ok(());
        }
        self.text_through(text).await?;
        self.bound().await
    }

    async fn text_through(&mut self, text: &str) -> Result<(), CallFailure> {
        if self.top().withheld.is_some() {
            self.count_withheld(text.len());
        } else if self.units.is_empty() {
            self.give(text);
        } else {
            let out = self.pipe(text, false).await?;
            self.give(&out);
        }
        Ok(())
    }

    /// Adds bytes to the withheld section that the innermost level is, or is inside of.
    fn count_withheld(&mut self, more: usize) {
        let mut around = self.levels.iter_mut().rev();
        let marked = around.find_map(|level| match &mut level.withheld {
            Some(Withheld::Marked { bytes, .. }) => Some(bytes),
            Some(Withheld::Inside) | None => None,
        });
        if let Some(bytes) = marked {
            *bytes += more;
        }
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
        // Most pieces complete no unit, and many tags may be open: the names are put together when they are asked for.
        let mut inside: Option<Vec<String>> = None;
        let mut carried = Vec::new();
        self.top().pipe[0].push(text);
        self.units_of(0, finish, &mut inside, &mut carried).await?;
        for stage in 1..self.units.len() {
            let mut out = Vec::new();
            for part in carried {
                match part {
                    Carried::Text(text) => {
                        self.top().pipe[stage].push(&text);
                        self.units_of(stage, false, &mut inside, &mut out).await?;
                    }
                    Carried::Marker(marker) => {
                        // What came before the marker is given on before it.
                        self.units_of(stage, true, &mut inside, &mut out).await?;
                        out.push(Carried::Marker(marker));
                    }
                }
            }
            if finish {
                self.units_of(stage, true, &mut inside, &mut out).await?;
            }
            carried = out;
        }
        Ok(carried
            .into_iter()
            .map(|part| match part {
                Carried::Text(text) | Carried::Marker(text) => text,
            })
            .collect())
    }

    /// Calls one handler with the units that are complete, or with all that is left.
    async fn units_of(
        &mut self,
        stage: usize,
        all: bool,
        inside: &mut Option<Vec<String>>,
        out: &mut Vec<Carried>,
    ) -> Result<(), CallFailure> {
        let caller = Arc::clone(&self.caller);
        let (plugin, _) = caller.chains.text_of(self.stream)[stage];
        loop {
            let buffer = &mut self.top().pipe[stage];
            let unit = buffer.next_unit().or_else(|| if all { buffer.finish() } else { None });
            let Some(unit) = unit else { return Ok(()) };
            let names = match &*inside {
                Some(names) => names.clone(),
                None => inside.insert(self.inside()).clone(),
            };
            let (at, stream) = (caller.hub.place(), self.stream);
            let place = TextPlace { at, stream, unit: self.units[stage], inside: names };
            self.units[stage] += 1;
            let call = caller.extensions.plain_text(plugin, &unit, &place);
            match caller.ask(plugin, CallbackKind::PlainText, call).await? {
                Asked::Answer(TextAnswer::Replace(new)) => carry(out, new),
                Asked::Answer(TextAnswer::Pass | TextAnswer::Ignored(_)) | Asked::Nothing => carry(out, unit),
                Asked::Closed(why) => {
                    let mut marker = caller.withhold(plugin, CallbackKind::PlainText, unit.len(), why);
                    // Line ends say nothing, and without them the marker would join the next line.
                    marker.push_str(&unit[unit.trim_end_matches(['\r', '\n']).len()..]);
                    out.push(Carried::Marker(marker));
                }
            }
        }
    }

    fn level(&self, tag: Option<Tag>) -> Level {
        let handlers = self.caller.chains.text_of(self.stream);
        let pipe = handlers.iter().map(|(_, unit)| UnitBuffer::new(*unit)).collect();
        Level { tag, pipe, out: String::new(), withheld: None }
    }

    fn top(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Takes the innermost open tag off; the message itself stays.
    fn pop(&mut self) -> Option<Level> {
        self.levels.pop_if(|level| level.tag.is_some())
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
    /// Withholds the section, from here to its end, where one of its handlers fails closed. `why` gets the tag's name.
    fn withhold(&mut self, caller: &Caller, why: impl FnOnce(&str) -> String) {
        let Some(tag) = self.tag.as_ref().filter(|_| self.withheld.is_none()) else { return };
        let Some(plugin) = caller.closed_tag_handler(&tag.name) else { return };
        let (bytes, why) = (tag.open.len() + self.size(), why(&tag.name));
        for other in caller.chains.tag_handlers(&tag.name) {
            caller.report(other, CallbackKind::Tag, CallbackOutcome::Skipped(why.clone()), 0);
        }
        self.withheld = Some(Withheld::Marked { plugin, bytes, why });
        self.out.clear();
        self.pipe.iter_mut().for_each(|buffer| drop(buffer.finish()));
    }

    fn size(&self) -> usize {
        self.out.len() + self.pipe.iter().map(UnitBuffer::len).sum::<usize>()
    }
}

/// Adds text to what goes to the next handler, joined with text right before it.
fn carry(out: &mut Vec<Carried>, text: String) {
    match out.last_mut() {
        Some(Carried::Text(last)) => last.push_str(&text),
        Some(Carried::Marker(_)) | None => out.push(Carried::Text(text)),
    }
}

#[cfg(test)]
mod tests;
