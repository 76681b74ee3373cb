//! Conventions that front ends of others speak already, as pure state machines: lines of the shown stream become what a convention has for
//! them, and what its clients send becomes commands of a session. No I/O, no clock.
//!
//! | module | what it does |
//! |---|---|
//! | `turn`, `calls`, `restored`, `act` | what a turn shows, without the words of a convention: text that a rule makes void, questions, calls |
//! | `asides` | lines that no convention has a place for |
//! | `post` | what a client wants: a prompt, answers, or to see the turn |
//! | `ui_stream` | the UI message stream of the AI SDK |
//! | `ag_ui` | AG-UI |

mod act;
pub(crate) mod ag_ui;
mod asides;
mod calls;
mod post;
mod restored;
#[cfg(test)]
mod tests;
mod turn;
pub(crate) mod ui_stream;

pub(crate) use self::act::Act;
pub(crate) use self::asides::{asked_by_child, open_of_child};
pub(crate) use self::calls::Open;
pub(crate) use self::post::{Post, PostError, Reply, attachment};
pub(crate) use self::restored::Has;
pub(crate) use self::turn::Turn;
