//! The tools of a session in the order that its plugins suggest.

use std::sync::Arc;

use config::Guidance;
use flow::ports::{PreparedCall, Tools, TtsrEvent};
use flow::{ToolCall, ToolSpec};

/// Tools under the guidance of plugins, which orders them and their calls, and forbids none.
pub(crate) struct Guided {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) guidance: Arc<Guidance>,
}

impl Tools for Guided {
    fn specs(&self) -> Vec<ToolSpec> {
        self.guidance.offer(self.tools.specs())
    }

    fn order(&self, calls: &[ToolCall]) -> Vec<usize> {
        if !self.guidance.suggests_order() {
            return self.tools.order(calls);
        }
        self.guidance.run_order(calls, &self.tools.specs())
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        self.tools.prepare(call)
    }

    fn ttsr_triggered(&self, event: &TtsrEvent) {
        self.tools.ttsr_triggered(event);
    }
}
