//! What the end of a process, or of its session, has left of a turn.

use flow::Limits;
use turn::rebuild::Resumed;

/// What the end of a process, or closing its session while a person was asked, has left of a turn that a session can continue, with
/// [`Session::resume`](crate::Session::resume).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// Tool calls that a person was asked about and that have not begun. They are asked about again, unless the turn that follows has an
    /// input.
    pub questions: usize,
    /// A decision about a limit was waited for. Its request is made again before the model is asked, under its id.
    pub limit: bool,
}

impl Interrupted {
    /// `None`: the last turn has come to its end. `limits`: those that count by now.
    pub(crate) fn of(resumed: &Resumed, limits: &Limits) -> Option<Self> {
        let questions = resumed.open_calls.as_ref().map_or(0, |open| {
            let has_ended = |call| {
                open.begun.contains(call)
                    || open.results.iter().any(|result| result.call == *call)
                    || open.denied.iter().any(|(denied, _)| denied == call)
            };
            open.questions.iter().filter(|(call, _)| !has_ended(call)).count()
        });
        let limit = resumed.open_calls.is_none()
            && resumed.undecided.is_some_and(|(limit, max)| limits.value(limit).is_some_and(|now| now <= max));
        // What was open when a session was closed waits for a person.
        let is_left = resumed.is_interrupted || resumed.open_calls.is_some() || limit;
        is_left.then_some(Self { questions, limit })
    }

    /// Whether continuing the session asks a person, and the model only after that.
    pub fn is_asking(&self) -> bool {
        self.questions > 0 || self.limit
    }
}
