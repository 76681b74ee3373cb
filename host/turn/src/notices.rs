//! What is said about stream rules that fired: to extensions, to the tools, and to whoever subscribed.
//!
//! Nothing waits for any of them. A notice that is slow outlives its turn, and ends with its own limits, with the session, or when the
//! plugins of the session change: then it is stopped, which its report says. What it wrote by then is made durable when it ends.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flow::{EventKind, RuleMatch, RunPosition};
use rules::Judgement;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use flow::ports::{Tools, TtsrEvent};
use guard::Caller;

/// Notices of a session that are under way at once; further ones are left out, with a report.
const MOST: usize = 64;

/// How long the end of a notice whose turn is over waits for a store that does not answer.
const SAVING: Duration = Duration::from_secs(5);

/// Subscribers of a session to the rules that fire in it. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Triggers(Arc<Mutex<Vec<mpsc::UnboundedSender<Arc<TtsrEvent>>>>>);

/// The rules that fire in a session, from the moment of the subscription: those that match at one byte are one item. A rule is given once for
/// each stream and turn. It ends with the session.
#[derive(Debug)]
pub struct TriggerSubscription(mpsc::UnboundedReceiver<Arc<TtsrEvent>>);

impl Triggers {
    /// Subscribes to the rules that fire from now on.
    pub fn subscribe(&self) -> TriggerSubscription {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        TriggerSubscription(receiver)
    }

    fn send(&self, event: &Arc<TtsrEvent>) {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| subscriber.send(Arc::clone(event)).is_ok());
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl TriggerSubscription {
    /// The next rules that fire; `None`: the session is closed.
    pub async fn next(&mut self) -> Option<Arc<TtsrEvent>> {
        self.0.recv().await
    }
}

/// The notices of a session.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    tasks: JoinSet<()>,
    triggers: Triggers,
    /// The last turn that is over.
    over: Arc<AtomicU32>,
}

impl Notices {
    /// Where front ends subscribe.
    pub(crate) fn triggers(&self) -> Triggers {
        self.triggers.clone()
    }

    /// Reports rules that fired, once per stream and rule and turn. Extensions are called in the span of the turn, which can be over before them.
    pub(crate) fn send(
        &mut self,
        (caller, tools): (&Arc<Caller>, &Arc<dyn Tools>),
        (matches, judgement): (&[RuleMatch], &Judgement),
        place: RunPosition,
        turn: &Span,
    ) {
        let first = matches.iter().zip(&judgement.first).filter(|(_, first)| **first).map(|(found, _)| found.clone());
        let event = Arc::new(TtsrEvent { matches: first.collect(), action: judgement.action, place });
        if event.matches.is_empty() {
            return;
        }
        self.triggers.send(&event);
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MOST {
            return caller.leave_out_notice(&format!("{MOST} earlier calls of it have not ended yet"));
        }
        caller.begin_notice();
        let told = tell(Arc::clone(caller), Arc::clone(tools), event, Arc::clone(&self.over));
        self.tasks.spawn(told.instrument(turn.clone()));
    }

    /// A turn is over: a notice of it that ends later makes durable itself what it wrote.
    pub(crate) fn turn_over(&self, turn: u32) {
        self.over.store(turn, Ordering::SeqCst);
    }

    /// Stops those that are under way, because the plugins of the session change.
    pub(crate) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for those that are under way, and stops what takes longer.
    pub(crate) async fn close(&mut self, patience: Duration) {
        self.triggers.close();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(patience, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    /// Waits for those that are under way.
    pub(crate) async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn tell(caller: Arc<Caller>, tools: Arc<dyn Tools>, event: Arc<TtsrEvent>, over: Arc<AtomicU32>) {
    tools.ttsr_triggered(&event);
    caller.notify(&event).await;
    if over.load(Ordering::SeqCst) < event.place.turn || !caller.gives_notices() {
        return;
    }
    if let Err(error) = caller.extensions().settle(SAVING).await {
        let message = format!("what extensions wrote after the end of their turn is not saved: {error}");
        tracing::warn!("{message}");
        caller.events().emit(EventKind::Notice { message });
    }
}
