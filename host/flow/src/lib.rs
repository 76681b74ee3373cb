//! The values that travel through a turn, and the traits of what it needs from outside ([`ports`]).
//!
//! A prompt goes to a model, deltas come back, the gate gives a verdict, segments are shown, events say what
//! happened. This crate holds those values and the rules that make them valid. It does no I/O, reads no clock and
//! knows no wire format: each edge (provider, transcript, contract) owns its own types and converts here.
#![forbid(unsafe_code)]

mod address;
mod arguments;
mod catalogue;
mod condition;
mod confirmation;
mod declared;
mod delta;
mod diagnostic;
mod error;
mod event;
mod exact;
mod extension;
mod ids;
mod image;
mod input;
mod keep;
mod left_out;
mod limit;
mod message;
mod on_failure;
mod plan;
pub mod ports;
mod preview;
mod prompt;
mod provided;
mod reasons;
mod retry;
mod rule_origin;
#[cfg(feature = "schema")]
pub mod schema;
mod segment;
mod spans;
mod stream;
mod tag_pattern;
pub mod text;
mod tool;
mod tool_callback;
mod verdict;
mod words;

pub use address::{Address, InvalidAddress};
pub use arguments::plain_arguments;
pub use catalogue::{Aggregate, EventCatalogue, EventTraits, EventType};
pub use condition::{Condition, ContextMatch, InvalidTurnRange, StateTest, StateValue, TurnRange};
pub use confirmation::{Answer, Confirmation};
pub use declared::ToolArguments;
pub use delta::{BlockId, Delta, StopReason, Usage};
pub use diagnostic::{Diagnostic, DiagnosticCode, Label, Location, Severity, SourceFile, Subject};
pub use error::{ErrorFacts, ErrorMetadata, ModelError};
pub use event::{
    AnswerBlock, CallbackOutcome, CallbackReport, Event, EventKind, EventView, HoldOutcome, Partial, Retained,
    RunPosition, StepEnd, TurnStatus,
};
pub use exact::{MAX_MARKS, exact, is_blank, is_hidden, is_mark};
pub use extension::{
    Annotation, CallFailure, Callback, CallbackKind, DEFAULT_PRIORITY, FailureCause, InputAnswer, ModelOutput,
    NoAnswer, OutputAnswer, OutputMode, Registration, TagAnswer, TagPlace, TextAnswer, TextOptions, TextPlace,
    TextStream, TextUnit,
};
pub use ids::{CallId, InvalidPluginId, PluginId, QuestionId, SessionId};
pub use image::{IMAGE_TYPES, Image, ImageError, MAX_IMAGE_BYTES};
pub use input::{InputId, InputWay, Receipt, Withdrawal};
pub use keep::Keeping;
pub use left_out::{LeftOut, grouped};
pub use limit::{Charged, LimitDecision, LimitRequest, Limits, Price, Spend};
pub use message::{Message, Origin, Part, Role};
pub use on_failure::{DecidedBy, OnFailure, Registered, withheld};
pub use plan::{PlanEntry, PlanStatus};
pub use preview::{Ambiguous, Argument, Preview};
pub use prompt::{AdditionId, BlockOrigin, ExtensionPrompt, Prompt, PromptAddition, PromptText, SystemBlock};
pub use provided::{Called, ProvidedTool, ToolOutcome, ToolReport};
pub use reasons::Reasons;
pub use retry::{Classified, ErrorPattern, InvalidMessagePattern, MessagePattern, NamedSizes, RetryPolicy, RetryTable};
pub use rule_origin::{RuleLayer, RuleOrigin};
pub use segment::{Segment, Tag};
pub use spans::SPANS;
pub use stream::StreamKind;
pub use tag_pattern::{InvalidTagPattern, TagPattern};
pub use tool::{Permission, ToolCall, ToolOutput, ToolResult, ToolSpec};
pub use tool_callback::{AskedCall, CallAnswer, GivenResult, ResultAnswer, ResultStage};
pub use verdict::{Evidence, RuleMatch, RuleRecord};
pub use words::{
    Action, BreakerScope, BreakerState, CompactionCause, CompactionMethod, ErrorClass, FailureKind, KeptText,
    KeySource, Limit, NotAVariable, PermissionMode, Position, Power, ProviderKind, RegistrationAction, RetryHeader,
    RetryWait, SettingKind, SettingValue, StateBackend, SuspendReason, ThreadMode, TranscriptBackend,
};
