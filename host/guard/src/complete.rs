//! An answer that is complete: callbacks get it whole, and what was not shown of it yet is shown.

use std::sync::Arc;

use flow::{CallFailure, EventKind, Origin, OutputMode, Retained};

use crate::attempt::Answer;
use crate::chain::Caller;
use crate::output::{self, Part, Processed};
use crate::segments::Segments;
use crate::shown::shown_last;

/// An answer that callbacks have had whole.
#[derive(Debug)]
pub struct Completed {
    /// Its text as it joins the conversation.
    pub text: String,
    processed: Processed,
}

impl Completed {
    /// Gives the complete answer to callbacks, and the user what was not shown yet: where it was shown `live`, its end.
    ///
    /// Where what the user saw is kept, observers get that too, whatever their place in the chain: what they note is recorded, and what
    /// they keep is on the disk.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub async fn new(
        caller: &Arc<Caller>,
        answer: &mut Answer,
        mut segments: Segments,
        live: bool,
    ) -> Result<Self, CallFailure> {
        let keeps = caller.chains.keeping.answer;
        let mut processed = Processed::default();
        if live {
            let rest = segments.finish().await?;
            shown_last(&*caller.events, answer, rest);
        } else {
            let part = if keeps { Part::Only(OutputMode::Rewrite) } else { Part::Whole };
            let mut output = answer.output();
            processed = output::run(caller, part, &mut output).await?;
            let text = if processed.withheld { output.text.clone() } else { segments.whole(&output.text).await? };
            shown_last(&*caller.events, answer, text);
            if !keeps {
                return Ok(Self { text: output.text, processed });
            }
        }
        answer.keep_shown();
        let mut output = answer.output();
        let observed = output::run(caller, Part::Only(OutputMode::Observe), &mut output).await?;
        processed.annotations.extend(observed.annotations);
        // They are what was made of the original, and lead to it.
        processed.rewrites.clear();
        Ok(Self { text: output.text, processed })
    }

    /// The event of the answer, which is accepted.
    pub fn event(self, answer: &Answer, author: Origin, is_retained: bool) -> EventKind {
        let blocks = if author == Origin::Model { answer.listed() } else { Vec::new() };
        EventKind::CognitionOut {
            text: answer.text.clone(),
            keep: answer.keep(),
            model: answer.model.clone(),
            author,
            shown: answer.shown_instead(true),
            partial: None,
            retained: if is_retained { Retained::Answer } else { Retained::Nothing },
            blocks,
            annotations: self.processed.annotations,
            rewrites: self.processed.rewrites,
        }
    }
}
