//! The names: which attributes a span of a turn has in a trace, by the conventions of OpenTelemetry for generative AI.
//!
//! What those conventions have no name for is named `extension.…` where it is about an extension, and `tidegate.…` otherwise.

use opentelemetry::trace::SpanKind;
use opentelemetry::{Array, KeyValue, Value};

use crate::names::attribute::{
    CHAT, CONVERSATION, ERROR_TYPE, OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, TOOL_NAME,
};
use crate::otel::fields::Fields;

/// The kinds of spans that a turn consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Step,
    Attempt,
    Tool,
    Callback,
}

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

    pub(crate) fn span_kind(self) -> SpanKind {
        // The work is done by another program.
        if self == Self::Attempt { SpanKind::Client } else { SpanKind::Internal }
    }

    /// The attributes of a span. `turn`: the fields that its turn had at its start.
    pub(crate) fn attributes(self, fields: &Fields, turn: &Fields) -> Vec<KeyValue> {
        let text = |value: &str| Value::from(value.to_owned());
        let mut all: Vec<(&'static str, Value)> = match self {
            Self::Turn => vec![(OPERATION, text("invoke_agent"))],
            Self::Attempt => vec![
                (OPERATION, text(CHAT)),
                (PROVIDER, text(provider(turn))),
                (REQUEST_MODEL, text(turn.text("model"))),
                (CONVERSATION, text(turn.text("session"))),
                ("gen_ai.request.stream", Value::Bool(true)),
            ],
            Self::Tool => vec![(OPERATION, text("execute_tool")), ("gen_ai.tool.type", text("function"))],
            Self::Step | Self::Callback => Vec::new(),
        };
        for (field, value) in fields.iter() {
            let value = match field {
                "provider" => text(provider(turn)),
                "input_tokens" => Value::I64(input_tokens(fields, turn).unwrap_or_default()),
                "stop" => Value::Array(Array::String(vec![fields.text("stop").to_owned().into()])),
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
        all.into_iter().map(|(name, value)| KeyValue::new(name, value)).collect()
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
pub(crate) fn input_tokens(fields: &Fields, turn: &Fields) -> Option<i64> {
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
        let text = |value: &str| Value::from(value.to_owned());
        fields(&[("session", text("s")), ("provider", text(provider)), ("model", text("m"))])
    }

    #[test]
    fn input_tokens_include_those_of_the_cache() {
        let counted = fields(&[
            ("input_tokens", Value::I64(10)),
            ("cache_read_tokens", Value::I64(200)),
            ("cache_write_tokens", Value::I64(3000)),
        ]);
        let of = |provider: &str| {
            let attributes = Kind::Attempt.attributes(&counted, &turn(provider));
            attributes.into_iter().find(|one| one.key.as_str() == "gen_ai.usage.input_tokens").map(|one| one.value)
        };
        assert_eq!(of("anthropic"), Some(Value::I64(3210)));
        assert_eq!(of("openai-chat"), Some(Value::I64(10)));
        assert_eq!(input_tokens(&fields(&[("cache_read_tokens", Value::I64(1))]), &turn("anthropic")), None);
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
