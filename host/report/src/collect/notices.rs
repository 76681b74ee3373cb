//! Events that are one sentence in a report.

use record::{Body, LimitEscalationResolved};

use crate::report::What;

/// Returns the sentence for an event. Of the others nothing is shown: positions say when turns and steps began, answers contain their
/// chunks.
pub(super) fn notice(body: &Body) -> Option<What> {
    let text = match body {
        Body::ThreadResumed(resumed) => format!("resumed by {}", resumed.resumed_by),
        Body::ThreadSuspended(suspended) => format!("suspended ({}): {}", suspended.suspend_reason, suspended.message),
        Body::ThreadError(error) => format!("{}: {}", error.category, error.error),
        Body::ThreadCancelled(by) => {
            let why = by.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("cancelled by {}{why}", by.cancelled_by)
        }
        Body::LimitEscalationRequested(request) => request.message.clone(),
        Body::LimitEscalationResolved(resolved) => decided(resolved),
        Body::InputEdited(edited) => format!("the input {} was edited before it was delivered", edited.id),
        Body::InputWithdrawn(withdrawn) => {
            format!("the input {} was {} before it was delivered", withdrawn.id, withdrawn.receipt)
        }
        Body::RulesReloaded(reloaded) => {
            let notices: String = reloaded.notices.iter().map(|one| format!("\n{one}")).collect();
            let are = if reloaded.active == 1 { "is" } else { "are" };
            format!("rules were reloaded: {} {are} active{notices}", reloaded.active)
        }
        Body::ChildThreadStarted(child) => {
            format!("the agent {} started in the session {}", child.child_directive, child.child_thread_id)
        }
        Body::ChildThreadFailed(child) => format!("the session {} failed: {}", child.child_thread_id, child.error),
        Body::ExtensionUnregistered(one) => format!("{} is not used any more: {}", one.extension_id, one.reason),
        Body::CustomEvent(event) => {
            let by = event.extension_id.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
            format!("{}{by}: {}", event.event_type, event.payload)
        }
        Body::JournalFailed(failed) => failed.message.clone(),
        Body::StateLost(one) | Body::Notice(one) => one.message.clone(),
        _ => return None,
    };
    Some(What::Notice(body.name().to_owned(), text))
}

fn decided(resolved: &LimitEscalationResolved) -> String {
    let by = if resolved.decided_by.is_empty() { String::new() } else { format!(" by {}", resolved.decided_by) };
    let max = resolved.new_max.map(|max| format!(": the limit is {max} now")).unwrap_or_default();
    let reason = resolved.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("a higher limit was {}{by}{max}{reason}", resolved.decision.replace('_', " "))
}
