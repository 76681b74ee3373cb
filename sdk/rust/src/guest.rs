//! The boundary of the contract, in a guest only: generated bindings, one small world per callback, and the exports that
//! pass each call to the author's type.
//!
//! The bindings are checked in, so that no plugin builds their generator. `tests/bindings.rs` writes them and compares them with
//! the contract.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::{
    Error, Exported, Migrate, OnInputMessages, OnLlmOutput, OnPlainText, OnTag, OnToolCall, OnToolResult, Settings,
    ToolAnswer, ToolProvider, TtsrTriggered, convert, host, registration,
};

/// Bindings of the base world: registration and the log.
#[rustfmt::skip]
#[path = "bindings/base.rs"]
pub mod base;
/// Bindings of the powers. A component imports those that are called; the linker drops the rest.
#[rustfmt::skip]
#[path = "bindings/powers.rs"]
pub mod powers;
/// Bindings of the world `with-on-input-messages`; this and those below share the base world's types.
#[rustfmt::skip]
#[path = "bindings/on_input_messages.rs"]
pub mod on_input_messages;
/// Bindings of the world `with-on-plain-text`.
#[rustfmt::skip]
#[path = "bindings/on_plain_text.rs"]
pub mod on_plain_text;
/// Bindings of the world `with-on-tag`.
#[rustfmt::skip]
#[path = "bindings/on_tag.rs"]
pub mod on_tag;
/// Bindings of the world `with-on-llm-output`.
#[rustfmt::skip]
#[path = "bindings/on_llm_output.rs"]
pub mod on_llm_output;
/// Bindings of the world `with-on-tool-call`.
#[rustfmt::skip]
#[path = "bindings/on_tool_call.rs"]
pub mod on_tool_call;
/// Bindings of the world `with-on-tool-result`.
#[rustfmt::skip]
#[path = "bindings/on_tool_result.rs"]
pub mod on_tool_result;
/// Bindings of the world `with-ttsr-triggered`.
#[rustfmt::skip]
#[path = "bindings/ttsr_triggered.rs"]
pub mod ttsr_triggered;
/// Bindings of the world `with-migration`.
#[rustfmt::skip]
#[path = "bindings/migration.rs"]
pub mod migration;
/// Bindings of the world `with-tool-provider`.
#[rustfmt::skip]
#[path = "bindings/tool_provider.rs"]
pub mod tool_provider;

use base::exports::tidegate::extension::registration as wit_registration;
use base::tidegate::extension::types::{Content, Failure, Message, ToolCall};
use migration::exports::tidegate::extension::migration as wit_migration;
use on_input_messages::exports::tidegate::extension::on_input_messages as wit_input;
use on_llm_output::exports::tidegate::extension::on_llm_output as wit_output;
use on_plain_text::exports::tidegate::extension::on_plain_text as wit_text;
use on_tag::exports::tidegate::extension::on_tag as wit_tag;
use on_tool_call::exports::tidegate::extension::on_tool_call as wit_call;
use on_tool_result::exports::tidegate::extension::on_tool_result as wit_result;
use tool_provider::exports::tidegate::extension::tool_provider as wit_tools;
use ttsr_triggered::exports::tidegate::extension::ttsr_triggered as wit_ttsr;

/// The component's exports, for the extension `E`.
#[derive(Debug)]
pub struct Guest<E>(PhantomData<E>);

impl<E: Exported> wit_registration::Guest for Guest<E> {
    fn register(about: wit_registration::About) -> Result<wit_registration::RegisteredExtension, Failure> {
        hook_panics();
        let settings = Settings::given(about.settings.into_iter().map(|(key, value)| (key, value.into())));
        let callbacks = registration::<E>(&settings).map_err(failure)?.into_iter().map(Into::into).collect();
        Ok(wit_registration::RegisteredExtension { callbacks, attributes: Vec::new() })
    }
}

impl<E: Exported + OnInputMessages> wit_input::Guest for Guest<E> {
    fn on_input_messages(messages: Vec<Message>) -> Result<wit_input::InputAnswer, Failure> {
        let messages = convert::list(messages);
        call::<E, _>(|extension| extension.on_input_messages(messages)).map(Into::into)
    }
}

impl<E: Exported + OnPlainText> wit_text::Guest for Guest<E> {
    fn on_plain_text(text: String, place: wit_text::TextPlace) -> Result<wit_text::TextAnswer, Failure> {
        let place = place.into();
        call::<E, _>(|extension| extension.on_plain_text(&text, &place)).map(Into::into)
    }
}

impl<E: Exported + OnTag> wit_tag::Guest for Guest<E> {
    fn on_tag(tag: wit_tag::Tag, place: wit_tag::TagPlace) -> Result<wit_tag::TagAnswer, Failure> {
        let (tag, place) = (tag.into(), place.into());
        call::<E, _>(|extension| extension.on_tag(&tag, &place)).map(Into::into)
    }
}

impl<E: Exported + OnLlmOutput> wit_output::Guest for Guest<E> {
    fn on_llm_output(output: wit_output::LlmOutput) -> Result<wit_output::OutputAnswer, Failure> {
        let output = output.into();
        call::<E, _>(|extension| extension.on_llm_output(&output)).map(Into::into)
    }
}

impl<E: Exported + TtsrTriggered> wit_ttsr::Guest for Guest<E> {
    fn ttsr_triggered(event: wit_ttsr::TtsrEvent) -> Result<(), Failure> {
        let event = event.into();
        call::<E, _>(|extension| extension.ttsr_triggered(&event))
    }
}

impl<E: Exported + OnToolCall> wit_call::Guest for Guest<E> {
    fn on_tool_call(asked: wit_call::AskedCall) -> Result<wit_call::CallAnswer, Failure> {
        let asked = asked.into();
        call::<E, _>(|extension| extension.on_tool_call(&asked)).map(Into::into)
    }
}

impl<E: Exported + OnToolResult> wit_result::Guest for Guest<E> {
    fn on_tool_result(given: wit_result::GivenResult) -> Result<wit_result::ResultAnswer, Failure> {
        let given = given.into();
        call::<E, _>(|extension| extension.on_tool_result(&given)).map(Into::into)
    }
}

impl<E: Exported + Migrate> wit_migration::Guest for Guest<E> {
    fn migrate(from: u32) -> Result<(), Failure> {
        call::<E, _>(|extension| extension.migrate(from))
    }
}

impl<E: Exported + ToolProvider> wit_tools::Guest for Guest<E> {
    fn tools() -> Vec<wit_tools::Tool> {
        // The settings that cannot be used have failed `register` before.
        call::<E, _>(|extension| Ok(extension.tools())).map(convert::list).unwrap_or_default()
    }

    fn call(call: ToolCall) -> Result<wit_tools::ToolAnswer, Failure> {
        let asked = call.into();
        let answered = on_instance::<E, _>(|extension| match extension.call(&asked) {
            Err(error) if error.rejects() => Ok(ToolAnswer::Rejected(error.into_message())),
            answer => answer,
        });
        let outcome = match answered.map_err(failure)? {
            ToolAnswer::Text(text) => wit_tools::ToolOutcome::Done(vec![Content::Text(text)]),
            ToolAnswer::Rejected(reason) => wit_tools::ToolOutcome::Rejected(reason),
        };
        Ok(wit_tools::ToolAnswer { outcome, attributes: Vec::new() })
    }
}

/// Runs a callback on the session's instance, which is made when there is none.
fn call<E: Exported, T>(run: impl FnOnce(&mut E) -> crate::Result<T>) -> Result<T, Failure> {
    on_instance(run).map_err(failure)
}

fn on_instance<E: Exported, T>(run: impl FnOnce(&mut E) -> crate::Result<T>) -> crate::Result<T> {
    E::slot().with_borrow_mut(|slot| {
        let extension = match slot {
            Some(extension) => extension,
            None => {
                hook_panics();
                slot.insert(E::make(&Settings::host()).map_err(|error| error.while_doing("cannot start"))?)
            }
        };
        run(extension)
    })
}

fn failure(error: Error) -> Failure {
    Failure { message: error.into_message(), attributes: Vec::new() }
}

/// Once in an instance: panics report message and location to the host before they trap, since the trap itself has no
/// message.
fn hook_panics() {
    thread_local! {
        static HOOKED: Cell<bool> = const { Cell::new(false) };
    }
    if HOOKED.replace(true) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic whose payload is no text");
        let (file, line, column) =
            panic.location().map_or(("unknown", 0, 0), |place| (place.file(), place.line(), place.column()));
        host::panic(message, file, line, column);
    }));
}
