//! `[[prompt]]` of a manifest: typed additions become used ones, and what no schema can say of them is checked.

use flow::{
    AdditionId, Condition, ContextMatch, PluginId, PromptAddition, StateTest, StateValue, TagPattern, TurnRange,
};

use crate::Code;
use crate::document::{Document, Step, steps};
use crate::typed::{AdditionFile, ConditionsFile, ContextMatchFile, ManifestFile, StateValueFile};

/// The powers and parts of a plugin that its conditions depend on.
#[derive(Clone, Copy)]
struct Owner {
    has_component: bool,
    asks_for_state: bool,
}

/// Reads the additions of a manifest.
pub(crate) fn additions(document: &mut Document<'_>, id: &PluginId, typed: &ManifestFile) -> Vec<PromptAddition> {
    let owner = Owner {
        has_component: typed.component.is_some() || typed.build.is_some(),
        asks_for_state: typed.capabilities.state.is_some(),
    };
    let mut additions = Vec::new();
    for (index, AdditionFile { position, content, when }) in typed.prompt.iter().enumerate() {
        let at = steps!["prompt", index, "when"];
        let when = when.as_ref().map(|when| conditions(document, &at, when, owner)).unwrap_or_default();
        let id = AdditionId { plugin: id.clone(), index };
        additions.push(PromptAddition { id, position: *position, text: content.clone(), when });
    }
    additions
}

/// The conditions that are valid, the cheapest to evaluate first.
fn conditions(document: &mut Document<'_>, at: &[Step], typed: &ConditionsFile, owner: Owner) -> Vec<Condition> {
    let ConditionsFile { tag_present, state_value, context_match } = typed;
    if tag_present.is_none() && state_value.is_none() && context_match.is_none() {
        let help = "add `tag_present`, `state_value` or `context_match`, or remove `when` to add the text always";
        invalid(document, at, "`when` has no condition".to_owned(), help);
    }
    let context = context_match.as_ref().map(|typed| context(document, &inside(at, "context_match"), typed));
    let tag = tag_present.as_ref().and_then(|typed| tag(document, &inside(at, "tag_present"), typed));
    let state = state_value.as_ref().and_then(|typed| state(document, &inside(at, "state_value"), typed, owner));
    context.map(Condition::ContextMatch).into_iter().chain(tag.map(Condition::TagPresent)).chain(state).collect()
}

fn tag(document: &mut Document<'_>, at: &[Step], typed: &str) -> Option<TagPattern> {
    match typed.parse() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let help = "write a tag's name without brackets, such as `plan`, or the start of one, such as `note-*`";
            invalid(document, at, error.to_string(), help);
            None
        }
    }
}

fn state(document: &mut Document<'_>, at: &[Step], typed: &StateValueFile, owner: Owner) -> Option<Condition> {
    if !owner.has_component {
        let help = "only a component can store values; use another condition, or remove it";
        invalid(document, at, "a plugin without a component has no state".to_owned(), help);
    } else if !owner.asks_for_state {
        let help = "add `state = \"why\"` under `[capabilities]`: the operator has to grant it";
        document.error(Code::ManifestMissingCapability, at, "`state_value` needs the capability `state`", help);
    }
    let test = match (&typed.equals, typed.exists) {
        (Some(_), Some(_)) => {
            invalid(document, at, "`equals` and `exists` exclude each other".to_owned(), "remove one of them");
            return None;
        }
        (None, None) => {
            let help = "add `equals = …`, or `exists = true`";
            invalid(document, at, "`state_value` does not say what the value has to be".to_owned(), help);
            return None;
        }
        (None, Some(wanted)) => StateTest::Exists(wanted),
        (Some(value), None) => match scalar(&value.0) {
            Some(value) => StateTest::Equals(value),
            None => {
                let help = "write a string, a finite number or a boolean";
                invalid(document, &inside(at, "equals"), "no stored value equals this".to_owned(), help);
                return None;
            }
        },
    };
    Some(Condition::StateValue { key: typed.key.clone(), test })
}

/// The value to compare with; `None` where JSON has no such value.
fn scalar(value: &toml::Value) -> Option<StateValue> {
    match value {
        toml::Value::String(text) => Some(StateValue::Text(text.clone())),
        toml::Value::Integer(number) => Some(StateValue::Integer(*number)),
        toml::Value::Float(number) => number.is_finite().then_some(StateValue::Number(*number)),
        toml::Value::Boolean(yes) => Some(StateValue::Boolean(*yes)),
        toml::Value::Array(_) | toml::Value::Table(_) | toml::Value::Datetime(_) => None,
    }
}

fn context(document: &mut Document<'_>, at: &[Step], typed: &ContextMatchFile) -> ContextMatch {
    let ContextMatchFile { model, agent, workspace, turn } = typed;
    if model.is_none() && agent.is_none() && workspace.is_none() && turn.is_none() {
        let help = "add `model`, `agent`, `workspace` or `turn`";
        invalid(document, at, "`context_match` has nothing to match".to_owned(), help);
    }
    for (key, glob) in [("model", model), ("agent", agent), ("workspace", workspace)] {
        if let Some(Err(why)) = glob.as_ref().map(|glob| rules::Glob::new(glob)) {
            let help = "`*`, `?`, `[…]` and `{a,b}` are special characters; close every bracket";
            invalid(document, &inside(at, key), why, help);
        }
    }
    let turn = turn.as_ref().and_then(|turn| turns(document, &inside(at, "turn"), &turn.0));
    ContextMatch { model: model.clone(), agent: agent.clone(), workspace: workspace.clone(), turn }
}

fn turns(document: &mut Document<'_>, at: &[Step], typed: &toml::Value) -> Option<TurnRange> {
    let help = "write `turn = 3`, or a range: \"2..\" from turn 2 on, \"..=5\" up to turn 5, \"2..=5\" for both";
    // The schema has refused all but integers from 1 on and strings.
    let written = match typed {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match written.parse::<TurnRange>() {
        Ok(range) => Some(range),
        Err(error) => {
            invalid(document, at, error.to_string(), help);
            None
        }
    }
}

fn inside(at: &[Step], key: &str) -> Vec<Step> {
    at.iter().cloned().chain([Step::from(key)]).collect()
}

fn invalid(document: &mut Document<'_>, at: &[Step], message: String, help: &str) {
    document.error(Code::ManifestInvalidCondition, at, message, help);
}
