//! Which provider, where, with what key: configuration as used, and the model made of it.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::Model;
use flow::{KeySource, ModelError};
use wire::{AnswerLimits, RequestOptions, Wire};

use crate::http::Http;
use crate::model::WireModel;
use crate::recording::{LEAST_BYTES, Recorder, RecordingError, Replay};

/// A provider, ready to be connected.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one value a session, and it is moved only when it is opened")]
pub enum ProviderConfig {
    /// A server that is reached by HTTP.
    Http(HttpConfig),
    /// A recorded session.
    Recording(ReplayConfig),
}

/// A server that speaks one of the wire formats.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// What it speaks.
    pub wire: Wire,
    /// The model to ask for.
    pub model: String,
    /// Where it is: `https://host`, with or without a path (`/v1` is added where the format has it and the path does
    /// not), and without the endpoint (`/messages`, `/chat/completions`, `/responses`). None = the vendor's own.
    pub base_url: Option<String>,
    /// Where the key is. It is read when the provider is connected, and never printed or recorded.
    pub key: KeySource,
    /// The key itself, from the program that embeds the host; it is used in place of `key`.
    pub given_key: Option<Box<Secret>>,
    /// Sent with every request, after our own.
    pub headers: Vec<(String, String)>,
    /// Whether the key and the headers are sent to another machine over plain `http`.
    pub allow_plaintext_key: bool,
    /// The most tokens of an answer, where a prompt does not say.
    pub max_tokens: Option<u32>,
    /// Tokens for thinking (Anthropic only; fewer than 1024 = none).
    pub thinking_budget: Option<u32>,
    /// How hard to reason: `low`, `medium`, `high` (OpenAI formats only).
    pub effort: Option<String>,
    /// Whether the model can continue from the start of its answer (Anthropic's format only, and never with
    /// thinking). None = known by the model's name: those up to Claude 4.5 can, later ones refuse it.
    pub prefill: Option<bool>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the server may be silent: before the answer's head, and between two chunks of it.
    pub idle_timeout: Duration,
    /// How long an answer may go without content while the server sends pings or comments.
    pub content_timeout: Duration,
    /// How large one answer may become.
    pub limits: AnswerLimits,
    /// Record the session to this file, which must not exist. It is complete when the model has been dropped.
    pub record: Option<PathBuf>,
}

impl HttpConfig {
    /// The vendor's own address, its usual key, the default limits, and the default time-outs: 10 s to connect, 90 s of
    /// silence, 10 minutes without content.
    pub fn new(wire: Wire, model: impl Into<String>) -> Self {
        Self {
            wire,
            model: model.into(),
            base_url: None,
            key: KeySource::Usual,
            given_key: None,
            headers: Vec::new(),
            allow_plaintext_key: false,
            max_tokens: None,
            thinking_budget: None,
            effort: None,
            prefill: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(90),
            content_timeout: Duration::from_secs(600),
            limits: AnswerLimits::default(),
            record: None,
        }
    }
}

/// A recorded session to answer from.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayConfig {
    /// The path of the recording.
    pub path: PathBuf,
    /// How fast: 1 = with the pauses as recorded, 2 = twice as fast, 0 = without pauses.
    pub speed: f64,
    /// Each request must have the body that was recorded, not only fulfil its expectations.
    pub strict: bool,
}

impl ReplayConfig {
    /// At the recorded speed; requests are judged by their expectations.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), speed: 1.0, strict: false }
    }
}

/// A provider cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The variable of the key is not set, or empty.
    #[error("there is no API key for {provider}: set the environment variable {variable}")]
    NoKey {
        /// The provider's name, as the operator writes it.
        provider: &'static str,
        /// The variable's name.
        variable: String,
    },
    /// Something in the configuration cannot be used.
    #[error("{key} of the provider cannot be used: {cause}")]
    Setting {
        /// Which: `base_url`, `headers`, `key`, `speed`.
        key: &'static str,
        /// Why, and what is expected.
        cause: String,
    },
    /// A variable of the environment about proxies cannot be used.
    #[error("{message}")]
    Environment {
        /// Which, why, and what is expected.
        message: String,
    },
    /// The key, or a header that the operator has set, would leave this machine over plain `http`.
    #[error(
        "{secret} would be sent to {place} over plain http, where everyone on the way can read it, so nothing was sent: use https://, an \
         address of this machine such as 127.0.0.1, or set `allow_plaintext_key = true` under [provider]"
    )]
    PlaintextKey {
        /// What would be sent: the key, or the header.
        secret: String,
        /// The server, without the path.
        place: String,
    },
    /// The recording cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The server cannot be reached, or refuses. Only [`crate::check()`] detects this.
    #[error("{message}")]
    Unreachable {
        /// What happened and what to do.
        message: String,
    },
}

/// Makes a model of a configuration. Nothing is sent yet; a recording is read.
///
/// # Errors
/// A setting cannot be used, the key is missing, or the recording cannot be read.
pub fn connect(config: &ProviderConfig) -> Result<Arc<dyn Model>, ProviderError> {
    Ok(Arc::new(match config {
        ProviderConfig::Http(config) => {
            let http = Http::new(config)?;
            let recorder = match &config.record {
                Some(path) => Some(Recorder::create(path, config.wire, &config.model, http.secrets().iter())?),
                None => None,
            };
            let options = request_options(config, http.is_vendor());
            let (name, secrets) = (config.model.clone(), http.secrets().clone());
            WireModel::new(config.wire.as_str(), name, config.wire, options, Box::new(http), recorder)
                .hiding(secrets)
                .limited(config.limits)
                .patient(config.content_timeout)
        }
        ProviderConfig::Recording(config) => {
            let replay = Replay::open(config)?;
            let (wire, name) = (replay.wire(), replay.model().to_owned());
            WireModel::new("recording", name, wire, RequestOptions::default(), Box::new(replay), None)
        }
    }))
}

/// What requests need in addition to their prompts. `vendor`: the server is the vendor's own.
pub(crate) fn request_options(config: &HttpConfig, vendor: bool) -> RequestOptions {
    RequestOptions {
        max_tokens: config.max_tokens,
        thinking_budget: config.thinking_budget,
        effort: config.effort.clone(),
        vendor,
        prefill: config.prefill,
        unmarked: false,
    }
}

/// A string that is never printed, not even for debugging.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) String);

impl Secret {
    /// Wraps a secret, which is masked in every output from then on.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

/// All that must not be printed of a configuration. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Arc<[Secret]>);

impl Secrets {
    pub(crate) fn new(secrets: Vec<Secret>) -> Self {
        Self(secrets.into())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.0.as_str())
    }

    /// Error messages of a server can repeat the request, and they reach screens, logs and transcripts. As in
    /// recordings, strings of fewer than 6 bytes are not treated as secrets, and what looks like a secret is one.
    pub(crate) fn mask(&self, mut error: ModelError) -> ModelError {
        let facts = &mut *error.facts;
        let texts = [&mut error.code, &mut facts.error_type, &mut facts.said];
        for text in std::iter::once(&mut error.message).chain(texts.into_iter().flatten()) {
            for secret in self.iter().filter(|secret| secret.len() >= LEAST_BYTES) {
                spellings(secret).for_each(|spelled| mask_text(text, &spelled));
            }
            if let Cow::Owned(masked) = ::secrets::without_secrets(text) {
                *text = masked;
            }
        }
        error
    }
}

/// The fewest characters of a secret that are masked where it was cut off.
const LEAST_CUT: usize = 4;

/// A secret as an error may repeat it: as it is, in JSON, and with its white space joined as in an excerpt.
fn spellings(secret: &str) -> impl Iterator<Item = String> {
    let json = serde_json::Value::from(secret).to_string();
    let json = json.trim_matches('"').to_owned();
    let joined = secret.split_whitespace().collect::<Vec<_>>().join(" ");
    let others = [json, joined].into_iter().filter(move |other| other.len() >= LEAST_BYTES);
    std::iter::once(secret.to_owned()).chain(others)
}

fn mask_text(text: &mut String, secret: &str) {
    if text.contains(secret) {
        *text = text.replace(secret, "***");
    }
    // Where a text was shortened, the secret may have been.
    let cuts: Vec<usize> = text.match_indices('…').map(|(at, _)| at).collect();
    for cut in cuts.into_iter().rev() {
        let begun = secret
            .char_indices()
            .map(|(at, _)| at)
            .skip(LEAST_CUT)
            .filter(|len| text[..cut].ends_with(&secret[..*len]));
        if let Some(len) = begun.max() {
            text.replace_range(cut - len..cut, "***");
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
