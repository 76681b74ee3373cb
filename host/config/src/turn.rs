//! `[turn]` of the operator's file: the limits of a turn.

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
}
