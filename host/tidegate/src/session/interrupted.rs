//! What the end of a process, or of its session, has left of a turn.

use turn::rebuild::Resumed;

/// What the end of a process, or closing its session while a question was open, has left of a turn that a session can continue, with [`Session::resume`](crate::Session::resume).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// Tool calls that a person was asked about and that have not begun. They are asked about again, unless the turn that follows has an
    /// input.
    pub questions: usize,
}

impl Interrupted {
    /// `None`: the last turn has come to its end.
    pub(crate) fn of(resumed: &Resumed) -> Option<Self> {
        // A session that was closed while a question was open has calls that wait for the answer.
        if !resumed.is_interrupted && resumed.open_calls.is_none() {
            return None;
        }
        let questions = resumed.open_calls.as_ref().map_or(0, |open| {
            let has_ended = |call| {
                open.begun.contains(call)
                    || open.results.iter().any(|result| result.call == *call)
                    || open.denied.iter().any(|(denied, _)| denied == call)
            };
            open.questions.iter().filter(|(call, _)| !has_ended(call)).count()
        });
        Some(Self { questions })
    }
}
