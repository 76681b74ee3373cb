//! Which models continue from the start of their answer (prefill), a last message of the assistant in the request.
//!
//! The format always had it, with thinking switched off; models after Claude 4.5 refuse it. With an unknown model a
//! refusal would cost a request, so prefill is only used where it is known to work.

use super::request::MIN_THINKING;
use crate::RequestOptions;

/// The last models that take a beginning, as major and minor version.
const LAST: (u32, u32) = (4, 5);

/// Whether this model supports prefill.
pub fn goes_on(model: &str, options: &RequestOptions) -> bool {
    let thinks = options.thinking_budget.is_some_and(|budget| budget >= MIN_THINKING);
    !thinks && options.prefill.unwrap_or_else(|| version(model).is_some_and(|version| version <= LAST))
}

/// The version in a model's name: `claude-3-5-sonnet-20241022` and `claude-opus-4-1` name it on either side of the
/// family, gateways put their own words before or after. None where there is none (`claude-sonnet-latest`).
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.to_ascii_lowercase();
    let (_, rest) = name.split_once("claude-")?;
    let numbers = |part: &&str| !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = rest.split(['-', '.', '@', ':', '/']).skip_while(|part| !numbers(part));
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().filter(numbers).and_then(|part| part.parse().ok()).unwrap_or(0);
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_model_is_in_its_name() {
        let known = [
            ("claude-3-5-sonnet-20241022", Some((3, 5))),
            ("claude-3-opus-20240229", Some((3, 0))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4-1-20250805", Some((4, 1))),
            ("claude-haiku-4-5", Some((4, 5))),
            ("us.anthropic.claude-opus-4-6-v1", Some((4, 6))),
            ("anthropic/claude-sonnet-4.5", Some((4, 5))),
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-2.1", Some((2, 1))),
            ("claude-sonnet-latest", None),
            ("claude-", None),
            ("some-model-3-5", None),
        ];
        for (name, expected) in known {
            assert_eq!(version(name), expected, "{name}");
            let can = expected.is_some_and(|version| version <= (4, 5));
            assert_eq!(goes_on(name, &RequestOptions::default()), can, "{name}");
        }
    }

    #[test]
    fn what_is_said_counts_but_never_with_thinking() {
        let options =
            |prefill, thinking_budget| RequestOptions { prefill, thinking_budget, ..RequestOptions::default() };
        assert!(goes_on("some-model", &options(Some(true), None)));
        assert!(!goes_on("claude-haiku-4-5", &options(Some(false), None)));
        assert!(!goes_on("claude-haiku-4-5", &options(Some(true), Some(2048))));
        assert!(goes_on("claude-haiku-4-5", &options(None, Some(10))), "so few are none");
    }
}
