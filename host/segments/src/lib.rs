//! Splits a model's text into tag sections and text units, has their handlers change them, and returns what to show.
//!
//! Innermost tags are handled first; an outer handler sees inner results. Text inside a handled tag reaches
//! `on_plain_text` as part of that tag's inside. A tag that is never closed, and a section larger than [`MAX_SECTION`], is
//! passed on with its tag as text; the second is reported. An outer close also closes what is still open inside it.
//!
//! Where a handler fails closed, nothing that it did not check is passed on: a marker replaces the unit, or the section. That
//! includes sections that its handler never gets, since they are too large, were never closed, or open with a tag that
//! cannot be read. A marker is passed on as it is: the remaining handlers of its callback are not called with it.
//!
//! This is a crate of its own because two run it: a turn, for the extensions of a session, and the test harness of the SDK, for
//! one extension without a host.

#![forbid(unsafe_code)]

mod code;
mod handlers;
mod tags;
mod units;

use std::sync::Arc;

pub use self::handlers::{Handlers, Pattern, Section, SectionAnswer, Unit, UnitAnswer, UnitPlace};
use self::tags::{Found, Mark, TagParser};
pub use self::tags::{TagFinder, opened_tags};
use self::units::UnitBuffer;

/// The largest section a handler gets, in bytes of its inside.
pub const MAX_SECTION: usize = 1 << 20;

/// The segments of one stream of one message.
pub struct Segments<H> {
    handlers: Arc<H>,
    thinking: bool,
    /// `None`: no extension handles tags.
    parser: Option<TagParser>,
    found: Found,
    /// The message, and inside it each open tag that is handled.
    levels: Vec<Level>,
    /// Units so far, by position in the chain of `on_plain_text`.
    units: Vec<u32>,
}

/// The message itself or the inside of an open tag.
struct Level {
    /// The opening tag; `None` for the message.
    tag: Option<Section>,
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
    /// The marker of this handler replaces it. The reason says why the handler cannot check it.
    Marked { handler: usize, bytes: usize, why: String },
    /// It is inside a section that a marker replaces.
    Inside,
}

/// A part of the text on its way through the handlers of `on_plain_text`.
enum Carried {
    Text(String),
    /// Replaces a unit; no further handler is called with it.
    Marker(String),
}

impl<H: Handlers> Segments<H> {
    /// The text of an answer: tags and units.
    pub fn new(handlers: Arc<H>) -> Self {
        let patterns = handlers.tags();
        let parser = if patterns.is_empty() {
            None
        } else {
            Some(TagParser::new(patterns).failing_closed(handlers.closed_tags()))
        };
        Self::of(handlers, false, parser)
    }

    /// The units of reasoning, in which tags are text.
    pub fn of_thinking(handlers: Arc<H>) -> Self {
        Self::of(handlers, true, None)
    }

    fn of(handlers: Arc<H>, thinking: bool, parser: Option<TagParser>) -> Self {
        let units = vec![0; handlers.units(thinking).len()];
        let mut segments = Self { handlers, thinking, parser, found: Found::default(), levels: Vec::new(), units };
        segments.levels.push(segments.level(None));
        segments
    }

    /// Returns the handlers that it was made with.
    pub fn handlers(&self) -> &Arc<H> {
        &self.handlers
    }

    /// Whether text goes through as it is.
    pub fn is_idle(&self) -> bool {
        self.parser.is_none() && self.units.is_empty()
    }

    /// Returns whether nothing is pending: the output so far is final for the text that was pushed so far.
    pub fn is_clear(&self) -> bool {
        let is_clear = |level: &Level| level.tag.is_none() && level.size() == 0;
        self.parser.as_ref().is_none_or(TagParser::is_clear) && self.levels.iter().all(is_clear)
    }

    /// Takes a whole message and gives what is shown of it.
    ///
    /// # Errors
    /// A handler ends the turn.
    pub async fn whole(mut self, text: &str) -> Result<String, H::Failure> {
        let mut shown = self.push(text).await?;
        shown.push_str(&self.finish().await?);
        Ok(shown)
    }

    /// Takes the next chunk and returns what can be shown now.
    ///
    /// # Errors
    /// A handler ends the turn.
    pub async fn push(&mut self, piece: &str) -> Result<String, H::Failure> {
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
    /// A handler ends the turn.
    pub async fn finish(&mut self) -> Result<String, H::Failure> {
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
            level.withhold(&*self.handlers, |name| format!("a <{name}> section was never closed"));
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

    async fn take_found(&mut self) -> Result<(), H::Failure> {
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
    ) -> Result<(), H::Failure> {
        self.flush().await?;
        let tag = Section { name, attributes, open: raw, content: String::new(), close: String::new() };
        let mut level = self.level(Some(tag));
        level.withheld = self.top().withheld.as_ref().map(|_| Withheld::Inside);
        self.levels.push(level);
        if closed { self.close_top("").await } else { Ok(()) }
    }

    /// The opening of a tag whose handler fails closed cannot be read: the section that it opens is withheld.
    async fn broken(&mut self, name: String, raw: String) -> Result<(), H::Failure> {
        if self.handlers.closed_handler(&name).is_none() {
            return self.text(&raw).await;
        }
        self.open(name, Vec::new(), false, raw).await?;
        let handlers = Arc::clone(&self.handlers);
        self.top().withhold(&*handlers, |name| format!("the opening tag <{name}> of a section cannot be read"));
        Ok(())
    }

    async fn close(&mut self, name: &str, raw: &str) -> Result<(), H::Failure> {
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
    async fn close_top(&mut self, close: &str) -> Result<(), H::Failure> {
        self.flush().await?;
        let Some(Level { tag: Some(mut tag), out, withheld, .. }) = self.pop() else { return Ok(()) };
        if let Some(withheld) = withheld {
            self.give_marker(withheld, 0);
            return self.bound().await;
        }
        tag.content = out;
        close.clone_into(&mut tag.close);
        let handlers = Arc::clone(&self.handlers);
        match handlers.section(tag, self.inside()).await? {
            SectionAnswer::Replace(text) => self.give(&text),
            SectionAnswer::Keep(Section { open, content, close, .. }) => {
                [open, content, close].iter().for_each(|part| self.give(part));
            }
        }
        self.bound().await
    }

    /// The innermost tag is text after all: its opening as written before its processed inside. The opening has not been seen
    /// as text yet.
    async fn dissolve(&mut self) -> Result<(), H::Failure> {
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
        if let Withheld::Marked { handler, bytes, why } = withheld {
            let marker = self.handlers.withhold(handler, bytes + more, why);
            self.give(&marker);
        }
    }

    /// Adds processed text to the innermost level.
    fn give(&mut self, text: &str) {
        self.top().out.push_str(text);
    }

    /// Sections that have grown too large are text after all.
    async fn bound(&mut self) -> Result<(), H::Failure> {
        while self.levels.len() > 1 && self.top().size() > MAX_SECTION {
            let handlers = Arc::clone(&self.handlers);
            let why = |name: &str| format!("a <{name}> section is larger than {MAX_SECTION} bytes");
            self.top().withhold(&*handlers, why);
            if self.top().withheld.is_none() {
                let why = why(self.top().tag.as_ref().map_or("", |tag| &tag.name));
                handlers.notice(format!("{why}: shown as it is, not handled"));
                self.dissolve().await?;
            }
        }
        Ok(())
    }

    /// Sends text through the handlers of `on_plain_text`.
    async fn text(&mut self, text: &str) -> Result<(), H::Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.text_through(text).await?;
        self.bound().await
    }

    async fn text_through(&mut self, text: &str) -> Result<(), H::Failure> {
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
    async fn flush(&mut self) -> Result<(), H::Failure> {
        if self.units.is_empty() {
            return Ok(());
        }
        let out = self.pipe("", true).await?;
        self.give(&out);
        Ok(())
    }

    async fn pipe(&mut self, text: &str, finish: bool) -> Result<String, H::Failure> {
        // Most chunks complete no unit, and many tags can be open: the names are joined on demand.
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
    ) -> Result<(), H::Failure> {
        let handlers = Arc::clone(&self.handlers);
        loop {
            let buffer = &mut self.top().pipe[stage];
            let unit = buffer.next_unit().or_else(|| if all { buffer.finish() } else { None });
            let Some(unit) = unit else { return Ok(()) };
            let names = match &*inside {
                Some(names) => names.clone(),
                None => inside.insert(self.inside()).clone(),
            };
            let place = UnitPlace { thinking: self.thinking, number: self.units[stage], inside: names };
            self.units[stage] += 1;
            match handlers.unit(stage, &unit, place).await? {
                UnitAnswer::Replace(new) => carry(out, new),
                UnitAnswer::Pass => carry(out, unit),
                UnitAnswer::Withheld(mut marker) => {
                    // Line ends say nothing, and without them the marker would join the next line.
                    marker.push_str(&unit[unit.trim_end_matches(['\r', '\n']).len()..]);
                    out.push(Carried::Marker(marker));
                }
            }
        }
    }

    fn level(&self, tag: Option<Section>) -> Level {
        let pipe = self.handlers.units(self.thinking).into_iter().map(UnitBuffer::new).collect();
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

impl Level {
    /// Withholds the section, from here to its end, where one of its handlers fails closed. `why` gets the tag's name.
    fn withhold<H: Handlers>(&mut self, handlers: &H, why: impl FnOnce(&str) -> String) {
        let Some(tag) = self.tag.as_ref().filter(|_| self.withheld.is_none()) else { return };
        let Some(handler) = handlers.closed_handler(&tag.name) else { return };
        let (bytes, why) = (tag.open.len() + self.size(), why(&tag.name));
        handlers.skipped(&tag.name, &why);
        self.withheld = Some(Withheld::Marked { handler, bytes, why });
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

impl<H> std::fmt::Debug for Segments<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("thinking", &self.thinking).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
