//! `[turn]` of the operator's file: the limits of a turn.

use crate::Code;
use crate::document::{Document, steps};
use crate::typed::TurnFile;

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnSettings {
    /// Steps of one turn.
    pub max_steps: u32,
    /// How often in a row the same call can have the same result; 0: any number of times.
    pub max_repeats: u32,
    /// How often a request that failed is sent again, whatever class of retried errors it has; `None`: each class has its own maximum.
    pub max_retries: Option<u32>,
}

impl TurnSettings {
    pub(crate) fn of(typed: &TurnFile) -> Self {
        let TurnFile { max_steps, max_repeats, max_retries } = *typed;
        Self { max_steps, max_repeats, max_retries }
    }

    /// Reports a number of repetitions that is none: a call that is made once repeats nothing.
    pub(crate) fn check(document: &mut Document<'_>, typed: &TurnFile) {
        if typed.max_repeats == 1 {
            let help = "write 0 for any number of times, or 2 and more";
            document.error(Code::ConfigOutOfRange, &steps!["turn", "max_repeats"], "`max_repeats` must not be 1", help);
        }
    }
}
