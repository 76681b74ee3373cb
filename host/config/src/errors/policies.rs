//! The policies of the table as used: durations parsed, defaults filled in.

use std::collections::BTreeMap;
use std::time::Duration;

use flow::{ErrorClass, RetryPolicy, RetryWait};

use super::layers::Layers;
use crate::document::steps;
use crate::typed::{FallbackWord, PolicyFile, RetryFile};
use crate::{Code, duration};

/// The longest wait, which is also that of the host.
const LONGEST: Duration = Duration::from_secs(120);

/// The policies, by class.
pub(super) fn resolve(layers: &mut Layers<'_>) -> BTreeMap<ErrorClass, RetryPolicy> {
    let RetryFile { transient, permanent, rate_limited, quota, limit_hit, budget, cancelled, context_overflow } =
        std::mem::take(&mut layers.merged.retry);
    let given = [
        (ErrorClass::Transient, transient),
        (ErrorClass::Permanent, permanent),
        (ErrorClass::RateLimited, rate_limited),
        (ErrorClass::Quota, quota),
        (ErrorClass::LimitHit, limit_hit),
        (ErrorClass::Budget, budget),
        (ErrorClass::Cancelled, cancelled),
        (ErrorClass::ContextOverflow, context_overflow),
    ];
    given.into_iter().filter_map(|(class, file)| Some((class, policy(layers, class, &file?)?))).collect()
}

fn policy(layers: &mut Layers<'_>, class: ErrorClass, file: &PolicyFile) -> Option<RetryPolicy> {
    let Some(wait) = file.policy else {
        let message = format!("`[retry.{class}]` has no `policy`, and the default has none for this class");
        let help = "add `policy = \"exponential\"`, or `fixed`, `use_header` or `none`";
        layers.key_error(Code::ErrorsIncomplete, &steps!["retry", class.as_str()], message, help);
        return None;
    };
    let mut policy = RetryPolicy::default();
    policy.wait = wait;
    policy.base = wait_of(layers, class, "base", file.base.as_deref()).unwrap_or(policy.base);
    policy.max = wait_of(layers, class, "max", file.max.as_deref()).unwrap_or(policy.max);
    policy.jitter = file.jitter.unwrap_or(policy.jitter);
    policy.headers = file.headers.clone().unwrap_or(policy.headers);
    policy.fallback = match file.fallback {
        Some(FallbackWord::Fixed) => RetryWait::Fixed,
        Some(FallbackWord::None) => RetryWait::None,
        Some(FallbackWord::Exponential) | None => RetryWait::Exponential,
    };
    policy.max_retries = file.max_retries.unwrap_or(policy.max_retries);
    let grows = [wait, policy.fallback].contains(&RetryWait::Exponential) && wait != RetryWait::Fixed;
    if grows && policy.base > policy.max {
        let path = |key: &str| steps!["retry", class.as_str(), key];
        let key = if layers.is_overridden(&path("base")) || file.max.is_none() { "base" } else { "max" };
        let message = format!("the `base` of `[retry.{class}]` is longer than its `max`");
        layers.error(Code::ErrorsInvalidDuration, &path(key), message, "waits grow from `base` to `max`");
    }
    Some(policy)
}

/// A wait of a policy; errors are noted at its key.
fn wait_of(layers: &mut Layers<'_>, class: ErrorClass, key: &str, text: Option<&str>) -> Option<Duration> {
    let text = text?;
    let wait = duration::parse(text);
    let message = match wait {
        Some(wait) if wait <= LONGEST => return Some(wait),
        Some(_) => format!("the `{key}` of `[retry.{class}]` is longer than 2 minutes, and no wait is"),
        None => format!("`{}` is not a duration", text.escape_debug()),
    };
    let help = "write a whole number and a unit, `ms`, `s`, `m` or `h`: `250ms`, `1s`; at most `2m`";
    layers.error(Code::ErrorsInvalidDuration, &steps!["retry", class.as_str(), key], message, help);
    None
}
