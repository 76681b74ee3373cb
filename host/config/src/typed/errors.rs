//! The table of error classes as typed: the default of the program and the files that override it.

use flow::{ErrorClass, FailureKind, RetryHeader, RetryWait};
use schemars::JsonSchema;
use serde::Deserialize;

/// Which errors of a model have which class, and how each class is retried; or a part of it: a file gives only what it changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ErrorsFile {
    /// Errors with their class. The first entry that matches decides; an error without one is permanent.
    pub(crate) class: Vec<ClassFile>,
    /// How each class is retried.
    pub(crate) retry: RetryFile,
}

/// Errors of one class: those that fulfil every condition. An empty list, or an empty string, is no condition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassFile {
    /// The name of the entry. An entry of a lower layer with the same name is changed, in its place.
    #[schemars(length(min = 1))]
    pub(crate) id: String,
    /// The class of the errors.
    pub(crate) class: Option<ErrorClass>,
    /// Where the request failed.
    pub(crate) kind: Option<OneOrMany<FailureKind>>,
    /// The provider, such as `anthropic`.
    pub(crate) provider: Option<OneOrMany<String>>,
    /// The HTTP status: a number such as `529`, a range such as `"500-599"`, or a list of both.
    pub(crate) status: Option<StatusFile>,
    /// The provider's type of the error, such as `overloaded_error`.
    #[serde(rename = "type")]
    pub(crate) error_type: Option<OneOrMany<String>>,
    /// The provider's code of the error, or its type where it has no code.
    pub(crate) code: Option<OneOrMany<String>>,
    /// A regular expression that the provider's message contains, or that of the host where the provider reported nothing.
    pub(crate) message: Option<String>,
    /// Whether the provider says in a header, `x-should-retry`, that a retry can help.
    pub(crate) should_retry: Option<bool>,
}

/// One value or a list of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// A status, a range of them, or a list of both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StatusFile {
    Number(i64),
    Range(String),
    Many(Vec<StatusWord>),
}

/// A status, or a range of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StatusWord {
    Number(i64),
    Range(String),
}

/// How each class is retried. A class without a policy is not.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetryFile {
    /// Errors that can pass by themselves.
    pub(crate) transient: Option<PolicyFile>,
    /// Errors that will not pass.
    pub(crate) permanent: Option<PolicyFile>,
    /// Too many requests.
    pub(crate) rate_limited: Option<PolicyFile>,
    /// The account has nothing left.
    pub(crate) quota: Option<PolicyFile>,
    /// A limit of the host was reached.
    pub(crate) limit_hit: Option<PolicyFile>,
    /// The money set aside is spent.
    pub(crate) budget: Option<PolicyFile>,
    /// Somebody stopped the request.
    pub(crate) cancelled: Option<PolicyFile>,
    /// The request is larger than the model takes. It is sent again with a smaller conversation whatever the policy is, which counts where
    /// nothing more can become smaller.
    pub(crate) context_overflow: Option<PolicyFile>,
}

/// How errors of a class are retried.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyFile {
    /// How the wait before a retry is chosen.
    pub(crate) policy: Option<RetryWait>,
    /// The first wait, such as `1s` or `250ms`; at most 2 minutes. Default: `1s`.
    pub(crate) base: Option<String>,
    /// The longest wait, for `exponential`; at most 2 minutes. Default: `30s`.
    pub(crate) max: Option<String>,
    /// By which share a wait can be shorter, so that clients that failed at the same time do not all return at the same time. A wait
    /// that the provider asks for is not changed. Default: 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) jitter: Option<f64>,
    /// For `use_header`: the headers that are read, in order of precedence. Default: all.
    pub(crate) headers: Option<Vec<RetryHeader>>,
    /// For `use_header`: the policy of a response without such a header. Default: `exponential`.
    pub(crate) fallback: Option<FallbackWord>,
    /// How often in a row a request is sent again. Default: 3.
    #[schemars(range(max = 100))]
    pub(crate) max_retries: Option<u32>,
}

/// The policy of a response without a header.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FallbackWord {
    /// The base wait, doubled with each retry up to the maximum.
    Exponential,
    /// The base wait each time.
    Fixed,
    /// The request is not sent again.
    None,
}
