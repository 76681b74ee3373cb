//! What is known of models by their names, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    /// By the start of the name.
    context_tokens: BTreeMap<String, u64>,
}

/// The table of the program; a test reads it.
static MODELS: LazyLock<Models> = LazyLock::new(|| toml::from_str(include_str!("models.toml")).unwrap_or_default());

/// Tokens that the prompt and the answer of a model have together; `None` where that is not known.
pub fn context_tokens(model: &str) -> Option<u64> {
    let known = MODELS.context_tokens.iter().filter(|(start, _)| model.starts_with(start.as_str()));
    known.max_by_key(|(start, _)| start.len()).map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::{MODELS, context_tokens};

    #[test]
    fn the_longest_start_of_the_name_counts() {
        assert!(!MODELS.context_tokens.is_empty(), "the table can be read");
        assert_eq!(context_tokens("gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(context_tokens("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(context_tokens("gpt-4"), None);
        assert_eq!(context_tokens("llama"), None);
    }
}
