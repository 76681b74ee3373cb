//! What goes wrong with plugins, in words: failures, answers that are not used, and plugins that are kept out for a while.

use std::collections::BTreeSet;

use tidegate::{CallbackOutcome, CallbackReport, PluginId};

/// Remembers who failed, so that being kept out is said once a turn and not for every line of an answer.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// Plugins of which it was said in this turn, and after their last failure, that they are kept out.
    told: BTreeSet<PluginId>,
}

impl Troubles {
    /// A turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.told.clear();
    }

    /// What to tell about a report: one line, then guest frames and what can be done. `None`: nothing is wrong.
    pub(crate) fn take(&mut self, report: &CallbackReport) -> Option<(String, Vec<String>)> {
        let (plugin, callback) = (&report.plugin, report.callback.as_str());
        match &report.outcome {
            CallbackOutcome::Failed(failure) => {
                self.told.remove(plugin);
                let frames = failure.frames.iter().map(|frame| format!("in {frame}"));
                let more = frames.chain(tidegate::remedy(failure.cause).map(str::to_owned));
                Some((failure.to_string(), more.collect()))
            }
            CallbackOutcome::Ignored(why) => {
                Some((format!("{plugin}: an answer of {callback} was ignored: {why}"), Vec::new()))
            }
            CallbackOutcome::Skipped(why) if why.contains("tried again in") && self.told.insert(plugin.clone()) => {
                Some((format!("{plugin}: {callback} is skipped: {why}"), Vec::new()))
            }
            CallbackOutcome::Skipped(_) | CallbackOutcome::Passed | CallbackOutcome::Changed => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tidegate::{CallFailure, CallbackKind, FailureCause};

    use super::*;

    fn report(outcome: CallbackOutcome) -> CallbackReport {
        CallbackReport::new("shaky".parse().unwrap(), CallbackKind::PlainText, outcome, 0)
    }

    #[test]
    fn a_plugin_that_is_kept_out_is_told_of_once_a_turn_and_after_each_failure() {
        let mut troubles = Troubles::default();
        let kept_out = report(CallbackOutcome::Skipped("failed 3 times within 60 s; tried again in 0.9 s".into()));
        let failed = report(CallbackOutcome::Failed(CallFailure {
            plugin: "shaky".parse().unwrap(),
            callback: CallbackKind::PlainText,
            cause: FailureCause::Timeout,
            message: "took longer than 20 ms".into(),
            frames: vec!["spin".into()],
        }));
        for _ in 0..2 {
            let (line, more) = troubles.take(&failed).unwrap();
            assert_eq!(line, "shaky: on_plain_text failed (timeout): took longer than 20 ms");
            assert!(more[0] == "in spin" && more[1].contains("`text_ms`"), "{more:?}");
            let (line, _) = troubles.take(&kept_out).unwrap();
            assert!(line.contains("shaky: on_plain_text is skipped: failed 3 times"), "{line}");
            assert_eq!(troubles.take(&kept_out), None);
        }
        troubles.begin_turn();
        assert!(troubles.take(&kept_out).is_some());
    }
}
