//! What a gateway between agents and their models is made of: which conversation a request belongs to, what its rules and plugins do to one
//! exchange, and what is kept of it. The connections are the embedder's, as those of `tidegate gateway` are in the crate `serve`.

pub use crate::conversation::{
    Conversation, ConversationCounts, ConversationLimits, ConversationOptions, Conversations, Visit,
};
pub use ::gateway::*;
pub use config::WithoutStore;
pub use flow::ports::{AttemptEnd, Durability, EventSink, Extensions, Journal, JournalProgress};
pub use flow::{Keeping, NoAnswer};
pub use guard::{Caller, Events, Tally};
pub use rules::{Fed, Gate, InjectionRecord, Judgement, RuleMemory, RuleSession, TurnSpent};
pub use turn::{Feed, History, Hub};
