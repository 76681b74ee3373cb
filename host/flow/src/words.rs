//! Closed lists of words that files, flags and output use: each is defined once, here.
//!
//! With the feature `schema` the words are read by serde and have a JSON Schema, whose descriptions are the doc comments;
//! with the feature `clap` they are the values of flags.

use std::fmt;

/// Defines an enum of which each variant has one word. There is no other place where the words are written.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:tt,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "schema", derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema))]
        pub enum $name {
            $(
                $(#[$doc])*
                #[cfg_attr(feature = "schema", serde(rename = $word))]
                $variant,
            )*
        }

        impl $name {
            /// All values, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the word for it in files, flags and output.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns the value of which `word` is the word, if there is one.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        #[cfg(feature = "clap")]
        impl clap::ValueEnum for $name {
            fn value_variants<'a>() -> &'a [Self] {
                Self::ALL
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                Some(clap::builder::PossibleValue::new(self.as_str()))
            }
        }
    };
}

words! {
    /// A wire format.
    ProviderKind {
        /// The Messages API of Anthropic.
        Anthropic = "anthropic",
        /// OpenAI Chat Completions, which many servers speak.
        OpenaiChat = "openai-chat",
        /// The Responses API of OpenAI.
        OpenaiResponses = "openai-responses",
        /// A recorded conversation, replayed byte for byte: no network.
        Recording = "recording",
    }
}

words! {
    /// Where the state of extensions is kept.
    StateBackend {
        /// In memory, as long as the host runs.
        Memory = "memory",
        /// In one file for each session.
        Disk = "disk",
        /// In a Redis server, version 7.0 or later, which several hosts can share.
        Redis = "redis",
    }
}

words! {
    /// Where the records of sessions are kept.
    TranscriptBackend {
        /// In one file for each session.
        Disk = "disk",
        /// In the Redis server of the state, each host of which can continue the sessions.
        Redis = "redis",
    }
}

words! {
    /// A power that is granted by name. (`log`, `events`, `settings`, `clock` and `random` are always granted.)
    Power {
        /// Keep state that persists.
        State = "state",
        /// Read the facts of the session.
        Session = "session",
        /// Read the messages of the conversation.
        History = "history",
        /// Read which tools the model is offered.
        Tools = "tools",
        /// Add text to the prompt.
        Prompt = "prompt",
        /// Provide tools to the model.
        ProvideTools = "provide-tools",
    }
}

words! {
    /// Whether a tool is allowed to run, from the most lenient to the strictest.
    PermissionMode {
        /// The call runs without a question.
        Allow = "allow",
        /// A person is asked; if nobody can be asked, the call does not run.
        Ask = "ask",
        /// The call never runs; the model gets the reason.
        Deny = "deny",
    }
}

words! {
    /// Which text the conversation, events and transcripts have of what a callback changes.
    KeptText {
        /// The text that the callback was given: only what is shown is changed.
        Original = "original",
        /// The text that the user saw. The original is in no file.
        Shown = "shown",
    }
}

words! {
    /// The type of a setting's value.
    SettingKind {
        /// A string of any length.
        Text = "text",
        /// A 64-bit floating-point number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A list of strings.
        Texts = "texts",
    }
}

words! {
    /// A place in the prompt.
    Position {
        /// Before the host's system prompt.
        SystemPrefix = "system_prefix",
        /// After the host's system prompt.
        SystemSuffix = "system_suffix",
        /// Before the user's input, in the same message.
        UserPrefix = "user_prefix",
        /// After the user's input, in the same message.
        UserSuffix = "user_suffix",
    }
}

words! {
    /// What happens on a match of a stream rule.
    Action {
        /// It is reported and nothing else: the budget for interrupts is spent and the operator lets it pass, its reminder
        /// waits already, or the rule's repeat mode does not let it act again.
        Pass = "pass",
        /// The model gets the reminder afterwards; nothing is stopped.
        Remind = "remind",
        /// The stream is stopped, the reminder is injected, and the answer is tried again.
        Interrupt = "interrupt",
        /// The tool call does not run; its result says why.
        Block = "block",
        /// The turn ends.
        Stop = "stop",
    }
}

words! {
    /// The classes of a failed request, which decide whether and how it is tried again.
    ErrorClass {
        /// It can pass by itself: network, overload, time-out.
        Transient = "transient",
        /// It will not pass: bad request, bad key, unreadable stream.
        Permanent = "permanent",
        /// Too many requests; the provider says how long to wait.
        RateLimited = "rate_limited",
        /// The account has nothing left.
        Quota = "quota",
        /// A limit of the host was reached.
        LimitHit = "limit_hit",
        /// The money set aside is spent.
        Budget = "budget",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// The request is larger than the model takes: the conversation has to become smaller.
        ContextOverflow = "context_overflow",
    }
}

words! {
    /// Why the conversation of a session becomes smaller.
    CompactionCause {
        /// By the count of the host, it fills the configured share of the model's context.
        Context = "context",
        /// The provider has refused a request because of its size.
        Overflow = "overflow",
    }
}

words! {
    /// How the conversation of a session becomes smaller.
    CompactionMethod {
        /// The middle of tool results, and images, are left out.
        Shorten = "shorten",
        /// The model summarises the older part.
        Summary = "summary",
        /// The oldest messages are left out.
        Drop = "drop",
    }
}

words! {
    /// Where a request to a model failed.
    FailureKind {
        /// The provider answered with another status than success.
        Http = "http",
        /// The provider reported an error inside its answer.
        Stream = "stream",
        /// The provider could not be reached, the connection broke, or nothing was received for too long.
        Transport = "transport",
        /// An event of the answer cannot be read.
        Decode = "decode",
        /// The answer ended before it was complete.
        Incomplete = "incomplete",
        /// The answer is not one of the wire format, or has nothing that is supported.
        Unsupported = "unsupported",
        /// The answer is larger than a limit of the host.
        Limit = "limit",
        /// The request could not be made.
        Request = "request",
        /// A recording that is replayed does not contain an answer to the request.
        Recording = "recording",
    }
}

words! {
    /// How the wait before a retry is chosen.
    RetryWait {
        /// The base wait, doubled with each retry up to the maximum.
        Exponential = "exponential",
        /// The base wait each time.
        Fixed = "fixed",
        /// The wait that the provider asks for in a header; without one, the fallback.
        UseHeader = "use_header",
        /// The request is not sent again.
        None = "none",
    }
}

words! {
    /// A header in which a provider asks to wait.
    RetryHeader {
        /// A number of milliseconds.
        RetryAfterMs = "retry-after-ms",
        /// Seconds, or an HTTP date.
        RetryAfter = "retry-after",
    }
}

words! {
    /// The states of a circuit breaker of an extension, from healthy to failing.
    BreakerState {
        /// Calls are made.
        Closed = "closed",
        /// The back-off is over, and one call is tried; others are skipped until it has ended.
        HalfOpen = "half_open",
        /// Calls are skipped until the back-off is over.
        Open = "open",
    }
}

words! {
    /// Whose failures a circuit breaker of an extension counts.
    BreakerScope {
        /// The failed calls of one session; it skips calls of that session.
        Session = "session",
        /// The sessions of the host in which the session's own breaker opened; it skips the extension's calls in all of them.
        Host = "host",
    }
}

/// Where a provider's key is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// In the vendor's usual environment variable. No key is sent to another address than the vendor's own.
    #[default]
    Usual,
    /// In this environment variable.
    Env(String),
    /// No key is sent.
    None,
}

/// A string that should name an environment variable does not. It is not repeated: it may be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not the name of an environment variable; write letters, digits and `_`, such as `ANTHROPIC_API_KEY`, or \"\" for no key"
)]
pub struct NotAVariable;

impl KeySource {
    /// The key in this environment variable; `""` for no key at all.
    ///
    /// # Errors
    /// The string cannot be the name of a variable. A key that is typed where its variable belongs mostly cannot.
    pub fn of_variable(name: &str) -> Result<Self, NotAVariable> {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match name {
            "" => Ok(Self::None),
            name if plain && !name.starts_with(|c: char| c.is_ascii_digit()) => Ok(Self::Env(name.to_owned())),
            _ => Err(NotAVariable),
        }
    }
}

/// The value of a plugin's setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A string of any length.
    Text(String),
    /// A number; whole numbers are exact up to 2^53.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A list of strings.
    Texts(Vec<String>),
}

impl SettingValue {
    /// Returns the kind that a declaration must have for this value.
    pub fn kind(&self) -> SettingKind {
        match self {
            Self::Text(_) => SettingKind::Text,
            Self::Number(_) => SettingKind::Number,
            Self::Boolean(_) => SettingKind::Boolean,
            Self::Texts(_) => SettingKind::Texts,
        }
    }

    /// Reads a value of this kind as it is typed on a command line: a string as it is, a list separated by commas. `None`: it
    /// is not a value of this kind.
    pub fn parse(kind: SettingKind, text: &str) -> Option<Self> {
        match kind {
            SettingKind::Text => Some(Self::Text(text.to_owned())),
            SettingKind::Number => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Number),
            SettingKind::Boolean => text.parse().ok().map(Self::Boolean),
            SettingKind::Texts => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(Self::Texts(parts.map(str::to_owned).collect()))
            }
        }
    }
}

impl SettingKind {
    /// The kind in a sentence, such as `a string`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Texts => "a list of strings",
        }
    }
}

words! {
    /// How a plugin came to a session or left it.
    RegistrationAction {
        /// It was loaded for the session.
        Register = "register",
        /// It was disabled and is used again, with the state that it kept.
        Enable = "enable",
        /// Another version of it, or other settings, took its place; it goes on with the state that it kept.
        Reload = "reload",
        /// It was removed, and what it kept in the session was deleted.
        Unregister = "unregister",
        /// It is not used any more; what it keeps in the session stays.
        Disable = "disable",
    }
}

words! {
    /// What a thread may take only so much of.
    Limit {
        /// Turns: inputs, with all that the model does about each.
        Turns = "turns",
        /// Steps of all turns: answers of the model.
        Steps = "steps",
        /// Tokens of prompts and answers.
        Tokens = "tokens",
        /// Money, in US dollars.
        Spend = "spend",
        /// Child threads that are started.
        Spawns = "spawns",
        /// How deep child threads are nested.
        Depth = "depth",
        /// The time of the turns.
        Duration = "duration",
    }
}

impl Limit {
    /// The code of a request to exceed it, `limit_code` of `limit_escalation_requested`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Turns => "turns_exceeded",
            Self::Steps => "steps_exceeded",
            Self::Tokens => "tokens_exceeded",
            Self::Spend => "spend_exceeded",
            Self::Spawns => "spawns_exceeded",
            Self::Depth => "depth_exceeded",
            Self::Duration => "duration_exceeded",
        }
    }

    /// Returns the limit with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.code() == code)
    }

    /// A value of it as people read it.
    pub fn amount(self, value: f64) -> String {
        match self {
            Self::Spend => format!("{value:.4} USD"),
            Self::Duration if value < 10.0 => format!("{value} s"),
            Self::Duration => format!("{value:.0} s"),
            Self::Turns | Self::Steps | Self::Tokens | Self::Spawns | Self::Depth => format!("{value}"),
        }
    }

    /// Why a thread that may not exceed it is suspended.
    pub fn suspends_for(self) -> SuspendReason {
        match self {
            Self::Spend => SuspendReason::Budget,
            Self::Turns | Self::Steps | Self::Tokens | Self::Spawns | Self::Depth | Self::Duration => {
                SuspendReason::Limit
            }
        }
    }
}

words! {
    /// Why a thread is suspended: it can be continued, and nothing of it continues on its own.
    SuspendReason {
        /// It would exceed a limit.
        Limit = "limit",
        /// A request failed for a reason that can pass, such as an overloaded provider.
        Error = "error",
        /// It would cost more than it may.
        Budget = "budget",
        /// A person was asked, and the session was closed before there was an answer.
        Approval = "approval",
    }
}

words! {
    /// What a thread is for, which the program that starts it knows.
    #[derive(Default)]
    ThreadMode {
        /// One input, and its answer.
        Single = "single",
        /// A conversation: turns share a history.
        #[default]
        Conversation = "conversation",
        /// A channel that several people or programs write to.
        Channel = "channel",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Action, BreakerScope, BreakerState, ErrorClass, FailureKind, Limit, PermissionMode, Position, Power,
        ProviderKind, RegistrationAction, RetryHeader, RetryWait, SettingKind, SettingValue, SuspendReason, ThreadMode,
    };

    #[test]
    fn each_word_stands_for_one_value() {
        macro_rules! check {
            ($($name:ident)*) => {
                $(for one in $name::ALL {
                    assert_eq!($name::from_word(one.as_str()), Some(*one));
                })*
            };
        }
        check!(RegistrationAction Action BreakerScope BreakerState ErrorClass ProviderKind Power PermissionMode SettingKind Position);
        check!(FailureKind RetryWait RetryHeader Limit SuspendReason ThreadMode);
        assert!(Limit::ALL.iter().all(|limit| Limit::from_code(limit.code()) == Some(*limit)));
        assert_eq!(Power::from_word("log"), None);
    }

    #[test]
    fn settings_are_parsed_by_their_kind() {
        let parse = |kind, text| SettingValue::parse(kind, text);
        assert_eq!(parse(SettingKind::Texts, " a, ,b"), Some(SettingValue::Texts(vec!["a".into(), "b".into()])));
        assert_eq!(parse(SettingKind::Number, "1.5"), Some(SettingValue::Number(1.5)));
        assert_eq!((parse(SettingKind::Number, "inf"), parse(SettingKind::Boolean, "yes")), (None, None));
    }
}
