//! Notices that rules have fired: `ttsr_triggered`, which nothing waits for.

use flow::ports::TtsrEvent;
use flow::{CallbackKind, CallbackOutcome};

use super::Caller;

impl Caller {
    /// Whether there is an extension that gets notices.
    pub fn gives_notices(&self) -> bool {
        !self.chains.ttsr.is_empty()
    }

    /// A notice begins, which may outlive its turn: a callback that is under way when its turn ends was not left out in it.
    pub fn begin_notice(&self) {
        for &plugin in &self.chains.ttsr {
            self.is_called(plugin, CallbackKind::TtsrTriggered);
        }
    }

    /// A notice is not given, for this reason.
    pub fn leave_out_notice(&self, why: &str) {
        for &plugin in &self.chains.ttsr {
            let why = CallbackOutcome::NotPermitted(why.to_owned());
            self.report(plugin, CallbackKind::TtsrTriggered, why, 0);
        }
    }

    /// Notifies the extensions, in their order.
    pub async fn notify(&self, event: &TtsrEvent) {
        for &plugin in &self.chains.ttsr {
            let call = self.extensions.ttsr_triggered(plugin, event);
            if let Err(failure) = self.ask(plugin, CallbackKind::TtsrTriggered, call).await {
                // A notice cannot refuse what has already happened; the failure is in the report.
                tracing::warn!("{failure}");
            }
        }
    }
}
