//! Contract 0.1.0: its generated types, its powers, its callbacks, and the conversion of both to the host's own values.

mod answers;
#[allow(
    clippy::all,
    missing_debug_implementations,
    unreachable_pub,
    unsafe_code,
    unused_qualifications,
    reason = "generated; the unsafe code in it is wasmtime's own, for values that cross"
)]
pub(crate) mod bindings;
mod calls;
mod convert;
mod powers;
mod provider;
mod register;
mod tool_calls;

use std::collections::BTreeSet;

use flow::CallbackKind;
use wasmtime::component::{HasSelf, Instance, Linker};
use wasmtime::{AsContextMut as _, Store};

use self::bindings::exports::tidegate::extension as exports;
use self::bindings::tidegate::extension as imports;
use crate::check::{self, Surface};
use crate::guest::{Guest, Ready};
use crate::interface::Interface;

pub(crate) use self::calls::{Call, InputMessages, LlmOutput, PlainText, TagSection, TtsrTriggered, migrate};
pub(crate) use self::provider::{Lines, ToolRun, ToolText, tools};
pub(crate) use self::register::{RegisterFault, register};
pub(crate) use self::tool_calls::{CallAsked, ResultGiven};

/// The version that this host implements: components of the same minor version up to this one are accepted.
pub(crate) const VERSION: &str = "0.1.0";
/// The package all interfaces are in.
pub(crate) const PACKAGE: &str = "tidegate:extension";

/// The interface that every extension exports.
pub(crate) const REGISTRATION: &str = "registration";
/// The interface of an extension that provides tools.
pub(crate) const TOOL_PROVIDER: &str = "tool-provider";
/// The interface of an extension that migrates state of its older versions.
pub(crate) const MIGRATION: &str = "migration";

const INPUT: &str = "on-input-messages";
const TEXT: &str = "on-plain-text";
const TAG: &str = "on-tag";
const OUTPUT: &str = "on-llm-output";
const TTSR: &str = "ttsr-triggered";
const TOOL_CALL: &str = "on-tool-call";
const TOOL_RESULT: &str = "on-tool-result";

/// The interface of a callback.
pub(crate) fn interface(callback: CallbackKind) -> &'static str {
    match callback {
        CallbackKind::InputMessages => INPUT,
        CallbackKind::PlainText => TEXT,
        CallbackKind::Tag => TAG,
        CallbackKind::LlmOutput => OUTPUT,
        CallbackKind::TtsrTriggered => TTSR,
        CallbackKind::ToolCall => TOOL_CALL,
        CallbackKind::ToolResult => TOOL_RESULT,
    }
}

/// Adds the interfaces that a plugin imports, and no others.
pub(crate) fn link(linker: &mut Linker<Guest>, interfaces: &BTreeSet<Interface>) -> wasmtime::Result<()> {
    imports::types::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    for interface in interfaces {
        match interface {
            Interface::Clock => imports::clock::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::Events => imports::events::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::History => imports::history::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::Random => imports::random::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::Log => imports::log::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::Session => imports::session::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::Settings => imports::settings::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::State => imports::state::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
            Interface::ToolProgress => {
                imports::tool_progress::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
            }
            Interface::Tools => imports::tools::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?,
        }
    }
    Ok(())
}

/// Where a component's callbacks and its `tool-provider` are; found once per plugin.
pub(crate) struct Exports {
    registration: exports::registration::GuestIndices,
    input: Option<exports::on_input_messages::GuestIndices>,
    text: Option<exports::on_plain_text::GuestIndices>,
    tag: Option<exports::on_tag::GuestIndices>,
    output: Option<exports::on_llm_output::GuestIndices>,
    ttsr: Option<exports::ttsr_triggered::GuestIndices>,
    tool_call: Option<exports::on_tool_call::GuestIndices>,
    tool_result: Option<exports::on_tool_result::GuestIndices>,
    tools: Option<exports::tool_provider::GuestIndices>,
    migration: Option<exports::migration::GuestIndices>,
}

/// The callbacks of one instance.
pub(crate) struct Calls {
    input: Option<exports::on_input_messages::Guest>,
    text: Option<exports::on_plain_text::Guest>,
    tag: Option<exports::on_tag::Guest>,
    output: Option<exports::on_llm_output::Guest>,
    ttsr: Option<exports::ttsr_triggered::Guest>,
    tool_call: Option<exports::on_tool_call::Guest>,
    tool_result: Option<exports::on_tool_result::Guest>,
    tools: Option<exports::tool_provider::Guest>,
    migration: Option<exports::migration::Guest>,
}

impl Exports {
    /// Finds what `surface` exports.
    pub(crate) fn find(ready: &Ready, surface: &Surface) -> wasmtime::Result<Self> {
        let has = |kind| surface.callbacks.contains(&kind);
        Ok(Self {
            registration: exports::registration::GuestIndices::new(ready)?,
            input: has(CallbackKind::InputMessages)
                .then(|| exports::on_input_messages::GuestIndices::new(ready))
                .transpose()?,
            text: has(CallbackKind::PlainText).then(|| exports::on_plain_text::GuestIndices::new(ready)).transpose()?,
            tag: has(CallbackKind::Tag).then(|| exports::on_tag::GuestIndices::new(ready)).transpose()?,
            output: has(CallbackKind::LlmOutput)
                .then(|| exports::on_llm_output::GuestIndices::new(ready))
                .transpose()?,
            ttsr: has(CallbackKind::TtsrTriggered)
                .then(|| exports::ttsr_triggered::GuestIndices::new(ready))
                .transpose()?,
            tool_call: has(CallbackKind::ToolCall)
                .then(|| exports::on_tool_call::GuestIndices::new(ready))
                .transpose()?,
            tool_result: has(CallbackKind::ToolResult)
                .then(|| exports::on_tool_result::GuestIndices::new(ready))
                .transpose()?,
            tools: surface.provides_tools.then(|| exports::tool_provider::GuestIndices::new(ready)).transpose()?,
            migration: surface.migrates.then(|| exports::migration::GuestIndices::new(ready)).transpose()?,
        })
    }

    /// Whether the component exports `migration`.
    pub(crate) fn migrate(&self) -> bool {
        self.migration.is_some()
    }

    /// Whether the component exports `tool-provider`.
    pub(crate) fn provide_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Takes the callbacks out of an instance; their types are checked here.
    pub(crate) fn load(&self, store: &mut Store<Guest>, instance: &Instance) -> wasmtime::Result<Calls> {
        let mut store = store.as_context_mut();
        Ok(Calls {
            input: named(INPUT, self.input.as_ref().map(|at| at.load(&mut store, instance)))?,
            text: named(TEXT, self.text.as_ref().map(|at| at.load(&mut store, instance)))?,
            tag: named(TAG, self.tag.as_ref().map(|at| at.load(&mut store, instance)))?,
            output: named(OUTPUT, self.output.as_ref().map(|at| at.load(&mut store, instance)))?,
            ttsr: named(TTSR, self.ttsr.as_ref().map(|at| at.load(&mut store, instance)))?,
            tool_call: named(TOOL_CALL, self.tool_call.as_ref().map(|at| at.load(&mut store, instance)))?,
            tool_result: named(TOOL_RESULT, self.tool_result.as_ref().map(|at| at.load(&mut store, instance)))?,
            tools: named(TOOL_PROVIDER, self.tools.as_ref().map(|at| at.load(&mut store, instance)))?,
            migration: named(MIGRATION, self.migration.as_ref().map(|at| at.load(&mut store, instance)))?,
        })
    }
}

/// The functions of an export, if there is one; an error names it, because the engine does not.
fn named<T>(interface: &str, loaded: Option<wasmtime::Result<T>>) -> wasmtime::Result<Option<T>> {
    let about = |error: wasmtime::Error| error.context(format!("the export `{}`", check::full(interface)));
    loaded.transpose().map_err(about)
}
