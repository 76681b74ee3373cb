//! What a request to a model contains, and where each part of it comes from.

pub use flow::{
    AdditionId, BlockOrigin, Condition, ContextMatch, ExtensionPrompt, InvalidTurnRange, LeftOut, NotAVariable, Prompt,
    PromptAddition, PromptText, StateTest, StateValue, SystemBlock, TurnRange,
};
pub use turn::estimated_tokens;
