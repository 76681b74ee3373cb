//! Questions about tool calls, and who answers them.

use crate::{Answer, Preview, QuestionId, RunPosition, SessionId, ToolCall};

use super::BoxFuture;

/// A question: is this call allowed to run?
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Its id, unique in the session. For the session's parent, the id of the session precedes it.
    pub id: QuestionId,
    /// The session that asks. A front end with several sessions has to show it.
    pub session: SessionId,
    /// The agent that makes the call: `main`, or the name of a child agent, whose session is another one than its user's.
    pub agent: String,
    /// The position in the run: turn, step, attempt.
    pub place: RunPosition,
    /// The call, with the arguments that an approval runs: as the model wrote them, or as a person has edited them in an earlier
    /// question.
    pub call: ToolCall,
    /// Which setting requires the question, and why.
    pub reason: String,
    /// What to show: the decoded arguments, and for file tools the change. The same value runs if the answer is yes.
    pub preview: Preview,
    /// What [`Answer::Always`] would allow for the rest of the session: `TOOL`, or `TOOL(GLOB)`. `None`: each such call is asked
    /// about, and not even a time-out approves it.
    pub always: Option<String>,
    /// Milliseconds until the question is answered by itself; `None`: it waits.
    pub timeout_ms: Option<u64>,
    /// Why the last answer of this handler was refused, such as edited arguments that a rule forbids.
    pub refused: Option<String>,
}

impl Question {
    /// A question about a call, with nothing to show and no id.
    pub fn new(session: SessionId, call: ToolCall) -> Self {
        Self {
            id: QuestionId::new(""),
            session,
            agent: "main".to_owned(),
            place: RunPosition::default(),
            call,
            reason: String::new(),
            preview: Preview::default(),
            always: None,
            timeout_ms: None,
            refused: None,
        }
    }
}

/// Asks the user whether a call is allowed to run.
///
/// The questions of a session can be answered elsewhere as well: the first answer counts, and the future of the other is dropped.
pub trait Confirm: Send + Sync {
    /// Asks. Where no user is available, the answer is [`Answer::Unavailable`] with the reason. The questions of all calls of a message
    /// are asked at once, in the order of the calls: this is called for a question after it was called for the one before and the future was
    /// polled. An answer that is refused is asked for again, a few times, with the reason in [`Question::refused`]. A
    /// panic counts as [`Answer::Unavailable`].
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Who answers, for the record.
    fn name(&self) -> &str {
        "the confirmation handler"
    }
}

/// Asks nobody: a question waits until it is answered elsewhere, or its time is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnsweredElsewhere;

impl Confirm for AnsweredElsewhere {
    fn confirm<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::pending())
    }
}
