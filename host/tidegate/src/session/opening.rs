//! Opening a session: its limits, its transcript and what it continues from, and the session of `turn` that all of it is given to.

use std::sync::{Arc, Mutex};

use config::events::Variables;
use flow::ports::{Clock, Confirm, Journal, Model};
use flow::{Price, SessionId};
use store::{FileJournal, TranscriptStore};
use tokio::runtime::Handle;
use turn::{Budget, CancellationToken};

use super::{Session, Shared, State};
use crate::front_end::recent::Recent;
use crate::host::assemble;
use crate::host::blocking;
use crate::host::loaded::Loaded;
use crate::plugins::of_session::SessionPlugins;
use crate::session::approvals::Desk;
use crate::session::custom_events::CustomEvents;
use crate::session::interrupted::Interrupted;
use crate::session::options::new_session_id;
use crate::session::transcripts::{self, Recorded};
use crate::{HostError, SessionOptions};

impl Session {
    /// Opens a session in a loaded workspace. `notice`: a report for its first turn about how it was opened, if it is recorded.
    ///
    /// # Errors
    /// A session with this id is open, its state cannot be read, or there is no runtime to run turns on.
    pub(crate) async fn open(
        plugins: SessionPlugins,
        options: SessionOptions,
        (model, confirm, clock): (Arc<dyn Model>, Arc<dyn Confirm>, Arc<dyn Clock>),
        (transcripts, notice): (Option<TranscriptStore>, Option<String>),
    ) -> Result<Self, HostError> {
        let runtime = Handle::try_current().map_err(|_| HostError::NoRuntime)?;
        let id = options.id.clone().unwrap_or_else(new_session_id);
        let loaded = plugins.loaded();
        let (budget, price) = limits(&options, &loaded, model.name())?;
        let recorded = match transcripts {
            Some(store) => {
                refuse_foreign(&store, &options, &loaded).await?;
                Some(record(store, &id, &options, &loaded, &*model).await?)
            }
            None => None,
        };
        let is_resumed = recorded.as_ref().is_some_and(|recorded| recorded.resumed.is_some());
        if is_resumed && !options.history.is_empty() {
            return Err(HostError::HistoryGiven { id });
        }
        let files = recorded.as_ref().map(|recorded| recorded.decisions.clone());
        let desk = Arc::new(Desk::new(Arc::clone(&clock), loaded.limits.approval_timeout, files));
        let rules = loaded.live.session();
        let children = Arc::clone(plugins.children());
        let (extensions, tools) = loaded.extensions(&options, &rules, &children);
        let session = turn::Session::open(turn::SessionParts {
            id: id.clone(),
            model: Arc::clone(&model),
            extensions,
            tools,
            confirm,
            rules,
            clock: Arc::clone(&clock),
            settings: settings(&options, &loaded, model.name(), price),
        })
        .await?;
        observe(&session, &loaded);
        let plugins = Arc::new(plugins);
        let source = Arc::<SessionPlugins>::clone(&plugins);
        // A child asks nobody: its parent does. It is continued by nobody, either.
        let is_child = options.role.is_some();
        let approvals = (!is_child).then(|| Arc::<Desk>::clone(&desk));
        let mut session =
            session.with_extension_source(source).with_budget(budget.clone(), approvals.clone().map(|desk| desk as _));
        if let Some(records) = options.records {
            session = session.with_records(records);
        }
        if options.accepted_only {
            session = session.accepted_only();
        }
        if !options.history.is_empty() {
            session.replace_history(options.history);
        }
        let is_resumable = recorded.is_some() && !is_child;
        let (mut recorder, mut before, mut interrupted, mut cancel_file) = (None, None, None, None);
        let variables = variables(&loaded, &*model);
        let of_session = Arc::clone(&plugins);
        let custom_events = CustomEvents::new(options.workspace.clone(), variables, move || of_session.loaded());
        let custom_events = Arc::new(custom_events);
        session = session.with_event_types(Arc::<CustomEvents>::clone(&custom_events));
        if let Some(Recorded { journal, cancel_file: file, decisions: _, resumed, mut notices, chat, catalogue }) =
            recorded
        {
            notices.extend(notice);
            custom_events.read(catalogue);
            (before, cancel_file) = (chat, Some(file));
            interrupted = resumed.as_ref().and_then(|resumed| Interrupted::of(resumed, &budget.limits()));
            recorder = Some(Arc::<FileJournal>::clone(&journal) as Arc<dyn Journal>);
            session = session.with_journal(journal, resumed).with_notices(notices);
        }
        if options.holds_waiting {
            session = session.holding_waiting();
        }
        let handles = session.handles();
        if interrupted.is_some_and(|left| left.is_asking()) {
            handles.questions.expect_more();
        }
        children.bind(&id, &handles.hub, recorder.as_ref(), (budget, approvals));
        let recent = options.backlog.map(|backlog| Recent::follow(&handles.hub, backlog, before));
        handles.inputs.report_again();
        let state = Mutex::new(State { idle: Some(Box::new(session)), interrupted, ..State::default() });
        Ok(Self(Arc::new(Shared {
            id,
            agent: options.agent,
            model: Mutex::new(model),
            plugins,
            handles,
            recent,
            flush_mode: options.flush_mode,
            runtime,
            clock,
            desk,
            custom_events,
            is_resumable,
            cancel_file,
            released: CancellationToken::new(),
            state,
        })))
    }
}

/// What the session may spend, and the price of its model where that is known.
///
/// # Errors
/// Money is limited and the price is not known.
fn limits(options: &SessionOptions, loaded: &Loaded, model: &str) -> Result<(Budget, Option<Price>), HostError> {
    let limits = &loaded.limits;
    let budget = match &options.role {
        Some(role) => role.budget.clone(),
        None => Budget::new(options.limits.clone().unwrap_or_else(|| limits.limits.clone()), None),
    };
    let price = price(&budget, loaded, model)?;
    Ok((budget, price))
}

/// The price of a model where it is known.
///
/// # Errors
/// Money is limited and the price is not known.
pub(super) fn price(budget: &Budget, loaded: &Loaded, model: &str) -> Result<Option<Price>, HostError> {
    let limits = &loaded.limits;
    let price = if budget.limits_spend() { limits.price_for(model)? } else { limits.price(model) };
    if budget.limits_spend() && price.is_none() {
        return Err(HostError::UnknownPrice { model: model.to_owned() });
    }
    Ok(price)
}

/// Refuses an id under which plugins have state and no conversation is recorded here: a new one would use what they keep for another.
///
/// # Errors
/// It is such an id, somebody has the session open, or the state cannot be read.
async fn refuse_foreign(store: &TranscriptStore, options: &SessionOptions, loaded: &Loaded) -> Result<(), HostError> {
    let is_new = options.role.is_none() && options.history.is_empty();
    let Some(id) = options.id.as_ref().filter(|_| is_new) else { return Ok(()) };
    let (here, of) = (store.clone(), id.clone());
    if blocking(move || Ok(here.exists(&of)?)).await? {
        return Ok(());
    }
    match loaded.shared.basis.stored.admin.show(id).await? {
        // The lease says who has it.
        Some(shown) if shown.summary.owner.is_some() => Ok(()),
        Some(_) => Err(HostError::TranscriptElsewhere { id: id.clone(), folder: store.root().to_owned() }),
        None => Ok(()),
    }
}

async fn record(
    store: TranscriptStore,
    id: &SessionId,
    options: &SessionOptions,
    loaded: &Loaded,
    model: &dyn Model,
) -> Result<Recorded, HostError> {
    let variables = variables(loaded, model);
    let spawned_by = options.role.as_ref().map(|role| role.spawned_by.clone());
    let more = (spawned_by, options.backlog.is_some());
    let files = (Arc::clone(&loaded.shared), options.workspace.clone());
    transcripts::record(store, id.clone(), files, variables, more).await
}

/// The configuration of the session, as conditions of its catalogue of events see it.
fn variables(loaded: &Loaded, model: &dyn Model) -> Variables {
    let mut variables = Variables::of(&loaded.shared.operator);
    // An embedder can have brought another model than the operator's.
    model.name().clone_into(&mut variables.model);
    model.provider().clone_into(&mut variables.kind);
    variables
}

fn settings(options: &SessionOptions, loaded: &Loaded, model: &str, price: Option<Price>) -> turn::SessionSettings {
    turn::SessionSettings {
        compaction: assemble::compaction(&loaded.shared.operator, model),
        price,
        system: loaded.system(options),
        agent: options.agent.clone(),
        mode: options.mode,
        inputs: options.inputs.clone(),
        ..loaded.settings.clone()
    }
}

/// Counts what happens for the metrics of the host: called where events are emitted, and not from a queue, so that nothing is lost or
/// kept, whatever becomes of the session, and what is read is never behind what has happened.
fn observe(session: &turn::Session, loaded: &Loaded) {
    if let Some(metrics) = &loaded.shared.basis.metrics {
        let mut observed = metrics.session();
        session.handles().hub.observe(move |event| observed.observe(event));
    }
}
