//! Stage: the calls of an accepted answer go through `on_tool_call`, before anything else is decided about them.

use flow::{
    Ambiguous, AskedCall, CallAnswer, CallFailure, CallbackKind, EventKind, KeptText, NoAnswer, PluginId, ToolCall,
    plain_arguments, withheld,
};
use serde_json::json;

use crate::chain::{Asked, Caller};

/// A call that extensions have had.
#[derive(Debug)]
pub struct Checked {
    /// The call, with the arguments that run.
    pub call: ToolCall,
    /// Why it does not run.
    pub refusal: Option<Refused>,
    /// What is shown of its arguments.
    pub shown: String,
    /// The extensions that have replaced its arguments, each once.
    pub by: Vec<PluginId>,
}

/// Why a call does not run, as the model reads it.
#[derive(Clone, Debug)]
pub enum Refused {
    /// An extension has denied it, or did not check it.
    Denied(String),
    /// Its arguments cannot be used.
    Invalid(String),
}

impl Checked {
    fn refused(mut self, refusal: Refused, shown: String) -> Self {
        self.refusal = Some(refusal);
        self.shown = shown;
        self
    }
}

/// Runs the chain over a call. `edited`: a person has written its arguments.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn check(caller: &Caller, call: &ToolCall, edited: bool) -> Result<Checked, CallFailure> {
    let chain = &caller.chains.calls;
    let shown = call.arguments.clone();
    let mut checked = Checked { call: call.clone(), refusal: None, shown, by: Vec::new() };
    if chain.is_empty() {
        return Ok(checked);
    }
    let Some(mut plain) = plain_arguments(&call.arguments) else {
        let refusal = unreadable(call);
        let shown = caller.call_guard().map_or(checked.shown.clone(), |guard| marker(&caller.id(guard)));
        return Ok(checked.refused(refusal, shown));
    };
    for (at, &plugin) in chain.iter().enumerate() {
        let asked = AskedCall {
            at: caller.events.place(),
            call: ToolCall { arguments: plain.clone(), ..checked.call.clone() },
            edited,
        };
        let answering = caller.extensions.tool_call(plugin, &asked);
        let answering = Box::pin(async move { answering.await.map(usable) as Result<CallAnswer, NoAnswer> });
        let (id, rest) = (caller.id(plugin), &chain[at + 1..]);
        match caller.ask(plugin, CallbackKind::ToolCall, answering).await? {
            Asked::Nothing | Asked::Answer(CallAnswer::Pass | CallAnswer::Ignored(_)) => {}
            Asked::Answer(CallAnswer::Replace(arguments)) => {
                plain = plain_arguments(&arguments).unwrap_or_default();
                checked.shown.clone_from(&arguments);
                checked.call.arguments = arguments;
                if !checked.by.contains(&id) {
                    checked.by.push(id);
                }
            }
            Asked::Answer(CallAnswer::Deny { reason, shown }) => {
                caller.skip(rest, CallbackKind::ToolCall, plugin, "denied the call");
                let hides = |plugin: &&usize| caller.keeps_shown(**plugin, CallbackKind::ToolCall);
                let unseen = rest.iter().find(hides).map(|guard| marker(&caller.id(*guard)));
                let shown = shown.map(|text| caller.object_or_marker(&id, text));
                let shown = shown.or(unseen).unwrap_or_else(|| checked.shown.clone());
                let reason = format!("not run: the extension `{id}` denied this call: {reason}");
                return Ok(checked.refused(Refused::Denied(reason), shown));
            }
            Asked::Closed(why) => {
                caller.skip(rest, CallbackKind::ToolCall, plugin, "did not check the call");
                caller.withhold(plugin, CallbackKind::ToolCall, call.arguments.len(), why);
                let reason = format!("not run: the extension `{id}` did not check this call");
                return Ok(checked.refused(Refused::Denied(reason), marker(&id)));
            }
        }
    }
    Ok(checked)
}

/// A JSON object in the place of arguments that are not shown.
fn marker(plugin: &PluginId) -> String {
    json!({ "withheld": withheld(plugin) }).to_string()
}

fn unreadable(call: &ToolCall) -> Refused {
    Refused::Invalid(match flow::Preview::of_arguments(&call.arguments) {
        Err(ambiguous) => repeated(call, &ambiguous),
        Ok(_) => not_an_object(call),
    })
}

/// What the model reads of a call whose arguments are no JSON object.
pub fn not_an_object(call: &ToolCall) -> String {
    format!("the arguments of `{}` are not valid: write one JSON object, with a member for each argument.", call.name)
}

/// What the model reads of a call whose arguments say something twice.
pub fn repeated(call: &ToolCall, ambiguous: &Ambiguous) -> String {
    format!("the arguments of `{}` are not valid: {ambiguous}. Write each key once.", call.name)
}

/// What replaces the arguments must be what it says.
fn usable(answer: CallAnswer) -> CallAnswer {
    let is_object = |text: &String| plain_arguments(text).is_some();
    match &answer {
        CallAnswer::Replace(text) if !is_object(text) => {
            CallAnswer::Ignored("what replaces the arguments is no JSON object that repeats no key".to_owned())
        }
        _ => answer,
    }
}

impl Caller {
    /// What an extension that denies a call has shown of the arguments; where that is no JSON object, a marker: the call is denied all the same.
    fn object_or_marker(&self, id: &PluginId, text: String) -> String {
        if plain_arguments(&text).is_some() {
            return text;
        }
        let what = "what it wants to be shown of the arguments is no JSON object that repeats no key";
        self.events.emit(EventKind::Notice { message: format!("the extension `{id}` has denied a call, and {what}") });
        marker(id)
    }

    /// Whether what was shown is kept of what this callback changes.
    fn keeps_shown(&self, plugin: usize, callback: CallbackKind) -> bool {
        let mut callbacks = self.registrations[plugin].callbacks.iter();
        callbacks.any(|one| one.kind() == callback && one.keep == KeptText::Shown)
    }

    /// The first extension that has to see the arguments of a call before anybody is shown them.
    pub(crate) fn call_guard(&self) -> Option<usize> {
        self.guard(&self.chains.calls, CallbackKind::ToolCall)
    }

    /// Where an extension has to see the result of a call before anybody is shown anything of it: the marker in its place.
    pub fn result_marker(&self) -> Option<String> {
        let guard = self.guard(&self.chains.results, CallbackKind::ToolResult)?;
        Some(withheld(&self.id(guard)))
    }

    fn guard(&self, chain: &[usize], callback: CallbackKind) -> Option<usize> {
        let guards = |plugin: &usize| {
            let mut callbacks = self.registrations[*plugin].callbacks.iter();
            callbacks.any(|one| one.kind() == callback && one.guards())
        };
        chain.iter().copied().find(guards)
    }
}
