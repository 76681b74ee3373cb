//! Opening a conversation.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use config::rule_sources::BuiltRules;
use config::{Diagnostics, events::Variables};
use flow::RunPosition;
use flow::SessionId;
use flow::ports::{
    BoxFuture, Clock, EventSink, Journal, JournalError, SessionInfo, SessionState, StateError, StateStore,
};
use guard::Caller;
use rules::RuleSession;
use store::emission::EmissionPolicy;
use store::{TranscriptError, TranscriptStore};
use turn::{History, Hub, View};

use super::{Conversation, ConversationOptions, Shared, State, Thread, sharing};
use crate::host::load::Wanted;
use crate::host::loaded::Loaded;
use crate::host::stored::Stored;
use crate::host::{admission, blocking};
use crate::session::custom_events::CustomEvents;
use crate::session::options::new_session_id;
use crate::{Host, HostError};

impl Host {
    /// Opens a conversation, or the one of this id that is stored: a session whose turns run elsewhere. Hosts that share a Redis server can
    /// have one conversation open at the same time.
    ///
    /// # Errors
    /// The workspace cannot be used, a required rule is not in force, a plugin is unknown, the store cannot be read, another process has the
    /// conversation open in a store on the disk, or nearly no file descriptors, threads or memory are left.
    pub async fn conversation(&self, options: ConversationOptions) -> Result<Conversation, HostError> {
        if let Some(engine) = self.engine() {
            engine.admit()?;
        }
        admission::admit()?;
        self.live.refresh().await;
        let (shared, wanted) = (self.live.shared(), Wanted::of(&options.session));
        let loaded = blocking(move || shared.open(wanted, None, None)).await?;
        if options.rule_set.is_none() {
            loaded.live.refresh().await;
            refuse_unmet(&loaded.live.built())?;
        }
        let transcripts = self.transcripts.clone().filter(|_| options.is_kept);
        Conversation::open(options, loaded, Arc::clone(&self.clock), transcripts).await
    }
}

/// # Errors
/// A required rule is not in force. The tools of the conversation are not known here, so a missing tool is no reason.
pub(super) fn refuse_unmet(built: &BuiltRules) -> Result<(), Diagnostics> {
    let unmet = built.unmet_for_other_tools(&built.tools);
    if unmet.is_empty() { Ok(()) } else { Err(Diagnostics(unmet)) }
}

impl Conversation {
    async fn open(
        options: ConversationOptions,
        loaded: Arc<Loaded>,
        clock: Arc<dyn Clock>,
        transcripts: Option<TranscriptStore>,
    ) -> Result<Self, HostError> {
        let id = options.session.id.clone().unwrap_or_else(new_session_id);
        let hub = Arc::new(Hub::new(Arc::clone(&clock)));
        if let Some(metrics) = &loaded.shared.basis.metrics {
            let mut observed = metrics.session();
            hub.observe(move |event| observed.observe(event));
        }
        let history = History::default();
        let info = SessionInfo {
            id: id.clone(),
            place: RunPosition::default(),
            provider: String::new(),
            model: String::new(),
            workspace: loaded.settings.workspace.clone(),
            agent: options.session.agent.clone(),
        };
        let view = Arc::new(View::new(info, history.clone(), Arc::clone(&hub)));
        let (mut journal, mut thread) = (None, Thread::default());
        if let Some(store) = transcripts {
            let recorded = record(store, &id, &options, &loaded, &hub).await?;
            journal = recorded.journal;
            thread = recorded.thread;
        }
        let of_plugins = Arc::clone(&loaded);
        let variables = Variables::of(&loaded.shared.operator);
        let types = CustomEvents::new(options.session.workspace.clone(), variables, move || Arc::clone(&of_plugins));
        view.set_event_types(Arc::new(types));
        let from = match options.is_kept && !options.is_local {
            true => Arc::clone(&loaded.shared.basis.stored.sessions),
            false => Stored::memory(Arc::clone(&clock)).sessions,
        };
        let parts = Opening { id: &id, loaded: &loaded, hub: &hub, view: &view };
        let (store, caller) = parts.extensions(&from).await?;
        let stored = sharing::read(&*store).await?;
        let set = options.rule_set.clone().unwrap_or_else(|| Arc::clone(&loaded.live.built().set));
        let mut rules = RuleSession::of_agent(set, &options.session.agent);
        rules.remember(stored.kept.rules.clone());
        let (memory, points) = (stored.kept.memory.clone(), stored.kept.points.clone());
        let bytes = AtomicUsize::new(stored.note.as_ref().map_or(0, |note| note.len()));
        let asked_ms = AtomicU64::new(clock.now_ms());
        let is_local = options.is_local;
        // A turn that another process began continues.
        let has_begun = stored.note.is_some();
        let (is_unsettled, task, unnamed, in_turn) = (false, None, Vec::new(), false);
        let state =
            State { store, is_local, is_unsettled, task, unnamed, caller, rules, has_begun, in_turn, memory, points };
        let (state, storing) = (Mutex::new(state), tokio::sync::Mutex::new(sharing::Storing::new(stored)));
        Ok(Self(Arc::new(Shared {
            id,
            options,
            loaded,
            clock,
            hub,
            history,
            view,
            state,
            storing,
            journal,
            thread: Mutex::new(thread),
            bytes,
            asked_ms,
        })))
    }
}

/// The recording of a conversation.
struct Recording {
    /// `None` if another process records it.
    journal: Option<Arc<dyn Journal>>,
    thread: Thread,
}

/// Records the events of a conversation from here on.
///
/// # Errors
/// The catalogue of events is wrong, or the transcript cannot be read or written.
async fn record(
    store: TranscriptStore,
    id: &SessionId,
    options: &ConversationOptions,
    loaded: &Loaded,
    hub: &Hub,
) -> Result<Recording, HostError> {
    let (shared, workspace) = (Arc::clone(&loaded.shared), options.session.workspace.clone());
    let of = id.clone();
    let opened = blocking(move || {
        let (catalogue, _) = shared.event_catalogue(&workspace)?;
        let policy = EmissionPolicy::new(catalogue.for_session(&Variables::of(&shared.operator)));
        let opened = store.open(&of, Arc::new(policy))?;
        let thread = match opened.records {
            0 => Thread::default(),
            _ => Thread::of_records(store.read(&of)?.records().map_while(|entry| Some(entry.ok()?.record))),
        };
        Ok((opened, thread))
    });
    match opened.await {
        Ok((opened, thread)) => {
            hub.continue_at(opened.next_event);
            let journal: Arc<dyn Journal> = Arc::new(opened.journal);
            hub.record(Arc::clone(&journal));
            Ok(Recording { journal: Some(journal), thread })
        }
        // Instances that share conversations need not share the folder of transcripts.
        Err(HostError::Transcript(error @ TranscriptError::Journal(JournalError::Locked { .. }))) => {
            tracing::warn!(conversation = %id, "it is not recorded here: {error}");
            Ok(Recording { journal: None, thread: Thread::default() })
        }
        Err(error) => Err(error),
    }
}

/// The parameters with which extensions of a conversation are opened.
struct Opening<'a> {
    id: &'a SessionId,
    loaded: &'a Arc<Loaded>,
    hub: &'a Arc<Hub>,
    view: &'a Arc<View>,
}

impl Opening<'_> {
    /// Opens the conversation in a store, and its extensions with it.
    async fn extensions(&self, from: &Arc<dyn StateStore>) -> Result<(Arc<dyn SessionState>, Arc<Caller>), StateError> {
        let store = from.share(self.id).await?;
        let plugins = self.loaded.extensions.with_store(Arc::new(One(Arc::clone(&store))));
        let host = self.loaded.with_native(Arc::new(plugins));
        let sink: Arc<dyn EventSink> = Arc::<Hub>::clone(self.hub);
        let extensions = host.open(self.id, Arc::<View>::clone(self.view), sink).await?;
        let caller = Caller::new(host.registrations(), extensions, Arc::<Hub>::clone(self.hub));
        Ok((store, Arc::new(caller)))
    }
}

impl Shared {
    pub(super) fn shared_store(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.loaded.shared.basis.stored.sessions)
    }

    pub(super) async fn open_extensions(
        &self,
        from: &Arc<dyn StateStore>,
    ) -> Result<(Arc<dyn SessionState>, Arc<Caller>), StateError> {
        let Self { id, loaded, hub, view, .. } = self;
        Opening { id, loaded, hub, view }.extensions(from).await
    }
}

/// A store with one session, which is already open.
struct One(Arc<dyn SessionState>);

impl StateStore for One {
    fn open<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}
