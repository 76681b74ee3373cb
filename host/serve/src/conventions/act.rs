//! What a turn shows, one act after another.

use chat::BlockKind;
use record::{Preview, Tokens};
use serde_json::Value;

/// Something that a turn shows. Text of a line that is not in the shown stream has no place here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// A message that began the turn.
    Said(Said),
    /// A message that joined the turn while it ran.
    Steered(Said),
    /// A step begins: an answer, and the calls in it.
    StepStarted,
    /// Text or reasoning begins.
    PartStarted(Part),
    /// More of the text or the reasoning that has begun.
    PartGrew(Part, String),
    /// Nothing is added to it any more, unless all of the answer becomes void.
    PartEnded(Part),
    /// What was shown of the answer since the step, or since [`Act::Left`], is void. What stays valid is shown again after this.
    Voided,
    /// What was shown of the answer stays, and the step has another answer after it.
    Left,
    /// A call and its arguments, also where it was shown with others before.
    Called(Called),
    /// A person is asked about a call.
    Asked(Asked),
    /// It was decided about a call.
    Answered(Answered),
    /// A call is over.
    Ended(Ended),
    /// The answer of the step is complete, and its calls are over.
    StepFinished,
    /// A line that conventions have no place for.
    Aside(Aside),
    /// The turn is over.
    Finished(Box<Finished>),
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// That of the client where it has given one, or else one that is made of the number of the event.
    pub(crate) id: String,
    pub(crate) text: String,
}

/// A contiguous part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// `TURN.STEP.NUMBER`, unique in the session.
    pub(crate) id: String,
    pub(crate) kind: BlockKind,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Called {
    /// `TURN.STEP.CALL`: the ids of a model are not unique in a session.
    pub(crate) call: String,
    pub(crate) tool: String,
    /// The arguments; `None` where they were not shown, because the call neither ran nor was asked about.
    pub(crate) input: Option<Value>,
}

/// A question about a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The id of the question.
    pub(crate) question: String,
    /// The id of the call, made as in [`Called`].
    pub(crate) call: String,
    pub(crate) tool: String,
    /// Which setting asks.
    pub(crate) reason: String,
    pub(crate) preview: Preview,
    /// What `always` would allow.
    pub(crate) always: Option<String>,
    /// When the question is answered by itself, in milliseconds since 1970-01-01 UTC.
    pub(crate) expires_ms: Option<u64>,
}

/// A decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The id of the question.
    pub(crate) question: String,
    /// The id of the call, made as in [`Called`].
    pub(crate) call: String,
    pub(crate) is_approved: bool,
    /// `approved`, `denied` and so on.
    pub(crate) decision: Option<String>,
    /// Of a denial.
    pub(crate) reason: Option<String>,
    /// Who has decided; `None`: nobody.
    pub(crate) by: Option<String>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The id of the call, made as in [`Called`].
    pub(crate) call: String,
    pub(crate) result: Ending,
    /// The change that it made, as a unified diff.
    pub(crate) diff: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) waited_ms: Option<u64>,
}

/// How a call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ran, and gave this.
    Done(String),
    /// It ran and failed.
    Failed(String),
    /// Whoever was asked has denied it.
    Denied,
    /// It was refused. Why is not shown: it can quote what a rule has found.
    NotRun,
    /// The turn ended before its result.
    Cancelled,
}

impl Ending {
    /// What a person reads of a call that did not succeed.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Done(output) | Self::Failed(output) => output,
            Self::Denied => "The call was denied.",
            Self::NotRun => "The call was refused, and did not run.",
            Self::Cancelled => "The turn ended before the result of the call.",
        }
    }
}

/// A line of the shown stream that conventions have no place for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aside {
    /// Two with the same name and id are two versions of one thing, of which the later counts.
    pub(crate) id: String,
    /// The type of the line.
    pub(crate) name: String,
    /// The payload of the line, with the ids of calls that front ends have.
    pub(crate) payload: Value,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Finished {
    pub(crate) turn: u32,
    /// As in `turn_finish`.
    pub(crate) status: String,
    /// Why it did not complete, in one sentence for the person.
    pub(crate) error: Option<String>,
    /// The last answer ended at the most tokens that it can have.
    pub(crate) is_cut_off: bool,
    /// Of all steps that were seen.
    pub(crate) usage: Tokens,
    /// In US dollars; `None`: no price is known.
    pub(crate) cost: Option<f64>,
    /// The model that answered last.
    pub(crate) model: Option<String>,
}

impl Finished {
    /// Adds what a step took.
    pub(super) fn add(&mut self, tokens: &Tokens, cost: Option<f64>) {
        let usage = &mut self.usage;
        for (sum, more) in [
            (&mut usage.input_tokens, tokens.input_tokens),
            (&mut usage.output_tokens, tokens.output_tokens),
            (&mut usage.cache_read_tokens, tokens.cache_read_tokens),
            (&mut usage.cache_write_tokens, tokens.cache_write_tokens),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
        if let Some(cost) = cost {
            *self.cost.get_or_insert(0.0) += cost;
        }
    }
}
