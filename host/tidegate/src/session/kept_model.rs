//! The model of a recorded session, which it keeps when it continues.

use std::sync::Arc;

use flow::SessionId;
use flow::ports::Model;
use record::{Body, Record};
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
    /// The model that the session with this id has used last, where the host offers it; nothing for a session that is not recorded.
    ///
    /// # Errors
    /// Its transcript cannot be read, or the provider cannot be connected.
    pub(crate) async fn kept_model(&self, id: Option<&SessionId>) -> Result<Kept, HostError> {
        let offered = self.models();
        let (Some(own), Some(store), Some(id)) = (offered.first(), self.transcripts().cloned(), id.cloned()) else {
            return Ok(Kept::default());
        };
        let last = blocking(move || Ok(last_model(&store, &id)?)).await?;
        let Some(name) = last.filter(|name| name != own) else { return Ok(Kept::default()) };
        if offered.contains(&name) {
            return Ok(Kept { model: self.other_model(&name).transpose()?, notice: None });
        }
        let notice = format!(
            "the session had the model `{name}`, which the operator's file does not offer: it continues with `{own}`"
        );
        Ok(Kept { model: None, notice: Some(notice) })
    }
}

/// The model of the last record that names one, those that a fork shares included.
fn last_model(store: &TranscriptStore, id: &SessionId) -> Result<Option<String>, TranscriptError> {
    let mut last = None;
    let reader = match store.read(id) {
        Err(TranscriptError::Missing { .. }) => return Ok(None),
        reader => reader?,
    };
    for entry in reader.records::<Record>() {
        match entry?.record.body {
            Body::ThreadStarted(started) => last = Some(started.model),
            Body::ThreadResumed(resumed) => last = Some(resumed.model),
            _ => {}
        }
    }
    Ok(last)
}
