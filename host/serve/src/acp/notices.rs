//! What the user should know of a session and has no update of its own: what goes wrong with extensions, the provider and the records.

use tidegate::{CompactionMethod, EventKind, LeftOut, ToolOutcome, Troubles};

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
        let (severity, title, about) = match kind {
            EventKind::TurnStart => {
                self.0.begin_turn();
                return None;
            }
            EventKind::ExtensionCallback(report) => trouble(self.0.take(report)?),
            // The call reports that it was stopped.
            EventKind::ExtensionTool(report) if matches!(report.outcome, ToolOutcome::Stopped) => return None,
            EventKind::ExtensionTool(report) => trouble(self.0.take_tool(report)?),
            EventKind::ExtensionLog { plugin, level, message } if matches!(level.as_str(), "warn" | "error") => {
                (Warning, format!("The extension `{plugin}` reports: {message}"), None)
            }
            EventKind::ExtensionWithheld { plugin, reason, .. } => (
                Warning,
                format!("The extension `{plugin}` did not check something, so it is withheld"),
                Some(reason.clone()),
            ),
            EventKind::ExtensionBreaker { plugin, state, reason, .. } => {
                (Warning, format!("The extension `{plugin}`: circuit breaker {}", state.as_str()), Some(reason.clone()))
            }
            EventKind::ExtensionPrompt(prompt) => (
                Info,
                format!("The extension `{}` adds a text to the prompt that was not shown before", prompt.plugin),
                Some(prompt.texts.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join("\n\n")),
            ),
            EventKind::RulesReloaded { active, notices } if !notices.is_empty() => {
                let are = if *active == 1 { "is" } else { "are" };
                (Warning, format!("Rules were edited; {active} {are} in force"), Some(notices.join("\n")))
            }
            EventKind::ContextCompactionStart { ratio, method: CompactionMethod::Summary, .. } => {
                let share = ratio * 100.0;
                let title = format!("The conversation fills {share:.0} % of the context: its older part is summarised");
                (Info, title, None)
            }
            EventKind::ContextCompactionEnd { error: Some(error), .. } => {
                (Warning, format!("The conversation was not summarised: {error}"), None)
            }
            EventKind::ContextCompactionEnd { left_out, .. } if !left_out.is_empty() => {
                (Info, format!("Left out for the model, to fit its context: {}", LeftOut::in_words(left_out)), None)
            }
            EventKind::ErrorClassified { message, retryable: true, .. } => (Warning, message.clone(), None),
            EventKind::RetryScheduled { retry, max_retries, delay_ms, .. } => {
                (Info, format!("The request is sent again in {delay_ms} ms (retry {retry} of {max_retries})"), None)
            }
            EventKind::ChildThreadFailed { error, .. } => (Warning, format!("An agent failed: {error}"), None),
            EventKind::Notice { message } => (Warning, message.clone(), None),
            EventKind::StateLost { message } | EventKind::JournalFailed { message, .. } => {
                (Error, message.clone(), None)
            }
            _ => return None,
        };
        Some(Notice { severity, title, about })
    }
}

fn trouble((line, more): (String, Vec<String>)) -> (NoticeSeverity, String, Option<String>) {
    (Warning, format!("Extension {line}"), Some(more.join("\n")).filter(|more| !more.is_empty()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tidegate::{CallFailure, CallbackKind, CallbackOutcome, CallbackReport, FailureCause};

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
        assert_eq!(titles(log("warn")).as_deref(), Some("The extension `shaky` reports: odd"));
    }
}
