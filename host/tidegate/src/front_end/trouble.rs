//! Messages about plugins: failures, answers that are not used, and calls that are not permitted for a while.

use std::collections::BTreeSet;

use flow::{CallFailure, CallbackOutcome, CallbackReport, PluginId, ToolOutcome, ToolReport};

use crate::doctor::remedy;

/// Remembers what was reported: a plugin whose calls are not permitted is reported once a turn, and not for every line of an answer.
#[derive(Debug, Default)]
pub struct Troubles {
    /// Plugins that were reported as not permitted in this turn, after their last failure.
    reported: BTreeSet<PluginId>,
}

impl Troubles {
    /// A turn begins.
    pub fn begin_turn(&mut self) {
        self.reported.clear();
    }

    /// The message for a report: one line, then guest frames and what can be done. `None`: nothing is wrong.
    pub fn take(&mut self, report: &CallbackReport) -> Option<(String, Vec<String>)> {
        let (plugin, callback) = (&report.plugin, report.callback.as_str());
        match &report.outcome {
            CallbackOutcome::Failed(failure) => Some(self.failed(plugin, failure)),
            CallbackOutcome::Ignored(why) => {
                Some((format!("{plugin}: an answer of {callback} was ignored: {why}"), Vec::new()))
            }
            CallbackOutcome::NotPermitted(why) if self.reported.insert(plugin.clone()) => {
                Some((format!("{plugin}: {callback} was not called: {why}"), Vec::new()))
            }
            CallbackOutcome::NotPermitted(_)
            | CallbackOutcome::Skipped(_)
            | CallbackOutcome::Passed
            | CallbackOutcome::Changed => None,
        }
    }

    /// The same for a call of a plugin's tool. What the model has to correct is in the result of the call.
    pub fn take_tool(&mut self, report: &ToolReport) -> Option<(String, Vec<String>)> {
        let (plugin, tool) = (&report.plugin, &report.tool);
        match &report.outcome {
            ToolOutcome::Failed(failure) => Some(self.failed(plugin, failure)),
            ToolOutcome::NotPermitted(why) => {
                Some((format!("{plugin}: tool `{tool}` was not called: {why}"), Vec::new()))
            }
            ToolOutcome::Stopped => Some((format!("{plugin}: tool `{tool}` was stopped with the turn"), Vec::new())),
            ToolOutcome::Done | ToolOutcome::Rejected(_) => None,
        }
    }

    fn failed(&mut self, plugin: &PluginId, failure: &CallFailure) -> (String, Vec<String>) {
        self.reported.remove(plugin);
        let frames = failure.frames.iter().map(|frame| format!("in {frame}"));
        let more = frames.chain(remedy(failure).map(str::to_owned));
        (failure.to_string(), more.collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::{CallId, CallbackKind, Called, FailureCause};

    use super::*;

    fn report(outcome: CallbackOutcome) -> CallbackReport {
        CallbackReport::new("shaky".parse().unwrap(), CallbackKind::PlainText, outcome, 0)
    }

    #[test]
    fn a_plugin_that_may_not_be_called_is_reported_once_a_turn_and_after_each_failure() {
        let mut troubles = Troubles::default();
        let not_permitted =
            report(CallbackOutcome::NotPermitted("failed 3 times within 60 s; tried again in 0.9 s".into()));
        let failed = report(CallbackOutcome::Failed(CallFailure {
            plugin: "shaky".parse().unwrap(),
            called: CallbackKind::PlainText.into(),
            cause: FailureCause::Timeout,
            message: "took longer than 20 ms".into(),
            frames: vec!["spin".into()],
        }));
        for _ in 0..2 {
            let (line, more) = troubles.take(&failed).unwrap();
            assert_eq!(line, "shaky: on_plain_text failed (timeout): took longer than 20 ms");
            assert!(
                more[0] == "in spin" && more[1].starts_with("`text_ms` under `[plugin.limits]` gives it more time"),
                "{more:?}"
            );
            let (line, _) = troubles.take(&not_permitted).unwrap();
            assert!(line.contains("shaky: on_plain_text was not called: failed 3 times"), "{line}");
            assert_eq!(troubles.take(&not_permitted), None);
        }
        troubles.begin_turn();
        let no_time = report(CallbackOutcome::NotPermitted("has used up the 50 ms that it has".into()));
        assert!(
            troubles
                .take(&no_time)
                .unwrap()
                .0
                .ends_with("on_plain_text was not called: has used up the 50 ms that it has")
        );
        assert_eq!(troubles.take(&report(CallbackOutcome::Skipped("shaky replaced the section".into()))), None);
    }

    #[test]
    fn the_limit_that_was_exceeded_is_named() {
        let named = |called: Called, cause, message: &str| {
            let (plugin, message) = ("shaky".parse().unwrap(), message.to_owned());
            remedy(&CallFailure { plugin, called, cause, message, frames: Vec::new() }).unwrap_or_default()
        };
        let (time, size) = (FailureCause::Timeout, FailureCause::Size);
        for (called, cause, message, limit) in [
            (CallbackKind::Tag.into(), time, "took longer than 20 ms", "`text_ms` "),
            (CallbackKind::LlmOutput.into(), time, "took longer than 100 ms", "`callback_ms` "),
            (Called::Tool("dig".to_owned()), time, "took longer than 30000 ms", "`tool_ms` "),
            (Called::Tool("dig".to_owned()), size, "returned 70000 bytes", "`tool_output_kib` "),
            (CallbackKind::PlainText.into(), size, "returned 5000000 bytes", "`output_kib` "),
        ] {
            assert!(named(called, cause, message).starts_with(limit), "{limit}: {message}");
        }
    }

    #[test]
    fn a_tool_that_could_not_do_its_work_is_told_of_and_one_that_rejected_its_call_is_not() {
        let mut troubles = Troubles::default();
        let mut told = |outcome| {
            let (plugin, call) = ("shaky".parse().unwrap(), CallId::new("c"));
            troubles.take_tool(&ToolReport::new(plugin, "dig".to_owned(), call, outcome, 1)).map(|(line, _)| line)
        };
        let failed = ToolOutcome::Failed(CallFailure {
            plugin: "shaky".parse().unwrap(),
            called: Called::Tool("dig".to_owned()),
            cause: FailureCause::Trap,
            message: "it trapped".into(),
            frames: Vec::new(),
        });
        assert_eq!(told(failed).unwrap(), "shaky: tool `dig` failed (trap): it trapped");
        assert_eq!(told(ToolOutcome::NotPermitted("why".into())).unwrap(), "shaky: tool `dig` was not called: why");
        assert_eq!(told(ToolOutcome::Stopped).unwrap(), "shaky: tool `dig` was stopped with the turn");
        assert_eq!((told(ToolOutcome::Done), told(ToolOutcome::Rejected("why".into()))), (None, None));
    }
}
