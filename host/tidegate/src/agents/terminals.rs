//! The terminals of an agent: those of the session that started it, which learn which agent runs each command.

use std::sync::Arc;

use flow::SessionId;
use flow::ports::{BoxFuture, TerminalCommand, TerminalEnd, Terminals};

/// Terminals of a session for the commands of a child agent, and of those below it.
pub(super) struct ChildTerminals {
    of_parent: Arc<dyn Terminals>,
    session: SessionId,
}

impl ChildTerminals {
    pub(super) fn of(parent: &Arc<dyn Terminals>, session: &SessionId) -> Arc<dyn Terminals> {
        Arc::new(Self { of_parent: Arc::clone(parent), session: session.clone() })
    }
}

impl Terminals for ChildTerminals {
    fn run<'a>(&'a self, mut command: TerminalCommand<'a>) -> BoxFuture<'a, Result<TerminalEnd, String>> {
        command.child.get_or_insert(&self.session);
        self.of_parent.run(command)
    }
}
