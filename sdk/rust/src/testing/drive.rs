//! Puts an answer through the callbacks of an extension as a turn of the host does: `tidegate_segments` splits it, as there.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_segments::{Handlers, Pattern, Section, SectionAnswer, Segments, Unit, UnitAnswer, UnitPlace};

use super::answer::{Answer, Block, Shown};
use super::cuts::Cuts;
use super::{Harness, limits};
use crate::{
    Callback, Exported, OnFailure, OutputAnswer, OutputMode, Result, Tag, TagAnswer, TagOptions, TagPlace, TextAnswer,
    TextOptions, TextPlace, TextStream, TextUnit,
};

/// The extension under test and the record of what happens to it.
struct Driven<E> {
    text: Option<TextOptions>,
    tag: Option<TagOptions>,
    tags: Vec<Pattern>,
    harness: RefCell<Harness<E>>,
    shown: RefCell<Shown>,
}

/// Runs the answer, its chunks cut at these offsets of all its content, on a harness without an instance. Returns the harness
/// afterwards.
pub(super) fn run<E: Exported>(harness: Harness<E>, answer: &Answer, cuts: &Cuts) -> (Shown, Harness<E>) {
    let mut output = None;
    let (mut text, mut tag) = (None, None);
    let mut harness = harness;
    for callback in harness.registered() {
        match callback {
            Callback::PlainText(options) => text = Some(options),
            Callback::Tag(options) => tag = Some(options),
            Callback::LlmOutput(options) => output = Some(options),
            Callback::InputMessages(_)
            | Callback::TtsrTriggered(_)
            | Callback::ToolCall(_)
            | Callback::ToolResult(_) => {}
        }
    }
    let tags = tag.iter().flat_map(|options| &options.patterns).map(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => Pattern::Prefix(prefix.to_owned()),
        None => Pattern::Exact(pattern.clone()),
    });
    let tags = tags.collect();
    let driven = Arc::new(Driven { text, tag, tags, harness: RefCell::new(harness), shown: RefCell::default() });
    let rewrites = output.as_ref().map(|options| options.mode == OutputMode::Rewrite);
    let mut cuts = Cutter { cuts, next: 0, at: 0 };
    for partial in &answer.discarded {
        let before = driven.harness.borrow().host.state.clone();
        let (_, text, _) = driven.stream(partial, &mut cuts, rewrites != Some(true), false);
        driven.shown.borrow_mut().discarded.push(text);
        let mut harness = driven.harness.borrow_mut();
        harness.host.session.at.attempt += 1;
        // As a host does: what was written for the attempt is undone, and an instance that wrote is replaced.
        let values = |(key, stored): (&String, &crate::host::Stored)| (key.clone(), stored.value.clone());
        if harness.host.state.iter().map(values).ne(before.iter().map(values)) {
            harness.host.state = before;
            harness.restart();
        }
    }
    let (mut segments, mut text, thinking) = driven.stream(&answer.blocks, &mut cuts, rewrites != Some(true), true);
    let closed = output.map(|options| driven.fails_closed(options.on_failure));
    match rewrites {
        Some(true) => text = driven.rewritten(answer, segments, closed == Some(true)),
        Some(false) => {
            text.push_str(&now(segments.finish()));
            let kept = driven.keeps_shown().then(|| text.clone());
            driven.output(answer, kept, OutputMode::Observe);
        }
        None => text.push_str(&now(segments.finish())),
    }
    let mut shown = driven.shown.take();
    (shown.text, shown.thinking) = (text, thinking);
    let harness = driven.harness.take();
    (shown, harness)
}

/// Cuts the blocks of all attempts, one after the other.
struct Cutter<'a> {
    cuts: &'a Cuts,
    next: usize,
    at: usize,
}

impl Cutter<'_> {
    fn chunks<'t>(&mut self, content: &'t str) -> Vec<&'t str> {
        let end = self.at + content.len();
        let (mut chunks, mut rest) = (Vec::new(), content);
        while let Some(cut) = self.cuts.get(self.next).filter(|cut| **cut < end) {
            self.next += 1;
            let (chunk, after) = rest.split_at(cut.saturating_sub(self.at));
            chunks.push(chunk);
            (rest, self.at) = (after, self.at + chunk.len());
        }
        chunks.push(rest);
        self.at = end;
        chunks
    }
}

impl<E: Exported> Driven<E> {
    /// Streams one attempt; returns its segments, and the text and the reasoning that were shown so far. Where outputs are
    /// rewritten, text waits until the whole answer is there (`live` is false). The last block of a discarded attempt does not end
    /// (`ends` is false).
    fn stream(
        self: &Arc<Self>,
        blocks: &[Block],
        cuts: &mut Cutter<'_>,
        live: bool,
        ends: bool,
    ) -> (Segments<Self>, String, String) {
        let mut segments = Segments::new(Arc::clone(self));
        let mut reasoning = Segments::of_thinking(Arc::clone(self));
        let (mut text, mut thinking) = (String::new(), String::new());
        for (number, block) in blocks.iter().enumerate() {
            for chunk in cuts.chunks(block.content()) {
                match block {
                    Block::Text(_) if live => text.push_str(&now(segments.push(chunk))),
                    Block::Text(_) => {}
                    Block::Thinking(_) => thinking.push_str(&now(reasoning.push(chunk))),
                }
            }
            let ended = ends || number + 1 < blocks.len();
            if matches!(block, Block::Thinking(_)) && ended {
                thinking.push_str(&now(reasoning.finish()));
            }
        }
        (segments, text, thinking)
    }

    /// What is shown of an answer that waited for `on_llm_output`.
    fn rewritten(&self, answer: &Answer, segments: Segments<Self>, closed: bool) -> String {
        let text = answer.output().text;
        match self.output(answer, None, OutputMode::Rewrite) {
            Some(OutputAnswer { replace: Some(new), .. }) => now(segments.whole(&new)),
            None if closed => self.marker(text.len(), "on_llm_output did not check it"),
            Some(_) | None => now(segments.whole(&text)),
        }
    }

    /// Calls `on_llm_output` with the answer, or with what is kept of it; `None` where it failed.
    fn output(&self, answer: &Answer, kept: Option<String>, mode: OutputMode) -> Option<OutputAnswer> {
        let mut output = answer.output();
        output.text = kept.unwrap_or(output.text);
        output.at = self.harness.borrow().host.session.at;
        self.record(format_args!("on_llm_output: {:?}", output.text));
        let size = |answer: &OutputAnswer| {
            let notes: usize = answer.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
            answer.replace.as_ref().map_or(0, String::len) + notes
        };
        let mut answer = self.call("on_llm_output", size, |extension| extension.call_llm_output(&output))?;
        let mut unused = limits::annotations(&mut answer);
        if mode == OutputMode::Observe && answer.replace.take().is_some() {
            unused.push("it is registered as an observer and replaced the output".to_owned());
        }
        let mut shown = self.shown.borrow_mut();
        shown.failures.extend(unused.into_iter().map(|why| format!("on_llm_output: not used: {why}")));
        shown.output = answer.clone();
        Some(answer)
    }

    /// Calls a callback as the host does; `None` where the call failed, or its answer is too large.
    fn call<T>(
        &self,
        name: &str,
        size: impl Fn(&T) -> usize,
        run: impl FnOnce(&mut E) -> Option<Result<T>>,
    ) -> Option<T> {
        let mut harness = self.harness.borrow_mut();
        let most = harness.output_bytes();
        let result = harness.call(|extension| {
            // Only callbacks that are registered are called, and `export!` makes both of one list.
            let answer = run(extension).unwrap_or_else(|| crate::bail!("{name} is not exported"))?;
            match size(&answer) {
                bytes if bytes > most => crate::bail!("its answer has {bytes} bytes, an answer may have {most}"),
                _ => Ok(answer),
            }
        });
        drop(harness);
        result.map_err(|error| self.shown.borrow_mut().failures.push(format!("{name} failed: {error}"))).ok()
    }

    fn record(&self, call: std::fmt::Arguments<'_>) {
        self.shown.borrow_mut().calls.push(call.to_string());
    }

    fn fails_closed(&self, registered: OnFailure) -> bool {
        self.harness.borrow().fails_closed(registered)
    }

    /// Whether what was shown of the answer is kept.
    fn keeps_shown(&self) -> bool {
        let answer = |options: &&TextOptions| options.streams.contains(&TextStream::Answer);
        let text = self.text.as_ref().filter(answer).map(|options| options.keep);
        let mut kept = text.into_iter().chain(self.tag.as_ref().map(|options| options.keep));
        kept.any(|keep| self.harness.borrow().keeps_shown(keep))
    }

    fn marker(&self, bytes: usize, why: &str) -> String {
        self.shown.borrow_mut().failures.push(format!("withheld {bytes} bytes: {why}"));
        format!("[withheld: {} did not check this]", self.harness.borrow().id)
    }
}

impl<E: Exported> Handlers for Driven<E> {
    type Failure = Infallible;

    fn units(&self, thinking: bool) -> Vec<Unit> {
        let units = self.text.iter().filter(|options| options.streams.contains(&stream(thinking)));
        let unit = |options: &TextOptions| match options.unit {
            TextUnit::Line => Unit::Line,
            TextUnit::Paragraph => Unit::Paragraph,
            TextUnit::Whole => Unit::Whole,
        };
        units.map(unit).collect()
    }

    fn tags(&self) -> Vec<Pattern> {
        self.tags.clone()
    }

    fn closed_tags(&self) -> Vec<Pattern> {
        let closed = self.tag.as_ref().is_some_and(|options| self.fails_closed(options.on_failure));
        if closed { self.tags.clone() } else { Vec::new() }
    }

    // The callbacks do not wait: the calls are made here, and the futures only carry their results.
    fn unit(
        &self,
        _stage: usize,
        unit: &str,
        place: UnitPlace,
    ) -> impl Future<Output = Result<UnitAnswer, Infallible>> + Send {
        let UnitPlace { thinking, number, inside } = place;
        let (at, stream) = (self.harness.borrow().host.session.at, stream(thinking));
        let name = if thinking { "thinking" } else { "answer" };
        self.record(format_args!("on_plain_text {name} {number}: {unit:?}"));
        let place = TextPlace { at, stream, unit: number, inside, attributes: Vec::new() };
        let size = |answer: &TextAnswer| if let TextAnswer::Replace(text) = answer { text.len() } else { 0 };
        let answer = self.call("on_plain_text", size, |extension| extension.call_plain_text(unit, &place));
        let closed = self.text.as_ref().is_some_and(|options| self.fails_closed(options.on_failure));
        std::future::ready(Ok(match answer {
            Some(TextAnswer::Replace(text)) => UnitAnswer::Replace(text),
            None if closed => UnitAnswer::Withheld(self.marker(unit.len(), "on_plain_text did not check it")),
            Some(TextAnswer::Pass) | None => UnitAnswer::Pass,
        }))
    }

    fn section(
        &self,
        mut tag: Section,
        inside: Vec<String>,
    ) -> impl Future<Output = Result<SectionAnswer, Infallible>> + Send {
        let place = TagPlace { at: self.harness.borrow().host.session.at, inside, attributes: Vec::new() };
        let (name, pairs, content) = (tag.name.clone(), tag.attributes.clone(), tag.content.clone());
        self.record(format_args!("on_tag <{name}>: {content:?}"));
        let ours = Tag { name, pairs, content, attributes: Vec::new() };
        let size = |answer: &TagAnswer| match answer {
            TagAnswer::Content(text) | TagAnswer::Replace(text) => text.len(),
            TagAnswer::Keep => 0,
        };
        let answer = self.call("on_tag", size, |extension| extension.call_tag(&ours, &place));
        let closed = self.tag.as_ref().is_some_and(|options| self.fails_closed(options.on_failure));
        std::future::ready(Ok(match answer {
            Some(TagAnswer::Replace(text)) => SectionAnswer::Replace(text),
            Some(TagAnswer::Content(content)) => {
                tag.content = content;
                SectionAnswer::Keep(tag)
            }
            None if closed => {
                let bytes = tag.open.len() + tag.content.len() + tag.close.len();
                SectionAnswer::Replace(self.marker(bytes, "on_tag did not check it"))
            }
            Some(TagAnswer::Keep) | None => SectionAnswer::Keep(tag),
        }))
    }

    fn closed_handler(&self, name: &str) -> Option<usize> {
        self.closed_tags().iter().any(|pattern| pattern.matches(name)).then_some(0)
    }

    fn skipped(&self, name: &str, why: &str) {
        self.shown.borrow_mut().failures.push(format!("on_tag was not called for <{name}>: {why}"));
    }

    fn withhold(&self, _handler: usize, bytes: usize, why: String) -> String {
        self.marker(bytes, &why)
    }

    fn notice(&self, message: String) {
        self.shown.borrow_mut().failures.push(message);
    }
}

fn stream(thinking: bool) -> TextStream {
    if thinking { TextStream::Thinking } else { TextStream::Answer }
}

/// The result of a future that has nothing to wait for.
fn now<T>(future: impl Future<Output = Result<T, Infallible>>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(done)) => done,
        Poll::Pending => unreachable!("every handler has answered when its future is made"),
    }
}
