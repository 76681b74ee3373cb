//! `register` of contract 0.1.0: what an extension wants to be called for, checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flow::{
    Callback, DEFAULT_PRIORITY, DecidedBy, KeptText, OnFailure, OutputMode, Registered, TagPattern, TextOptions,
    TextUnit,
};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::bindings::exports::tidegate::extension::registration as theirs;
use super::bindings::tidegate::extension::types::TextStreamResult as Stream;
use super::{Exports, VERSION, convert};
use crate::failure::{Fault, panicked};
use crate::guest::Guest;
use crate::limits;
use crate::setting::Setting;

/// The attribute with which `on_input_messages` is registered for whole requests.
const WHOLE_REQUESTS: &str = "whole-requests";

/// Why a registration is refused.
#[derive(Debug)]
pub(crate) enum RegisterFault {
    /// The call failed.
    Call(Fault),
    /// It returned something invalid; the string describes it.
    Bad(String),
}

/// Calls `register` and checks what it returns.
pub(crate) fn register(
    exports: &Exports,
    store: &mut Store<Guest>,
    instance: &Instance,
) -> Result<Vec<Registered>, RegisterFault> {
    let engine = |error| RegisterFault::Call(Fault::Engine(error));
    let registration = exports.registration.load(&mut *store, instance).map_err(engine)?;
    let plugin = std::sync::Arc::clone(&store.data().plugin);
    let texts: Vec<Vec<&str>> = plugin.settings.values().map(texts).collect();
    let settings: Vec<_> = plugin
        .settings
        .iter()
        .zip(&texts)
        .map(|((name, value), texts)| (name.as_str(), convert::setting(value, texts)))
        .collect();
    let func = registration.func_register();
    let about = theirs::About { settings: &settings, contract: VERSION, attributes: &[] };
    let called = catch_unwind(AssertUnwindSafe(|| func.call(&mut *store, (about,))));
    let (answer,) = called.map_err(|payload| RegisterFault::Call(panicked(payload.as_ref())))?.map_err(engine)?;
    let registered = answer.map_err(|failure| {
        let message = limits::cut(&failure.message, limits::MESSAGE_BYTES);
        RegisterFault::Call(Fault::Returned(message.to_owned()))
    })?;
    check(registered).map_err(RegisterFault::Bad)
}

fn texts(setting: &Setting) -> Vec<&str> {
    match setting {
        Setting::Texts(texts) => texts.iter().map(String::as_str).collect(),
        Setting::Text(_) | Setting::Number(_) | Setting::Boolean(_) => Vec::new(),
    }
}

fn check(registered: theirs::RegisteredExtension) -> Result<Vec<Registered>, String> {
    let mut callbacks: Vec<Registered> = Vec::new();
    for one in registered.callbacks {
        let whole_requests = one.attributes.iter().any(|(name, value)| name == WHOLE_REQUESTS && value == "true");
        let Asked { callback, on_failure: policy, keep } = callback(one.callback)?;
        let name = callback.kind().as_str();
        let priority = one.priority.unwrap_or(DEFAULT_PRIORITY);
        if callbacks.iter().any(|other| other.kind() == callback.kind()) {
            return Err(format!("{name} is registered twice; each callback may be registered once"));
        }
        let mut registered = Registered::from((callback, priority));
        if let Some(policy) = policy {
            registered.on_failure = on_failure(policy)?;
            registered.decided_by = DecidedBy::Registration;
        }
        if let Some(keep) = keep {
            registered.keep = kept(keep)?;
            registered.keep_by = DecidedBy::Registration;
        }
        registered.whole_requests = whole_requests && registered.callback == Callback::InputMessages;
        if let Some(fault) = registered.fault() {
            return Err(fault);
        }
        callbacks.push(registered);
    }
    Ok(callbacks)
}

fn on_failure(policy: theirs::OnFailure) -> Result<OnFailure, String> {
    match policy {
        theirs::OnFailure::Skip => Ok(OnFailure::Skip),
        theirs::OnFailure::Withhold => Ok(OnFailure::Withhold),
        theirs::OnFailure::Reject => Ok(OnFailure::Reject),
        theirs::OnFailure::Other(name) => Err(unknown("the failure policy", &name)),
    }
}

fn kept(keep: theirs::KeptText) -> Result<KeptText, String> {
    match keep {
        theirs::KeptText::Original => Ok(KeptText::Original),
        theirs::KeptText::Shown => Ok(KeptText::Shown),
        theirs::KeptText::Other(name) => Err(unknown("what is kept:", &name)),
    }
}

/// A callback with what it was registered with, where it says so itself.
struct Asked {
    callback: Callback,
    on_failure: Option<theirs::OnFailure>,
    keep: Option<theirs::KeptText>,
}

fn callback(callback: theirs::Callback) -> Result<Asked, String> {
    let (callback, on_failure, keep) = match callback {
        theirs::Callback::OnInputMessages(options) => (Callback::InputMessages, options.on_failure, None),
        theirs::Callback::OnPlainText(options) => {
            let unit = match options.unit {
                theirs::TextUnit::Line => TextUnit::Line,
                theirs::TextUnit::Paragraph => TextUnit::Paragraph,
                theirs::TextUnit::Whole => TextUnit::Whole,
                theirs::TextUnit::Other(name) => return Err(unknown("the text unit", &name)),
            };
            let text = text_options(unit, options.streams)?;
            (Callback::PlainText(text), options.on_failure, options.keep)
        }
        theirs::Callback::OnTag(options) => {
            (Callback::Tag(tag_patterns(options.patterns)?), options.on_failure, options.keep)
        }
        theirs::Callback::OnLlmOutput(options) => {
            let mode = match options.mode {
                theirs::OutputMode::Observe => OutputMode::Observe,
                theirs::OutputMode::Rewrite => OutputMode::Rewrite,
                theirs::OutputMode::Other(name) => return Err(unknown("the output mode", &name)),
            };
            (Callback::LlmOutput(mode), options.on_failure, None)
        }
        theirs::Callback::TtsrTriggered => (Callback::TtsrTriggered, None, None),
        theirs::Callback::OnToolCall(options) => (Callback::ToolCall, options.on_failure, options.keep),
        theirs::Callback::OnToolResult(options) => (Callback::ToolResult, options.on_failure, options.keep),
        theirs::Callback::Other(name) => return Err(unknown("the callback", &name)),
    };
    Ok(Asked { callback, on_failure, keep })
}

fn unknown(what: &str, name: &str) -> String {
    let name = limits::cut(name, 200);
    format!("{what} `{name}` is not known to this version of the contract; a newer host may know it")
}

fn text_options(unit: TextUnit, streams: Vec<Stream>) -> Result<TextOptions, String> {
    if streams.is_empty() {
        return Ok(unit.into());
    }
    let mut options = TextOptions { unit, answer: false, thinking: false };
    for stream in streams {
        match stream {
            Stream::Answer => options.answer = true,
            Stream::Thinking => options.thinking = true,
            Stream::Other(name) => return Err(unknown("the text stream", &name)),
        }
    }
    Ok(options)
}

fn tag_patterns(patterns: Vec<String>) -> Result<Vec<TagPattern>, String> {
    let parsed = patterns.into_iter().map(|one| one.parse::<TagPattern>().map_err(|error| error.to_string()));
    parsed.collect()
}
