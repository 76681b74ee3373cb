//! An answer that is complete: callbacks get it whole, what was not shown yet is shown, and it joins the conversation.

use std::sync::Arc;

use flow::{EventKind, Message, Origin, OutputMode, PluginId, Retained, Role, StopReason};

use super::{Phase, Stop, Turn};
use crate::attempt::Answer;
use crate::beginning::Beginning;
use crate::output::{self, Part, Processed};
use crate::segments::Segments;
use crate::stream::shown_last;
use flow::ports::EventSink;

impl Turn<'_> {
    /// The answer of the model is complete.
    pub(super) async fn accept(&mut self, segments: Segments) -> Result<(), Stop> {
        let live = !self.session.caller.chains.has_rewriter();
        let calls = self.check_calls(&self.attempt.answer.calls()).await?;
        if !self.session.caller.chains.calls.is_empty() {
            self.attempt.answer.show_calls(calls.iter().map(|one| one.shown.as_str()));
        }
        let is_empty = self.attempt.answer.message(&self.attempt.answer.text).is_none();
        let (processed, text) = self.complete(segments, live).await?;
        let message = self.attempt.answer.message(&text);
        let reasoning = self.attempt.answer.reasoning_event(false, message.is_some());
        reasoning.into_iter().for_each(|event| self.session.hub.emit(event));
        let author = Origin::Model;
        self.emit_accepted(author, processed, message.is_some());
        self.accept_attempt();
        if is_empty {
            self.report_empty();
        } else if calls.is_empty() {
            self.report_cut();
        }
        self.report.text.push_str(&self.attempt.answer.shown);
        self.beginning = Beginning::None;
        self.phase = match message {
            Some(answer) => Phase::Calling { answer, calls, results: Vec::new() },
            None => Phase::Between,
        };
        Ok(())
    }

    /// The answer has neither text nor calls: the turn ends with it, and the user has to know why nothing was said.
    fn report_empty(&self) {
        let answer = &self.attempt.answer;
        let what = if answer.blocks.is_empty() { "is empty" } else { "has nothing but reasoning" };
        let why = match &answer.stop {
            Some(StopReason::MaxTokens | StopReason::ContextFull) => {
                "; it has reached its limit of tokens: raise `max_tokens` under `[provider]`, or lower the effort"
            }
            Some(StopReason::Refusal) => "; the model has refused to answer",
            // It is asked again.
            Some(StopReason::Pause) => return,
            _ => "",
        };
        self.session.hub.emit(EventKind::Notice { message: format!("the answer of the model {what}{why}") });
    }

    /// The turn ends with an answer that the model did not end. Without a word, its last line would look like its end.
    fn report_cut(&self) {
        let why = match &self.attempt.answer.stop {
            Some(StopReason::MaxTokens) => {
                "was cut off at its limit of tokens: raise `max_tokens` under `[provider]`, or ask the model to continue"
            }
            Some(StopReason::ContextFull) => "was cut off: the context of the model is full",
            Some(StopReason::Refusal) => "ended because the model has refused to continue",
            _ => return,
        };
        self.session.hub.emit(EventKind::Notice { message: format!("the answer of the model {why}") });
    }

    /// An extension's own answer is processed like a model's, without the gate.
    pub(super) async fn one_reply(&mut self, by: PluginId, text: String) -> Result<(), Stop> {
        self.place.step += 1;
        self.place.attempt = 0;
        self.session.set_place(self.place);
        self.attempt.answer = Answer::of_text(&text);
        self.attempt.answer.keeping = self.session.caller.chains.keeping;
        self.phase = Phase::Answering;
        let segments = Segments::new(Arc::clone(&self.session.caller));
        let (processed, text) = self.complete(segments, false).await?;
        let is_blank = text.trim().is_empty();
        self.emit_accepted(Origin::Plugin(by.clone()), processed, !is_blank);
        if !is_blank {
            self.session.remember(Message::text(Role::Assistant, Origin::Plugin(by), text));
        }
        self.phase = Phase::Between;
        let answer = std::mem::take(&mut self.attempt).answer;
        self.report.text.push_str(&answer.shown);
        Ok(())
    }

    /// Callbacks get the complete answer, and the user what was not shown yet: where it was shown `live`, its end. Returns what the
    /// callbacks made of it, and its text as it joins the conversation.
    ///
    /// Where what the user saw is kept, observers get that too, whatever their place in the chain: what they note is recorded, and what
    /// they keep is on the disk.
    async fn complete(&mut self, mut segments: Segments, live: bool) -> Result<(Processed, String), Stop> {
        let (caller, hub) = (Arc::clone(&self.session.caller), Arc::clone(&self.session.hub));
        let (answer, keeps) = (&mut self.attempt.answer, caller.chains.keeping.answer);
        let mut processed = Processed::default();
        if live {
            let rest = segments.finish().await?;
            shown_last(&hub, answer, rest);
        } else {
            let part = if keeps { Part::Only(OutputMode::Rewrite) } else { Part::Whole };
            let mut output = answer.output();
            processed = output::run(&caller, part, &mut output).await?;
            let text = if processed.withheld { output.text.clone() } else { segments.whole(&output.text).await? };
            shown_last(&hub, answer, text);
            if !keeps {
                return Ok((processed, output.text));
            }
        }
        answer.keep_shown();
        let mut output = answer.output();
        let observed = output::run(&caller, Part::Only(OutputMode::Observe), &mut output).await?;
        processed.annotations.extend(observed.annotations);
        // They are what was made of the original, and lead to it.
        processed.rewrites.clear();
        Ok((processed, output.text))
    }

    /// Emits the record of an answer that was accepted.
    fn emit_accepted(&self, author: Origin, processed: Processed, is_retained: bool) {
        let answer = &self.attempt.answer;
        let blocks = if author == Origin::Model { answer.listed() } else { Vec::new() };
        self.session.hub.emit(EventKind::CognitionOut {
            text: answer.text.clone(),
            keep: answer.keep(),
            model: answer.model.clone(),
            author,
            shown: answer.shown_instead(true),
            partial: None,
            retained: if is_retained { Retained::Answer } else { Retained::Nothing },
            blocks,
            annotations: processed.annotations,
            rewrites: processed.rewrites,
        });
    }
}
