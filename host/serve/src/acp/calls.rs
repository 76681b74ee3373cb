//! Tool calls of a session as the updates of its client: one entry for each call, whichever process asks about it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidegate::event::RunPosition;
use tidegate::question::Preview;
use tidegate::tool::CallId;
use tidegate::{Event, EventKind};

use super::names;
use super::sdk::v1::{self, SessionUpdate, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdateFields};
use super::tool::{self, Described};

/// Makes updates of the events about calls, one after the other.
#[derive(Debug)]
pub(super) struct Calls {
    workspace: PathBuf,
    /// Calls of the turn without a result.
    open: BTreeMap<String, Call>,
    /// Calls that an earlier process has left without a result.
    left: BTreeMap<CallId, Left>,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    about: Described,
    /// What a question showed of the change, until there is a result.
    preview: Vec<ToolCallContent>,
    /// The terminal that it runs in.
    terminal: Option<ToolCallContent>,
}

/// A call of an earlier process. What becomes of it has another place than its answer, which the id of its entry has.
#[derive(Debug)]
pub(super) struct Left {
    /// The place of the answer.
    pub(super) place: RunPosition,
    pub(super) arguments: String,
    /// The client has an entry of the call.
    pub(super) is_known: bool,
}

impl Calls {
    pub(super) fn new(workspace: PathBuf, left: BTreeMap<CallId, Left>) -> Self {
        Self { workspace, open: BTreeMap::new(), left }
    }

    /// The history is sent, which has an entry of each call.
    pub(super) fn loaded(&mut self) {
        self.left.values_mut().for_each(|left| left.is_known = true);
    }

    /// The id of the entry of a call, which an event of this place is about.
    pub(super) fn id(&self, place: RunPosition, call: &CallId) -> ToolCallId {
        let left = self.left(place, call);
        names::call(left.map_or(place, |left| left.place), call)
    }

    /// Calls that were left are taken up before the first step of a turn.
    fn left(&self, place: RunPosition, call: &CallId) -> Option<&Left> {
        self.left.get(call).filter(|_| place.step == 0)
    }

    /// The first update about a call; `None`: the client knows it.
    pub(super) fn announce(
        &mut self,
        place: RunPosition,
        call: &CallId,
        tool: &str,
        arguments: &str,
    ) -> Option<SessionUpdate> {
        let id = self.id(place, call);
        if self.open.contains_key(&*id.0) {
            return None;
        }
        let about = tool::describe(&self.workspace, tool, arguments);
        let update = v1::ToolCall::new(id.clone(), about.title.clone())
            .name(tool.to_owned())
            .kind(about.kind)
            .status(ToolCallStatus::Pending)
            .locations(about.locations.clone())
            .raw_input(about.input.clone());
        self.open.insert(id.0.to_string(), Call { id: call.clone(), about, preview: Vec::new(), terminal: None });
        let left = self.left.get_mut(call).filter(|_| place.step == 0);
        let is_known = left.is_some_and(|left| std::mem::replace(&mut left.is_known, true));
        Some(if is_known { SessionUpdate::ToolCallUpdate(update.into()) } else { SessionUpdate::ToolCall(update) })
    }

    /// A call runs in a terminal of the client, which shows it there.
    pub(super) fn terminal(&mut self, call: &CallId, terminal: v1::TerminalId) -> Option<SessionUpdate> {
        // The call runs, so that it is of the last step.
        let (id, known) = self.open.iter_mut().rfind(|(_, known)| known.id == *call)?;
        let content = ToolCallContent::Terminal(v1::Terminal::new(terminal));
        known.terminal = Some(content.clone());
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(vec![content]);
        Some(SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(ToolCallId::new(id.as_str()), fields)))
    }

    /// The updates of an event about a call; `None`: it is another event.
    pub(super) fn take(&mut self, event: &Event) -> Option<Vec<SessionUpdate>> {
        let place = event.place;
        let (call, announced) = match &event.kind {
            EventKind::ToolConfirmationRequested { call, tool, arguments, .. }
            | EventKind::ToolCallStart { call, tool, arguments } => (call, self.announce(place, call, tool, arguments)),
            EventKind::ToolCallProgress { call, .. } => (call, None),
            EventKind::ToolCallResult { call, tool, .. } => {
                let left = self.left(place, call).map(|left| left.arguments.clone());
                (call, self.announce(place, call, tool, left.as_deref().unwrap_or("{}")))
            }
            _ => return None,
        };
        let id = self.id(place, call);
        let known = self.open.get_mut(&*id.0)?;
        let fields = match &event.kind {
            EventKind::ToolConfirmationRequested { preview, .. } => known.asked(preview),
            EventKind::ToolCallStart { tool, arguments, .. } => {
                known.started(tool::describe(&self.workspace, tool, arguments))
            }
            EventKind::ToolCallProgress { message, .. } => known.progress(message),
            EventKind::ToolCallResult { output, diff, is_error, .. } => {
                let fields = known.result(output, diff.as_deref(), *is_error);
                self.open.remove(&*id.0);
                if place.step == 0 {
                    self.left.remove(call);
                }
                fields
            }
            _ => return None,
        };
        let update = SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(id, fields));
        Some(announced.into_iter().chain([update]).collect())
    }

    /// The turn has ended: calls without a result do not run any more.
    pub(super) fn turn_over(&mut self) -> Vec<SessionUpdate> {
        let failed = |(id, _): (String, Call)| {
            let fields =
                ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(vec![tool::text(tool::NO_RESULT)]);
            SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(ToolCallId::new(id), fields))
        };
        std::mem::take(&mut self.open).into_iter().map(failed).collect()
    }
}

impl Call {
    fn asked(&mut self, preview: &Preview) -> ToolCallUpdateFields {
        self.preview = self.about.proposed(preview.diff.as_deref());
        ToolCallUpdateFields::new().content(self.preview.clone())
    }

    fn started(&mut self, about: Described) -> ToolCallUpdateFields {
        // A question can have shown it as another kind.
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).kind(self.about.kind);
        if about.input == self.about.input {
            return fields;
        }
        // The user has edited the arguments.
        self.about = about;
        let Described { title, locations, input, .. } = &self.about;
        fields.title(title.clone()).locations(locations.clone()).raw_input(input.clone())
    }

    fn progress(&self, message: &str) -> ToolCallUpdateFields {
        let kept = self.terminal.iter().chain(&self.preview).cloned();
        ToolCallUpdateFields::new().content(kept.chain([tool::text(message)]).collect::<Vec<_>>())
    }

    fn result(&self, output: &str, diff: Option<&str>, is_error: bool) -> ToolCallUpdateFields {
        let Self { about, terminal, .. } = self;
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let change = diff.map(|diff| about.change(diff)).unwrap_or_default();
        let locations = diff.map(|diff| about.changed(diff)).filter(|changed| !changed.is_empty());
        // The client has the output of its own terminal.
        let output = about.output(output).filter(|_| terminal.is_none());
        let content: Vec<_> = terminal.iter().cloned().chain(change).chain(output).collect();
        ToolCallUpdateFields::new().status(status).content(content).locations(locations)
    }
}
