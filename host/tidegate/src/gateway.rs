//! The building blocks of a gateway between agents and their models: finding the conversation of a request, applying its rules and plugins
//! to an exchange, and storing its data. The embedder owns the connections, as `tidegate gateway` does in the crate `serve`.

pub use crate::conversation::{
    Conversation, ConversationCounts, ConversationLimits, ConversationOptions, Conversations, Visit, is_conversation,
};
pub use ::gateway::*;
pub use config::WithoutStore;
pub use flow::ports::{AttemptEnd, Durability, EventSink, Extensions, Journal, JournalProgress};
pub use flow::{Keeping, NoAnswer};
pub use guard::additions::{Addition, Facts, State, Texts};
pub use guard::{Caller, Events, Tally};
pub use rules::{Fed, Gate, InjectionRecord, Judgement, RuleMemory, RuleSession, TurnSpent};
pub use turn::{Feed, History, Hub};
