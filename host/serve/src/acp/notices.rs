//! What the user should know of a session and has no update of its own: what goes wrong with extensions, the provider and the records.

use tidegate::EventKind;
use tidegate::diagnostic::Troubles;
use tidegate::event::CompactionMethod;
use tidegate::record::Body;
use tidegate::tool::ToolOutcome;

use super::sdk::v1::NoticeSeverity::{self, Error, Info, Warning};

/// One thing to know.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) severity: NoticeSeverity,
    pub(super) title: String,
    pub(super) about: Option<String>,
}

/// Makes notices of events, one after the other: trouble that repeats in a turn is reported once.
#[derive(Debug, Default)]
pub(super) struct Notices(Troubles);

impl Notices {
    /// The notice of an event; `None`: it is none, or there is an update for it.
    pub(super) fn take(&mut self, kind: &EventKind) -> Option<Notice> {
        let severity = match kind {
            EventKind::TurnStart => {
                self.0.begin_turn();
                return None;
            }
            EventKind::ExtensionCallback(report) => return Some(trouble(self.0.take(report)?)),
            // The call reports that it was stopped.
            EventKind::ExtensionTool(report) if matches!(report.outcome, ToolOutcome::Stopped) => return None,
            EventKind::ExtensionTool(report) => return Some(trouble(self.0.take_tool(report)?)),
            EventKind::ExtensionLog { level, .. } if matches!(level.as_str(), "warn" | "error") => Warning,
            EventKind::RulesReloaded { notices, .. } if !notices.is_empty() => Warning,
            EventKind::ExtensionWithheld { .. }
            | EventKind::ExtensionBreaker { .. }
            | EventKind::ContextCompactionEnd { error: Some(_), .. }
            | EventKind::ErrorClassified { retryable: true, .. }
            | EventKind::ChildThreadFailed { .. }
            | EventKind::Notice { .. } => Warning,
            EventKind::ContextCompactionEnd { left_out, .. } if !left_out.is_empty() => Info,
            EventKind::ExtensionPrompt(_)
            | EventKind::ContextCompactionStart { method: CompactionMethod::Summary, .. }
            | EventKind::RetryScheduled { .. } => Info,
            EventKind::StateLost { .. } | EventKind::JournalFailed { .. } => Error,
            _ => return None,
        };
        let body = Body::of(kind);
        let sentence = body.sentence()?;
        let (title, about) = (sentence.text, sentence.detail.map(|detail| detail.into_owned()));
        Some(Notice { severity, title, about })
    }
}

fn trouble((line, more): (String, Vec<String>)) -> Notice {
    let about = Some(more.join("\n")).filter(|more| !more.is_empty());
    Notice { severity: Warning, title: format!("Extension {line}"), about }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tidegate::event::{CallFailure, CallbackOutcome, CallbackReport, FailureCause};
    use tidegate::plugin::CallbackKind;

    use super::*;

    #[test]
    fn what_goes_wrong_is_reported_and_what_repeats_once_in_a_turn() {
        let plugin = || "shaky".parse::<tidegate::PluginId>().unwrap();
        let report = |outcome| {
            let report = CallbackReport::new(plugin(), CallbackKind::PlainText, outcome, 0);
            EventKind::ExtensionCallback(report)
        };
        let failed = CallFailure {
            plugin: plugin(),
            called: CallbackKind::PlainText.into(),
            cause: FailureCause::Timeout,
            message: "took longer than 20 ms".into(),
            frames: vec!["spin".into()],
        };
        let log =
            |level: &str| EventKind::ExtensionLog { plugin: plugin(), level: level.into(), message: "odd".into() };
        let mut notices = Notices::default();
        let mut titles = |kind: EventKind| notices.take(&kind).map(|notice| notice.title);
        let title = titles(report(CallbackOutcome::Failed(failed)));
        assert_eq!(title.as_deref(), Some("Extension shaky: on_plain_text failed (timeout): took longer than 20 ms"));
        for expected in [true, false] {
            assert_eq!(titles(report(CallbackOutcome::NotPermitted("why".into()))).is_some(), expected);
        }
        assert_eq!(titles(EventKind::TurnStart), None);
        assert!(titles(report(CallbackOutcome::NotPermitted("why".into()))).is_some());
        assert_eq!(titles(report(CallbackOutcome::Passed)), None);
        assert_eq!(titles(log("info")), None);
        assert_eq!(titles(log("warn")).as_deref(), Some("Extension shaky reports (warn)"));
    }
}
