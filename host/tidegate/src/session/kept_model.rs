//! The model of a recorded session, which it keeps when it continues.

use std::sync::Arc;

use flow::SessionId;
use flow::ports::Model;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{TranscriptError, TranscriptStore};

use crate::host::blocking;
use crate::{Host, HostError};

/// What a session continues with.
#[derive(Default)]
pub(crate) struct Kept {
    /// Another model than the host's.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// That it does not keep its model, and why.
    pub(crate) notice: Option<String>,
}

impl Host {
    /// Returns the last model of the session with this id, if the host's provider offers it; `None` for a session that is not recorded.
    ///
    /// # Errors
    /// Its transcript cannot be read, or the provider cannot be connected.
    pub(crate) async fn kept_model(&self, id: Option<&SessionId>) -> Result<Kept, HostError> {
        let offered = self.models();
        let (Some(own), Some(store), Some(id)) = (offered.first(), self.transcripts().cloned(), id.cloned()) else {
            return Ok(Kept::default());
        };
        let provider = self.own_model().map_or("", |model| model.provider());
        let Some(last) = blocking(move || Ok(last_model(&store, &id)?)).await? else { return Ok(Kept::default()) };
        // The same name at another provider is another model.
        let why = match (last.provider == provider, offered.contains(&last.model)) {
            (true, true) if last.model == *own => return Ok(Kept::default()),
            (true, true) => return Ok(Kept { model: self.other_model(&last.model).transpose()?, notice: None }),
            (true, false) => "which the operator's file does not offer".to_owned(),
            (false, _) => format!("of the provider `{}`, and the host has `{provider}`", last.provider),
        };
        let notice = format!("the session had the model `{}`, {why}: it continues with `{own}`", last.model);
        Ok(Kept { model: None, notice: Some(notice) })
    }
}

/// A line of a transcript, which is only parsed completely if it names a model, because a conversation can be long.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    payload: Option<Box<RawValue>>,
}

/// The model of a session, as in the records that name it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Named {
    provider: String,
    model: String,
}

/// The model of the last record that names one, those that a fork shares included.
fn last_model(store: &TranscriptStore, id: &SessionId) -> Result<Option<Named>, TranscriptError> {
    let mut last = None;
    let reader = match store.read(id) {
        Err(TranscriptError::Missing { .. }) => return Ok(None),
        reader => reader?,
    };
    for entry in reader.records::<Line>() {
        let Line { kind, payload } = entry?.record;
        let names_one = matches!(kind.as_str(), "thread_started" | "thread_resumed");
        // Rebuilding the session reports invalid records as errors.
        let named = payload.filter(|_| names_one).and_then(|payload| serde_json::from_str(payload.get()).ok());
        last = named.or(last);
    }
    Ok(last)
}
