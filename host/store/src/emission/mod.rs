//! The catalogue of events at run time: decides which events of a thread are recorded, when, and how many of them as one.
//!
//! [`EmissionPolicy`] belongs to a session; each opening of its transcript has an [`Emission`], a state machine without I/O and clock
//! whose only time is that of the events. A [`Validator`] checks payloads against the schemas of the catalogue.
//!
//! What an [`Emission`] does with an event, by the settings of its type:
//!
//! | event | what happens |
//! |---|---|
//! | its type's condition is not fulfilled | it is left out |
//! | it reports an error, and the type does not record errors | it is left out |
//! | critical | everything held back is recorded, then the event |
//! | counted (`aggregate`) | it joins the record of its turn, extension and callback; a failure is recorded as it is |
//! | with a progress, under `milestones` | it is recorded if it reaches the next milestone, and held back otherwise |
//! | throttled | it is recorded if enough time has passed, and held back otherwise |
//! | any other | it is recorded |
//!
//! Of the events that are held back the last one of each call is kept, and text is joined, so that neither the last value nor a byte
//! of text is lost. They are recorded before the next critical event, progress before the result of its call; counted events before the
//! end of their turn.

mod counted;
mod declared;
mod kinds;
mod milestones;
mod throttle;
mod validator;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use flow::ports::Durability;
use flow::{Aggregate, Event, EventCatalogue, EventKind, EventType};
use record::Body;

use self::counted::Counted;
pub use self::declared::{DeclaredTypes, OwnType};
use self::milestones::Milestones;
use self::throttle::Throttle;
pub use self::validator::{InvalidSchema, OnViolation, Problem, Validator, Violation};
use crate::transcript::{EventFilter, EventPolicy};

/// The catalogue of one session, for its journal.
#[derive(Clone, Debug)]
pub struct EmissionPolicy {
    known: Arc<Known>,
    on_violation: OnViolation,
}

/// A catalogue, and what is made of it. It takes about a megabyte: sessions whose catalogues are equal share one.
#[derive(Debug)]
struct Known {
    catalogue: Arc<EventCatalogue>,
    /// Made on a thread that writes transcripts: that takes some milliseconds.
    validator: OnceLock<Option<Validator>>,
}

/// Those of the open sessions of the process.
static KNOWN: Mutex<Vec<Weak<Known>>> = Mutex::new(Vec::new());

impl Known {
    fn of(catalogue: EventCatalogue) -> Arc<Self> {
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = all.iter().filter_map(Weak::upgrade).find(|known| *known.catalogue == catalogue) {
            return same;
        }
        let known = Arc::new(Self { catalogue: Arc::new(catalogue), validator: OnceLock::new() });
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&known));
        known
    }
}

/// What is recorded of the events of one thread.
#[derive(Debug)]
pub struct Emission {
    known: Arc<Known>,
    on_violation: OnViolation,
    throttle: Throttle,
    milestones: Milestones,
    counted: Counted,
    /// The last turn that ended has failed.
    has_failed: bool,
}

impl EmissionPolicy {
    /// A policy that applies this catalogue.
    pub fn new(catalogue: EventCatalogue) -> Self {
        Self { known: Known::of(catalogue), on_violation: OnViolation::default() }
    }

    /// The catalogue, which sessions share whose catalogues are equal.
    pub fn catalogue(&self) -> &Arc<EventCatalogue> {
        &self.known.catalogue
    }

    /// Records a `schema_violation` in place of an event whose payload does not conform to its schema, also in builds for development,
    /// which panic otherwise.
    #[must_use]
    pub fn recording_violations(mut self) -> Self {
        self.on_violation = OnViolation::Record;
        self
    }

    /// Whether the turn and subscribers wait for events of this kind. A type that the catalogue does not have is critical: what
    /// nobody has decided about is not lost.
    pub fn durability(&self, kind: &EventKind) -> Durability {
        match kinds::event_type(&self.known.catalogue, kind) {
            _ if kinds::is_needed(kind) => Durability::Critical,
            Some(of) if !of.critical || !of.enabled => Durability::Droppable,
            Some(_) | None => Durability::Critical,
        }
    }

    /// Returns the state machine of a thread.
    pub fn filter(&self) -> Emission {
        Emission {
            known: Arc::clone(&self.known),
            on_violation: self.on_violation,
            throttle: Throttle::default(),
            milestones: Milestones::default(),
            counted: Counted::default(),
            has_failed: false,
        }
    }
}

impl EventPolicy for EmissionPolicy {
    fn durability(&self, kind: &EventKind) -> Durability {
        Self::durability(self, kind)
    }

    fn filter(&self) -> Box<dyn EventFilter> {
        Box::new(Self::filter(self))
    }
}

impl EventFilter for Emission {
    fn prepare(&mut self) {
        self.known.validator.get_or_init(|| {
            let made = Validator::new(&self.known.catalogue);
            made.inspect_err(|error| tracing::error!("payloads of events are not checked: {error}")).ok()
        });
    }

    fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        Self::take(self, event, out);
    }

    fn flush(&mut self, out: &mut Vec<Event>) {
        Self::flush(self, out);
    }

    fn replacement(&self, body: &Body) -> Option<Body> {
        let Some(Some(validator)) = self.known.validator.get() else { return None };
        validator.replacement(body, self.on_violation)
    }
}

impl Emission {
    /// Takes the next event of the thread, and pushes what is to be recorded now, in order.
    pub fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        self.counted.turn_began(event.place.turn, out);
        let catalogue = Arc::clone(&self.known.catalogue);
        let of = kinds::event_type(&catalogue, &event.kind);
        let is_needed = kinds::is_needed(&event.kind);
        let is_recorded = is_needed || of.is_none_or(|of| self.is_recorded(of, &event.kind));
        self.has_failed = kinds::has_failed(&event.kind).unwrap_or(self.has_failed);
        match of {
            _ if !is_recorded => {}
            Some(of) if !of.critical && !is_needed => self.take_droppable(of, event, out),
            Some(_) | None => self.take_critical(event, out),
        }
    }

    /// Pushes everything that is held back or counted, oldest first. Meant for the end of the thread: what is counted is split in two
    /// records where the turn goes on.
    pub fn flush(&mut self, out: &mut Vec<Event>) {
        let start = out.len();
        self.throttle.release(out);
        self.milestones.release(out);
        self.counted.release(out);
        out[start..].sort_by_key(|event| event.seq);
    }

    fn is_recorded(&self, of: &EventType, kind: &EventKind) -> bool {
        let is_error = kinds::reports_error(kind, self.has_failed);
        of.enabled && (of.emit_on_error || !is_error) && (of.accumulate_on_error || !kinds::is_accumulated(kind))
    }

    fn take_critical(&mut self, event: Event, out: &mut Vec<Event>) {
        let start = out.len();
        self.throttle.release(out);
        if let EventKind::ToolCallResult { call, .. } = &event.kind {
            self.milestones.finish(call, out);
        }
        if matches!(event.kind, EventKind::TurnFinish { .. }) {
            self.milestones.release(out);
            self.counted.release(out);
        }
        out[start..].sort_by_key(|event| event.seq);
        out.push(event);
    }

    fn take_droppable(&mut self, of: &EventType, event: Event, out: &mut Vec<Event>) {
        if of.aggregate == Aggregate::Turn && kinds::can_be_counted(&event.kind) {
            return self.counted.take(event);
        }
        let progress = kinds::progress(&event.kind).filter(|_| !of.milestones.is_empty());
        match (progress, kinds::call(&event.kind)) {
            (Some(progress), Some(call)) => {
                let call = call.clone();
                self.milestones.take(event, call, progress, &of.milestones, out);
            }
            _ if of.throttle_ms > 0 => self.throttle.take(event, of.throttle_ms, out),
            _ => out.push(event),
        }
    }
}
