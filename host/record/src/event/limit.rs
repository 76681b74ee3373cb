//! Requests for higher limits. Those about a limit of a later version have no event.

use flow::{EventKind, Limit, LimitDecision, LimitRequest};

use crate::{LimitEscalationRequested, LimitEscalationResolved};

impl LimitEscalationRequested {
    pub(super) fn kind(&self) -> Option<EventKind> {
        let limit = Limit::from_code(&self.limit_code)?;
        let mut request = LimitRequest::new(0, limit, self.current_value, self.current_max, self.proposed_max);
        request.id.clone_from(&self.approval_request_id);
        request.message.clone_from(&self.message);
        Some(EventKind::LimitEscalationRequested(request))
    }
}

impl LimitEscalationResolved {
    pub(super) fn kind(&self) -> Option<EventKind> {
        let decision = match (self.decision.as_str(), self.new_max) {
            ("approved", Some(max)) => LimitDecision::Approved { max },
            ("denied", _) => LimitDecision::Denied { reason: self.reason.clone().unwrap_or_default() },
            _ => LimitDecision::TimedOut,
        };
        let (request, by) = (self.approval_request_id.clone(), self.decided_by.clone());
        let limit = Limit::from_code(&self.limit_code)?;
        Some(EventKind::LimitEscalationResolved { request, limit, decision, by })
    }
}
