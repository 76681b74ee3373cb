//! The names: which attributes a span of a turn has in a trace, by the conventions of OpenTelemetry for generative AI.
//!
//! What those conventions have no name for is named `extension.…` where it is about an extension, and `tidegate.…` otherwise.

use crate::otel::fields::{Fields, Value};

/// The kinds of spans that a turn consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Step,
    Attempt,
    Tool,
    Callback,
}

/// The value of `gen_ai.operation.name` of a request to a model.
pub(crate) const CHAT: &str = "chat";
/// Names that metrics have too.
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const ERROR_TYPE: &str = "error.type";
const CONVERSATION: &str = "gen_ai.conversation.id";

/// The attribute of each field, where it is not the outcome.
const ATTRIBUTES: [(&str, &str); 18] = [
    ("session", CONVERSATION),
    ("provider", PROVIDER),
    ("model", REQUEST_MODEL),
    ("turn", "tidegate.turn"),
    ("step", "tidegate.step"),
    ("attempt", "tidegate.attempt"),
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
    ("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens"),
    ("response_model", RESPONSE_MODEL),
    ("stop", "gen_ai.response.finish_reasons"),
    ("first_chunk_s", "gen_ai.response.time_to_first_chunk"),
    ("tool", TOOL_NAME),
    ("call", "gen_ai.tool.call.id"),
    ("extension", "extension.id"),
    ("callback", "extension.callback.type"),
    ("error", ERROR_TYPE),
];

impl Kind {
    /// The kind of a span with this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "turn" => Self::Turn,
            "step" => Self::Step,
            "attempt" => Self::Attempt,
            "tool" => Self::Tool,
            "callback" => Self::Callback,
            _ => return None,
        })
    }

    /// The name of a span. `model`: that of its turn.
    pub(crate) fn name(self, fields: &Fields, model: &str) -> String {
        match self {
            Self::Turn => "invoke_agent".to_owned(),
            Self::Step => "step".to_owned(),
            Self::Attempt => format!("{CHAT} {model}"),
            Self::Tool => format!("execute_tool {}", fields.text("tool")),
            Self::Callback => format!("{} {}", fields.text("callback"), fields.text("extension")),
        }
    }

    /// Whether the span is of the kind `CLIENT`: the work is done by another program. The others are `INTERNAL`.
    pub(crate) fn is_client(self) -> bool {
        self == Self::Attempt
    }

    /// The attributes of a span. `turn`: the fields that its turn had at its start.
    pub(crate) fn attributes(self, fields: &Fields, turn: &Fields) -> Vec<(&'static str, Value)> {
        let text = |value: &str| Value::Text(value.to_owned());
        let mut all = match self {
            Self::Turn => vec![(OPERATION, text("invoke_agent"))],
            Self::Attempt => vec![
                (OPERATION, text(CHAT)),
                (PROVIDER, text(provider(turn))),
                (REQUEST_MODEL, text(turn.text("model"))),
                (CONVERSATION, text(turn.text("session"))),
                ("gen_ai.request.stream", Value::Flag(true)),
            ],
            Self::Tool => vec![(OPERATION, text("execute_tool")), ("gen_ai.tool.type", text("function"))],
            Self::Step | Self::Callback => Vec::new(),
        };
        for (field, value) in fields.iter() {
            let value = match field {
                "provider" => text(provider(turn)),
                "input_tokens" => Value::Number(input_tokens(fields, turn).unwrap_or_default()),
                "stop" => Value::List(vec![fields.text("stop").to_owned()]),
                _ => value.clone(),
            };
            let known = ATTRIBUTES.iter().find(|(known, _)| *known == field).map(|(_, name)| *name);
            let name = match (field, self) {
                ("outcome", Self::Callback) => "extension.callback.outcome",
                ("outcome", _) => "tidegate.outcome",
                ("rules", _) => "tidegate.rules",
                _ => match known {
                    Some(name) => name,
                    None => continue,
                },
            };
            all.push((name, value));
        }
        all
    }
}

/// The provider by its name in the conventions: those of OpenAI's two wire formats are one.
pub(crate) fn provider(turn: &Fields) -> &str {
    match turn.text("provider") {
        "openai-chat" | "openai-responses" => "openai",
        other => other,
    }
}

/// The tokens of the prompt, those from and for a cache included. Anthropic counts those apart.
pub(crate) fn input_tokens(fields: &Fields, turn: &Fields) -> Option<u64> {
    let input = fields.number("input_tokens")?;
    if turn.text("provider") != "anthropic" {
        return Some(input);
    }
    let cached = ["cache_read_tokens", "cache_write_tokens"].map(|field| fields.number(field).unwrap_or(0));
    Some(cached.iter().fold(input, |sum, more| sum.saturating_add(*more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&'static str, Value)]) -> Fields {
        let mut fields = Fields::default();
        all.iter().for_each(|(name, value)| fields.set(name, value.clone()));
        fields
    }

    fn turn(provider: &str) -> Fields {
        let text = |value: &str| Value::Text(value.to_owned());
        fields(&[("session", text("s")), ("provider", text(provider)), ("model", text("m"))])
    }

    #[test]
    fn input_tokens_include_those_of_the_cache() {
        let counted = fields(&[
            ("input_tokens", Value::Number(10)),
            ("cache_read_tokens", Value::Number(200)),
            ("cache_write_tokens", Value::Number(3000)),
        ]);
        let of = |provider: &str| {
            let attributes = Kind::Attempt.attributes(&counted, &turn(provider));
            attributes.into_iter().find(|(name, _)| *name == "gen_ai.usage.input_tokens").map(|(_, value)| value)
        };
        assert_eq!(of("anthropic"), Some(Value::Number(3210)));
        assert_eq!(of("openai-chat"), Some(Value::Number(10)));
        assert_eq!(input_tokens(&fields(&[("cache_read_tokens", Value::Number(1))]), &turn("anthropic")), None);
    }

    #[test]
    fn both_wire_formats_of_openai_are_one_provider() {
        for (own, conventional) in
            [("openai-chat", "openai"), ("openai-responses", "openai"), ("anthropic", "anthropic"), ("mine", "mine")]
        {
            assert_eq!(provider(&turn(own)), conventional);
        }
    }
}
