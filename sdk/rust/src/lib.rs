//! Write a Tidegate extension in Rust.
//!
//! A type, a trait for each callback it wants, and [`export!`]:
//!
//! ```
//! use tidegate_sdk::prelude::*;
//!
//! #[derive(Default)]
//! struct Shout;
//!
//! impl OnPlainText for Shout {
//!     fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
//!         Ok(TextAnswer::replace(text.to_uppercase()))
//!     }
//! }
//! tidegate_sdk::export!(Shout: OnPlainText);
//! # fn main() {}
//! ```
//!
//! [`ToolProvider`] provides tools to the model, and [`Migrate`] updates state that an older version wrote; their names go next to
//! those of callbacks.
//!
//! The crate is a `cdylib`; `tidegate-build` makes a component of it, which exports exactly the callbacks named and
//! imports only the powers used: [`state`], [`session`], [`history`] and [`tools`] (requested in `plugin.toml`), [`settings`],
//! [`log`], [`events`], [`clock`] and [`random`] (always granted). There is no WASI: files, network, environment, `println!` and threads do nothing or fail, and
//! `SystemTime::now`, `Instant::now` and `thread::sleep` trap.
//!
//! Outside of a guest the same code is plain Rust over a host in memory: see [`testing`].

#![deny(unsafe_code)]
#![warn(missing_docs)]
// Only the generated bindings of `guest` are allowed to contain unsafe code; a host build does not contain them.
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

pub mod clock;
pub mod events;
pub mod history;
pub mod log;
pub mod random;
pub mod session;
pub mod settings;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod tools;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[path = "guest.rs"]
pub mod __guest;
mod answer;
#[cfg(target_arch = "wasm32")]
mod convert;
mod error;
mod export;
mod extension;
mod host;
mod migrate;
mod options;
mod provide;
mod tool_calls;
mod values;

pub use answer::{InputAnswer, OutputAnswer, TagAnswer, TextAnswer};
pub use error::{Error, Result};
pub use events::EventError;
pub use export::{Callback, Exported, registration};
#[doc(hidden)]
pub use export::{entry, make as __make};
pub use extension::{Extension, OnInputMessages, OnLlmOutput, OnPlainText, OnTag, TtsrTriggered};
pub use migrate::Migrate;
pub use options::{
    CallOptions, DEFAULT_PRIORITY, InputOptions, KeptText, OnFailure, OutputMode, OutputOptions, ResultOptions,
    TagOptions, TextOptions, TextStream, TextUnit, TtsrOptions,
};
pub use provide::{Tool, ToolAnswer, ToolProvider, progress, progress_at};
pub use session::SessionInfo;
pub use settings::{Setting, SettingError, Settings};
pub use state::{Keep, StateError};
pub use tool_calls::{
    AskedCall, CallAnswer, GivenResult, NewResult, OnToolCall, OnToolResult, ResultAnswer, ResultStage,
};
pub use tools::ToolInfo;
pub use values::{
    Attribute, Blob, Content, LlmOutput, Message, Moment, Part, Role, RuleAction, RuleMatch, RuleStream, StopReason,
    Tag, TagPlace, TextPlace, ToolCall, ToolResult, TtsrEvent, Usage,
};

/// What nearly every extension needs: `use tidegate_sdk::prelude::*;`
pub mod prelude {
    pub use crate::{
        AskedCall, CallAnswer, CallOptions, Extension, GivenResult, InputAnswer, InputOptions, KeptText, LlmOutput,
        Message, Migrate, OnFailure, OnInputMessages, OnLlmOutput, OnPlainText, OnTag, OnToolCall, OnToolResult,
        OutputAnswer, OutputMode, OutputOptions, Part, Result, ResultAnswer, ResultOptions, ResultStage, Role,
        RuleMatch, Settings, Tag, TagAnswer, TagOptions, TagPlace, TextAnswer, TextOptions, TextPlace, TextStream,
        TextUnit, Tool, ToolAnswer, ToolCall, ToolProvider, TtsrEvent, TtsrOptions, TtsrTriggered, bail, clock, events,
        history, log, progress, progress_at, random, session, settings, state, tools,
    };
}

/// The examples of the page for authors, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

/// The first plugin of the project's front page, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct FrontPage;

/// The pages about callbacks and powers: their examples are compiled and run.
#[cfg(doctest)]
mod pages {
    macro_rules! pages {
        ($($name:ident = $page:literal,)*) => {
            $(
                #[doc = include_str!(concat!("../docs/", $page))]
                #[derive(Debug)]
                pub struct $name;
            )*
        };
    }

    pages! {
        Overview = "README.md",
        InputMessages = "callbacks/on_input_messages.md",
        PlainText = "callbacks/on_plain_text.md",
        Tags = "callbacks/on_tag.md",
        Output = "callbacks/on_llm_output.md",
        Ttsr = "callbacks/ttsr_triggered.md",
        ToolCalls = "callbacks/on_tool_call.md",
        ToolResults = "callbacks/on_tool_result.md",
        State = "powers/state.md",
        SessionFacts = "powers/session.md",
        History = "powers/history.md",
        Tools = "powers/tools.md",
        Prompt = "powers/prompt.md",
        ProvideTools = "powers/provide-tools.md",
        Always = "powers/always.md",
    }
}
