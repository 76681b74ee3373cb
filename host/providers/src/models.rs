//! What is known of models by their names, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    /// By the start of the name.
    context_tokens: BTreeMap<String, u64>,
    image_tokens: BTreeMap<String, u64>,
}

/// The table of the program; a test reads it.
static MODELS: LazyLock<Models> = LazyLock::new(|| toml::from_str(include_str!("models.toml")).unwrap_or_default());

/// Tokens that the prompt and the answer of a model have together; `None` where that is not known.
pub fn context_tokens(model: &str) -> Option<u64> {
    of(model, &MODELS.context_tokens)
}

/// The most tokens that an image takes in a prompt of a model.
pub(crate) fn image_tokens(model: &str) -> u64 {
    of(model, &MODELS.image_tokens).unwrap_or(ELSEWHERE)
}

/// What the table has for an image of any model, where it cannot be read.
const ELSEWHERE: u64 = 1_600;

/// The value of the longest start of a name. Gateways put the vendor before it: `anthropic/claude-…`, `us.anthropic.claude-…`.
fn of(model: &str, table: &BTreeMap<String, u64>) -> Option<u64> {
    let name = model.to_ascii_lowercase();
    let starts = std::iter::once(0).chain(name.match_indices(['/', '.']).map(|(at, _)| at + 1));
    let names: Vec<&str> = starts.filter_map(|at| name.get(at..)).collect();
    let known = table.iter().filter(|(start, _)| names.iter().any(|name| name.starts_with(start.as_str())));
    known.max_by_key(|(start, _)| start.len()).map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::{MODELS, context_tokens, image_tokens};

    #[test]
    fn the_longest_start_of_the_name_counts() {
        assert!(!MODELS.context_tokens.is_empty(), "the table can be read");
        for (model, tokens) in [
            ("gpt-4.1-mini", Some(1_047_576)),
            ("claude-sonnet-4-5", Some(200_000)),
            ("anthropic/claude-sonnet-4.5", Some(200_000)),
            ("us.anthropic.claude-3-5-haiku-20241022-v1:0", Some(200_000)),
            ("openrouter/openai/gpt-5-mini", Some(400_000)),
            ("Gemini-2.5-pro", Some(1_048_576)),
            ("gpt-4", None),
            ("llama", None),
            ("my-claude-", None),
        ] {
            assert_eq!(context_tokens(model), tokens, "{model}");
        }
        assert_eq!(
            [image_tokens("claude-opus-4-1"), image_tokens("gpt-4o-mini"), image_tokens("m")],
            [1600, 48_169, 1600]
        );
    }
}
