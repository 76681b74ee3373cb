//! The catalogue of one session: conditions are evaluated over its configuration.

use flow::{EventCatalogue, EventType};

use super::{Catalogue, Required, Type, Variables};

impl Catalogue {
    /// How events are recorded in a session with this configuration.
    pub fn for_session(&self, variables: &Variables) -> EventCatalogue {
        let types = self.types.iter().map(|(name, of)| (name.clone(), self.of_session(of, variables)));
        EventCatalogue::new(types.collect())
    }

    fn of_session(&self, of: &Type, variables: &Variables) -> EventType {
        let required = match &of.required {
            Required::Never => false,
            Required::Always => true,
            Required::If(condition) => condition.is_fulfilled(variables),
        };
        let critical = required || !self.is_droppable(of);
        let mut event = EventType::new(of.category.as_str(), of.criticality.as_str(), critical);
        event.description.clone_from(&of.description);
        event.payload_schema = of.payload_schema.clone();
        event.required = required;
        event.declared = of.is_declared;
        if !required {
            event.enabled = of.emit.condition.as_ref().is_none_or(|condition| condition.is_fulfilled(variables));
            event.emit_on_error = of.emit_on_error;
            event.accumulate_on_error = of.emit.accumulate_on_error;
        }
        if !critical {
            event.throttle_ms = u64::try_from(of.emit.throttle.as_millis()).unwrap_or(u64::MAX);
            event.milestones.clone_from(&of.emit.milestones);
            event.aggregate = of.emit.aggregate;
        }
        event
    }
}
