//! Can the provider be used? What `doctor` asks.

use std::time::Duration;

use serde_json::Value;

use crate::config::{HttpConfig, ProviderConfig, ProviderError};
use crate::http::{Http, MAX_MODELS_BYTES};
use crate::recording::{Replay, requests};

/// A check waits no longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says whether a provider can be used, and what was found, in one line. Asks a server for its list of models; no
/// tokens are spent. Reads a recording whole.
///
/// # Errors
/// A setting cannot be used, the key is missing or refused, the server cannot be reached or does not know the model, or
/// the recording cannot be read: each with the remedy.
pub async fn check(config: &ProviderConfig) -> Result<String, ProviderError> {
    match config {
        ProviderConfig::Recording(config) => {
            let replay = Replay::open(config)?;
            let (wire, model) = (replay.wire().as_str(), replay.model());
            Ok(format!("recording of {} to {model} ({wire}): {}", requests(replay.requests()), config.path.display()))
        }
        ProviderConfig::Http(config) => server(config).await,
    }
}

async fn server(config: &HttpConfig) -> Result<String, ProviderError> {
    let quick = HttpConfig { idle_timeout: config.idle_timeout.min(PATIENCE), ..config.clone() };
    let http = Http::new(&quick)?;
    let place = http.place();
    let unreachable = |message: String| ProviderError::Unreachable { message };
    let (status, body) = http.models().await.map_err(|error| unreachable(error.message))?;
    let Some(body) = body else {
        return Err(unreachable(format!(
            "{place} sent more than {MAX_MODELS_BYTES} bytes where its list of models was expected (HTTP {status}); check `base_url`"
        )));
    };
    match status {
        200 => Ok(known(&config.model, &body, &place)),
        // Many servers have no list; that they answer is what counts.
        404 | 405 | 501 => Ok(format!("{place} answers; it has no list of models to look for {} in", config.model)),
        _ => {
            let refused = http.secrets().mask(wire::failure::refused(status, &[], &body));
            Err(unreachable(format!("{place}: {}", refused.message)))
        }
    }
}

/// Looks for the model in `{"data": [{"id": …}]}`.
fn known(model: &str, body: &[u8], place: &str) -> String {
    let list = serde_json::from_slice::<Value>(body).ok();
    let ids: Vec<&str> = list
        .as_ref()
        .and_then(|list| list.get("data")?.as_array())
        .map(|data| data.iter().filter_map(|entry| entry.get("id")?.as_str()).collect())
        .unwrap_or_default();
    // A list has pages, and local servers answer to any name: absence proves nothing, so it is only a note.
    if ids.contains(&model) {
        format!("{place} answers and knows {model}")
    } else if ids.is_empty() {
        format!("{place} answers; its list of models is empty or in another shape")
    } else {
        let some: Vec<String> = ids.iter().take(5).map(|id| wire::failure::shortened(id, 100)).collect();
        let models = if ids.len() == 1 { " model" } else { " models" };
        let more = if ids.len() > some.len() { ", …" } else { "" };
        format!("{place} answers; {model} is not on its list of {}{} ({}{})", ids.len(), models, some.join(", "), more)
    }
}
