//! The callbacks around calls of tools: traits, what they get, and what they answer.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Attribute, CallOptions, Content, Moment, Result, ResultOptions, ToolCall};

/// Handles calls of tools before anything else is decided about them: built-in tools, those of other extensions, of servers and of whoever
/// embeds the host, and child agents.
pub trait OnToolCall: Sized + 'static {
    /// How the callback is registered.
    fn call_options(&self) -> CallOptions {
        CallOptions::default()
    }

    /// Handles one call of an accepted answer, before its permission is looked at and anybody is asked. Where a person edits the
    /// arguments, it is called with those.
    ///
    /// # Errors
    /// According to its failure policy: the next extension gets the call as this one received it, or the call does not run.
    fn on_tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer>;
}

/// Handles results of tools before the model and the user get them.
pub trait OnToolResult: Sized + 'static {
    /// How the callback is registered.
    fn result_options(&self) -> ResultOptions {
        ResultOptions::default()
    }

    /// Handles the result of one call that has run, whether it failed or not; or, as [`ResultStage::Preview`], the change that a person
    /// who is asked about a call would be shown.
    ///
    /// # Errors
    /// According to its failure policy: the next extension gets the result as this one received it, or it is withheld.
    fn on_tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer>;
}

/// A call that the model made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedCall {
    /// The position in the run.
    pub at: Moment,
    /// The call, with its arguments as earlier extensions left them: one JSON object, which repeats no key.
    pub call: ToolCall,
    /// Whether a person has written these arguments in the place of those of the model.
    pub edited: bool,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl AskedCall {
    /// A call of `tool` with these arguments: a string of JSON, or a `serde_json::Value`.
    pub fn new(tool: impl Into<String>, arguments: impl std::fmt::Display) -> Self {
        Self { call: ToolCall::new("call-1", tool, arguments.to_string()), ..Self::default() }
    }

    /// Reads the arguments into a type that implements `Deserialize`.
    ///
    /// # Errors
    /// They are not a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_str(&self.call.arguments)?)
    }

    /// Calls `map` with each string of the arguments, decoded, keys of objects included, and returns the arguments with what it returned
    /// in their places. `None` where it returned nothing.
    ///
    /// # Errors
    /// Two keys of an object would be the same, so that one of the members would be lost. Or the arguments are not JSON, which hosts do not
    /// pass.
    pub fn map_strings(&self, mut map: impl FnMut(&str) -> Option<String>) -> Result<Option<Value>> {
        let mut arguments: Value = self.read()?;
        Ok(changed(&mut arguments, &mut map)?.then_some(arguments))
    }
}

fn changed(value: &mut Value, map: &mut impl FnMut(&str) -> Option<String>) -> Result<bool> {
    Ok(match value {
        Value::String(text) => match map(text) {
            Some(new) => {
                *text = new;
                true
            }
            None => false,
        },
        Value::Array(items) => {
            let mut any = false;
            for item in items {
                any |= changed(item, map)?;
            }
            any
        }
        Value::Object(members) => {
            let mut any = false;
            for (key, mut member) in std::mem::take(members) {
                any |= changed(&mut member, map)?;
                let new = map(&key);
                any |= new.is_some();
                if members.insert(new.unwrap_or(key), member).is_some() {
                    crate::bail!("two keys of an object in the arguments would be the same");
                }
            }
            any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    })
}

/// Answer to `on_tool_call`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallAnswer {
    /// Keeps the call as it was given.
    Pass,
    /// This JSON object in the place of the arguments: rules see it, a person who is asked is shown it, and it runs.
    Replace(String),
    /// The call does not run. No further extension is asked.
    Deny {
        /// For the model: what is wrong, and what to do instead.
        reason: String,
        /// What is shown and kept of the arguments: a JSON object.
        shown: Option<String>,
    },
}

impl CallAnswer {
    /// These arguments, which become a JSON object, in the place of those of the call.
    ///
    /// # Errors
    /// They cannot be written as JSON.
    pub fn replace(arguments: impl Serialize) -> Result<Self> {
        Ok(Self::Replace(serde_json::to_string(&arguments)?))
    }

    /// The call does not run, and the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), shown: None }
    }

    /// The call does not run, the model reads why, and this is shown and kept of its arguments.
    ///
    /// # Errors
    /// The arguments cannot be written as JSON.
    pub fn deny_showing(reason: impl Into<String>, arguments: impl Serialize) -> Result<Self> {
        Ok(Self::Deny { reason: reason.into(), shown: Some(serde_json::to_string(&arguments)?) })
    }
}

/// What a result is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultStage {
    /// The call has run.
    #[default]
    Done,
    /// The call has not run: a person is asked about it, and would be shown this change that it makes, and the content as notes.
    Preview,
    /// A stage that this version does not know.
    Other(String),
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenResult {
    /// The position in the run.
    pub at: Moment,
    /// The call, with the arguments that run.
    pub call: ToolCall,
    /// What it is for.
    pub stage: ResultStage,
    /// What the model gets, in order; of a preview what the person gets.
    pub content: Vec<Content>,
    /// The change to a file as a unified diff. People see it, and the model does not.
    pub diff: Option<String>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl GivenResult {
    /// A result of `tool` with one text.
    pub fn new(tool: impl Into<String>, text: impl Into<String>) -> Self {
        let call = ToolCall::new("call-1", tool, "{}");
        Self { call, content: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// Its texts, joined with line ends.
    pub fn text(&self) -> String {
        let texts = self
            .content
            .iter()
            .filter_map(|one| if let Content::Text(text) = one { Some(text.as_str()) } else { None });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Calls `map` with each text of the result and with its diff, and returns the answer that has what it returned in their places:
    /// *pass* where it returned nothing.
    pub fn map_texts(&self, mut map: impl FnMut(&str) -> Option<String>) -> ResultAnswer {
        let (mut content, mut diff, mut any) = (self.content.clone(), self.diff.clone(), false);
        let texts = content.iter_mut().filter_map(|one| if let Content::Text(text) = one { Some(text) } else { None });
        for text in texts.chain(&mut diff) {
            if let Some(new) = map(text) {
                *text = new;
                any = true;
            }
        }
        ResultAnswer { replace: any.then_some(NewResult { content, diff }), annotations: Vec::new() }
    }
}

/// What a result is replaced by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewResult {
    /// What the model gets. Hosts of 0.1.0 accept text alone.
    pub content: Vec<Content>,
    /// What people see of the change.
    pub diff: Option<String>,
}

/// Answer to `on_tool_result`: what becomes of the result, and notes about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultAnswer {
    /// The result from here on; `None` = no change.
    pub replace: Option<NewResult>,
    /// Notes, at most 32: a name of 1 to 128 bytes and JSON text of at most 64 KiB each. They are stored with the result under the
    /// extension's id and are visible to front ends.
    pub annotations: Vec<(String, String)>,
}

impl ResultAnswer {
    /// Returns an answer that keeps the result as it was given.
    pub fn pass() -> Self {
        Self::default()
    }

    /// This text in the place of all that the model gets, and no diff for people.
    pub fn replace(text: impl Into<String>) -> Self {
        let content = vec![Content::Text(text.into())];
        Self { replace: Some(NewResult { content, diff: None }), annotations: Vec::new() }
    }

    /// The same answer with one more note.
    ///
    /// # Errors
    /// `value` cannot be written as JSON, such as a map with keys that are not strings.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Serialize) -> Result<Self> {
        self.annotations.push((key.into(), serde_json::to_string(&value)?));
        Ok(self)
    }
}
