//! Tools that a plugin provides: checked when it is loaded, and called.

use std::sync::Arc;
use std::time::Instant;

use flow::ports::Progress;
use flow::{NoAnswer, ProvidedTool, ToolCall, ToolOutcome, ToolOutput, ToolReport, ToolSpec};

use crate::cache::{Cache, Mark};
use crate::error::LoadProblem;
use crate::guest::Session;
use crate::limits::{self, TOOL_DESCRIPTION_BYTES, TOOL_NAME, TOOL_SCHEMA_BYTES};
use crate::schema::{Cost, Tool, ToolSchema};
use crate::session::SessionExtensions;
use crate::slot::{Slot, lock};
use crate::state::Commit;
use crate::v0_1::{Call as _, ToolRun, ToolText};

/// A tool as the guest lists it.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) read_only: bool,
}

/// Checks what a guest lists. Schemas that were found valid before, according to `cache`, are compiled when they are used.
pub(crate) fn check(listed: Vec<Listed>, cache: Option<&Cache>) -> Result<Vec<Tool>, LoadProblem> {
    let (count, max) = (listed.len(), limits::TOOLS);
    if count == 0 || count > max {
        return Err(LoadProblem::ToolCount { count, max });
    }
    let (mut tools, mut cost): (Vec<Tool>, Cost) = (Vec::new(), Cost::default());
    for one in listed {
        let name = limits::cut(&one.name, 2 * TOOL_NAME).to_owned();
        let is_known = tools.iter().any(|other| other.provided.spec.name == one.name);
        let tool = if is_known { Err("it is listed twice".to_owned()) } else { valid(one, &mut cost, cache) };
        tools.push(tool.map_err(|why| LoadProblem::Tool { tool: name, why })?);
    }
    Ok(tools)
}

fn valid(listed: Listed, cost: &mut Cost, cache: Option<&Cache>) -> Result<Tool, String> {
    let Listed { name, description, parameters, read_only } = listed;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=TOOL_NAME).contains(&name.len()) || !name.chars().all(fits) {
        return Err(format!("a name has 1 to {TOOL_NAME} ASCII letters, digits, `_` and `-`"));
    }
    let bytes = description.len();
    if description.trim().is_empty() || bytes > TOOL_DESCRIPTION_BYTES {
        return Err(format!("its description has {bytes} bytes; the model needs 1 to {TOOL_DESCRIPTION_BYTES}"));
    }
    let bytes = parameters.len();
    if bytes > TOOL_SCHEMA_BYTES {
        return Err(format!("`parameters` has {bytes} bytes, the limit is {TOOL_SCHEMA_BYTES}"));
    }
    let mark = cache.and_then(|cache| cache.schema_mark(&parameters));
    let parameters =
        serde_json::from_str(&parameters).map_err(|error| format!("`parameters` is not valid JSON: {error}"))?;
    let schema = ToolSchema::new(&parameters, cost)?;
    if !mark.as_ref().is_some_and(Mark::is_set) {
        schema.compiled()?;
        mark.iter().for_each(Mark::set);
    }
    let provided = ProvidedTool::new(ToolSpec { name, description, parameters }, read_only);
    Ok(Tool { provided, schema: Arc::new(schema) })
}

/// A call under way. One that is dropped before it has ended has a report too.
struct Flight<'a> {
    session: &'a Session,
    slot: &'a Slot,
    call: &'a ToolCall,
    began: Instant,
    ended: bool,
}

impl Flight<'_> {
    fn end(&mut self, outcome: ToolOutcome) {
        self.ended = true;
        let nanos = match outcome {
            ToolOutcome::NotPermitted(_) => 0,
            _ => u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        let (plugin, tool, call) = (self.slot.id().clone(), self.call.name.clone(), self.call.id.clone());
        if let ToolOutcome::Failed(failure) = &outcome {
            tracing::warn!(%plugin, tool, "{failure}");
        }
        let report = ToolReport::new(plugin, tool, call, outcome, nanos).with_state_reads(self.slot.area.take_reads());
        self.session.events.emit(flow::EventKind::ExtensionTool(report));
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(ToolOutcome::Stopped);
        }
    }
}

impl SessionExtensions {
    /// Calls a tool in the lane of the callbacks, and reports how it ended.
    pub(crate) async fn tool(
        &self,
        plugin: usize,
        call: &ToolCall,
        progress: Progress<'_>,
    ) -> Result<ToolOutput, NoAnswer> {
        let slot = &self.slots[plugin];
        let mut flight = Flight { session: &self.session, slot, call, began: Instant::now(), ended: false };
        let answer = self.run_tool(slot, call, progress).await;
        flight.end(match &answer {
            Ok(ToolText::Done(_)) => ToolOutcome::Done,
            Ok(ToolText::Rejected(why)) => ToolOutcome::Rejected(why.clone()),
            Err(NoAnswer::NotPermitted(why) | NoAnswer::NoInstance(why)) => ToolOutcome::NotPermitted(why.clone()),
            Err(NoAnswer::Failed(failure)) => ToolOutcome::Failed(failure.clone()),
        });
        Ok(match answer? {
            ToolText::Done(content) => ToolOutput { content, diff: None, is_error: false },
            ToolText::Rejected(content) => ToolOutput { content, diff: None, is_error: true },
        })
    }

    /// The writes of a call that was rejected are undone, and with them an instance that may remember them.
    async fn run_tool(&self, slot: &Arc<Slot>, call: &ToolCall, progress: Progress<'_>) -> Result<ToolText, NoAnswer> {
        let mut lane = lock(&slot.main).await;
        let run = ToolRun { call, progress };
        let called = run.called();
        let permit = self.admit(slot, &called)?;
        let live = slot.take(&mut lane);
        let (mut live, answer) = self.run(slot, live, permit, run).await?;
        let guest = live.store.data_mut();
        let keeps = match &answer {
            ToolText::Done(_) => guest.commit(Commit::Call),
            ToolText::Rejected(_) => !guest.has_written(),
        };
        if keeps {
            slot.plugin.machine.instances.keep(slot, &mut lane, live);
        }
        Ok(answer)
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use wasmtime::Engine;

    use super::{Listed, check};
    use crate::cache::Cache;

    fn listed(parameters: &str) -> Vec<Listed> {
        let (name, description) = ("add".to_owned(), "Adds.".to_owned());
        vec![Listed { name, description, parameters: parameters.to_owned(), read_only: false }]
    }

    #[test]
    fn a_schema_that_was_found_valid_is_compiled_when_it_is_used() {
        const SCHEMA: &str = r#"{"type": "object", "required": ["n"]}"#;
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| Cache::open(&folder.path().join(name), &Engine::default()).unwrap();
        let compiled = |schema: &str, cache: Option<&Cache>| {
            let tools = check(listed(schema), cache).unwrap();
            let at_once = tools[0].schema.is_compiled();
            assert!(tools[0].schema.check("add", "{}").unwrap_err().contains("missing `n`"));
            at_once
        };
        let (one, other) = (open("one"), open("other"));
        assert!(compiled(SCHEMA, Some(&one)), "nothing is known of it");
        assert!(!compiled(SCHEMA, Some(&one)));
        assert!(!compiled(SCHEMA, Some(&open("one"))), "the next start knows it");
        assert!(compiled(&format!("{SCHEMA} "), Some(&one)), "another text");
        assert!(compiled(SCHEMA, Some(&other)), "another installation");
        assert!(compiled(SCHEMA, None));
    }

    #[test]
    fn a_schema_that_is_not_valid_is_refused_at_each_start() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache"), &Engine::default()).unwrap();
        for _ in 0..2 {
            let refused = check(listed(r#"{"type": "object", "properties": 3}"#), Some(&cache)).unwrap_err();
            assert!(refused.to_string().contains("at `/properties`"), "{refused}");
        }
    }
}
