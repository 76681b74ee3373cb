//! Events of declared types: what the program that embeds the host, and plugins, emit in a session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use config::events::Variables;
use flow::ports::{EmitError, EventTypes};
use flow::{EventCatalogue, PluginId};
use serde_json::Value;
use store::emission::{DeclaredTypes, OwnType};

use crate::host::loaded::Loaded;

/// The declared types of a session, which are read when they are first needed.
pub(crate) struct CustomEvents {
    workspace: PathBuf,
    variables: Variables,
    /// Returns the current plugins.
    loaded: Box<dyn Fn() -> Arc<Loaded> + Send + Sync>,
    catalogue: OnceLock<Result<Arc<EventCatalogue>, String>>,
    /// The types of these plugins, by their serial numbers.
    types: Mutex<Option<(Vec<u64>, Arc<DeclaredTypes>)>>,
}

impl CustomEvents {
    /// Those of the session's plugins, and of the files of the user and of the workspace.
    pub(crate) fn new(
        workspace: PathBuf,
        variables: Variables,
        loaded: impl Fn() -> Arc<Loaded> + Send + Sync + 'static,
    ) -> Self {
        Self { workspace, variables, loaded: Box::new(loaded), catalogue: OnceLock::new(), types: Mutex::default() }
    }

    /// The catalogue was read for the transcript of the session.
    pub(crate) fn read(&self, catalogue: Arc<EventCatalogue>) {
        let _first = self.catalogue.set(Ok(catalogue));
    }

    fn types(&self) -> Result<Arc<DeclaredTypes>, String> {
        let loaded = (self.loaded)();
        let serials: Vec<u64> = loaded.host_plugins.iter().map(|plugin| plugin.serial).collect();
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, types)) = types.as_ref().filter(|(of, _)| *of == serials) {
            return Ok(Arc::clone(types));
        }
        let read = || {
            let read = loaded.shared.event_catalogue(&self.workspace);
            let (catalogue, _) = read.map_err(|error| error.to_string())?;
            Ok(Arc::new(catalogue.for_session(&self.variables)))
        };
        let catalogue = self.catalogue.get_or_init(read).as_ref().map_err(String::clone)?;
        let new = DeclaredTypes::new(catalogue, own(&loaded)).map_err(|error| error.to_string())?;
        let (_, new) = types.insert((serials, Arc::new(new)));
        Ok(Arc::clone(new))
    }
}

/// The types that the plugins of a session declare.
fn own(loaded: &Loaded) -> impl Iterator<Item = OwnType> {
    loaded.host_plugins.iter().flat_map(|plugin| {
        let manifest = &plugin.loaded.plugin.manifest;
        manifest.events.iter().map(|(name, event)| OwnType {
            plugin: manifest.id.clone(),
            name: name.clone(),
            payload_schema: event.payload_schema.clone(),
        })
    })
}

impl EventTypes for CustomEvents {
    fn admit(&self, plugin: Option<&PluginId>, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        self.types().map_err(EmitError::Catalogue)?.admit(plugin, event_type, payload)
    }
}
