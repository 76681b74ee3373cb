//! A call of a built-in tool, decoded once: its permission, what a question shows of it, and the run all use this value.

use std::sync::Arc;

use flow::ports::{BoxFuture, Files, PreparedCall, Progress, Terminals};
use flow::{Permission, PlanEntry, Preview, ToolCall, ToolOutput};

use crate::builtin::{self, Builtin, Decoded};
use crate::change::Change;
use crate::{Failure, Shared, blocking};

/// A decoded call.
pub(crate) struct Prepared<'a> {
    shared: &'a Arc<Shared>,
    files: &'a Arc<dyn Files>,
    terminals: Option<&'a Arc<dyn Terminals>>,
    call: &'a ToolCall,
    /// The tool and its arguments; why they cannot be used where they cannot.
    decoded: Result<(Builtin, Arc<Decoded>), Failure>,
    /// The change that a question showed, or why there can be none. Once it was shown, nothing else is done.
    shown: Option<Result<Change, Failure>>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        (files, terminals): (&'a Arc<dyn Files>, Option<&'a Arc<dyn Terminals>>),
        call: &'a ToolCall,
    ) -> Self {
        let decoded = builtin::decode(call).map(|(tool, decoded)| (tool, Arc::new(decoded)));
        Self { shared, files, terminals, call, decoded, shown: None }
    }

    async fn changes(&self, decoded: &Arc<Decoded>) -> Option<Result<Change, Failure>> {
        let (shared, decoded) = (Arc::clone(self.shared), Arc::clone(decoded));
        // Outer error: the tool changes no file, or its work was cut off, which a run then reports.
        blocking::run(self.files, &|_| {}, move |access| Ok(decoded.change(&shared, access))).await.ok().flatten()
    }

    async fn preview_of(&mut self) -> Preview {
        let Ok((_, decoded)) = &self.decoded else {
            // Not reached by a turn: such a call is allowed, and fails.
            return Preview::of_arguments(&self.call.arguments).unwrap_or_default();
        };
        let decoded = Arc::clone(decoded);
        self.shown = self.changes(&decoded).await;
        let mut preview = Preview { arguments: decoded.arguments(self.call), ..Preview::default() };
        match &self.shown {
            None => preview.notes.extend(decoded.note(&self.shared.workspace)),
            Some(Ok(change)) => {
                preview.diff = change.whole_diff();
                preview.notes = change.notes();
            }
            Some(Err(Failure(why))) => preview.notes.push(format!("the call will fail and change nothing: {why}")),
        }
        preview
    }

    async fn run_it(&mut self, progress: Progress<'_>) -> Result<ToolOutput, Failure> {
        let (_, decoded) = self.decoded.as_ref().map_err(Clone::clone)?;
        if let (Some(terminals), Decoded::Shell(arguments)) = (self.terminals, &**decoded) {
            return builtin::run_in_terminal(self.shared, terminals.as_ref(), arguments, &self.call.id).await;
        }
        match self.shown.take() {
            Some(change) => {
                let (change, shared) = (change?, Arc::clone(self.shared));
                blocking::run(self.files, &|_| {}, move |access| change.apply(&shared.workspace, access)).await
            }
            None => builtin::run(self.shared, self.files, decoded, progress).await,
        }
    }
}

impl PreparedCall for Prepared<'_> {
    fn permission(&self) -> Permission {
        match &self.decoded {
            Ok((tool, decoded)) => self.shared.policy.decide(&self.shared.workspace, *tool, &decoded.subject()),
            Err(_) => self.shared.policy.undecoded(self.call),
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(self.preview_of())
    }

    fn always(&self) -> Option<String> {
        let (tool, decoded) = self.decoded.as_ref().ok()?;
        self.shared.policy.always(&self.shared.workspace, *tool, &decoded.subject())
    }

    fn changes_nothing(&self) -> bool {
        let (Some(Ok(change)), Ok((_, decoded))) = (&self.shown, &self.decoded) else { return false };
        // Whoever is not allowed to read a file must not learn without a question what is in it.
        let read = self.shared.policy.decide(&self.shared.workspace, Builtin::ReadFile, &decoded.subject());
        change.is_done() && read == Permission::Allow
    }

    fn plan(&self) -> Option<Vec<PlanEntry>> {
        match &self.decoded {
            Ok((_, decoded)) => decoded.plan(),
            Err(_) => None,
        }
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.run_it(progress).await {
                Ok(output) => output,
                Err(Failure(content)) => ToolOutput { content, diff: None, is_error: true },
            }
        })
    }
}
