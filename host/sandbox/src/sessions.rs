//! Opening the plugins of a session, and changing those of an open one.

use std::any::Any;
use std::sync::Arc;

use flow::ports::{Clock, EventSink, Extensions, SessionState, SessionView};
use flow::{PluginId, SessionId};

use crate::events::Emitted;
use crate::guest::Session;
use crate::load::Plugin;
use crate::session::SessionExtensions;
use crate::state::SessionTotal;

/// Opens a session with these plugins.
pub(crate) fn open(
    plugins: &[Plugin],
    session: &SessionId,
    (view, events): (Arc<dyn SessionView>, Arc<dyn EventSink>),
    state: Arc<dyn SessionState>,
    (session_bytes, clock): (u64, Arc<dyn Clock>),
) -> Arc<dyn Extensions> {
    let (id, total, emitted) = (session.clone(), Arc::new(SessionTotal::new(session_bytes)), Emitted::default());
    let session = Arc::new(Session { id, view, events, clock, state, total, emitted });
    Arc::new(SessionExtensions::new(session, plugins.iter().map(|plugin| Arc::clone(&plugin.loaded))))
}

/// The session of `before` with these plugins.
///
/// # Errors
/// It is of another host.
pub(crate) fn adopt(
    plugins: &[Plugin],
    before: &Arc<dyn Extensions>,
    unregistered: &[PluginId],
) -> Result<Arc<dyn Extensions>, String> {
    let before: Arc<dyn Any + Send + Sync> = Arc::<dyn Extensions>::clone(before);
    let before = before.downcast::<SessionExtensions>();
    let before = before.map_err(|_| "the session's extensions do not belong to this sandbox".to_owned())?;
    Ok(Arc::new(before.successor(plugins.iter().map(|plugin| Arc::clone(&plugin.loaded)), unregistered)))
}
