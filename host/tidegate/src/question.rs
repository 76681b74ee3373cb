//! Questions about tool calls: a call whose permission is `ask` runs when somebody approves it.
//!
//! A front end implements [`Confirm`], or answers by id with [`Session::answer`](crate::Session::answer); many questions can be open at once.
//!
//! ```
//! use tidegate::BoxFuture;
//! use tidegate::question::{Answer, Confirm, Question};
//!
//! /// Approves what changes no file, and refuses the rest with a reason that the model gets.
//! struct ReadOnly;
//!
//! impl Confirm for ReadOnly {
//!     fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
//!         Box::pin(async move {
//!             match &question.preview.diff {
//!                 None => Answer::Approve,
//!                 Some(_) => Answer::Deny { reason: "this window is read-only".to_owned() },
//!             }
//!         })
//!     }
//! }
//! ```

pub use crate::session::confirm::Nobody;
pub use flow::ports::{AnswerLog, AnsweredElsewhere, Confirm, Question};
pub use flow::{Ambiguous, Answer, Argument, Confirmation, Preview, QuestionId};
pub use turn::{AnswerError, EditError};
