//! Passes the results of tools that the client ran through `on_tool_result`.

use std::slice::SliceIndex;

use flow::{CallId, ToolCall};
use guard::results;

use super::{Stage, Stop, note};
use crate::conversation::{Conversation, Message, Part, ToolOutput};
use crate::memory::{About, Note};

impl<'b> Stage<'_, 'b> {
    /// Passes the results in these messages.
    pub(super) async fn results(
        &mut self,
        conversation: &Conversation<'b>,
        messages: impl SliceIndex<[Message<'b>], Output = [Message<'b>]>,
    ) -> Result<(), Stop> {
        for part in conversation.messages[messages].iter().flat_map(|one| &one.parts) {
            if let Part::Result(output) = part {
                self.result(conversation, output).await?;
            }
        }
        Ok(())
    }

    async fn result(&mut self, conversation: &Conversation<'b>, output: &ToolOutput<'b>) -> Result<(), Stop> {
        let texts: Vec<String> = output.texts.iter().map(|at| self.doc.text(at).unwrap_or_default()).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let numbers: Vec<String> = (0..texts.len()).map(|number| number.to_string()).collect();
        let keys: Vec<[&str; 3]> =
            texts.iter().zip(&numbers).map(|(text, number)| [output.call.as_str(), number, text]).collect();
        let known: Option<Vec<Note>> = keys.iter().map(|key| self.known(About::Result, key)).collect();
        let notes = match known {
            Some(notes) => notes,
            None => {
                let call = self.call(conversation, &output.call);
                let made = results::of_client(self.caller, &call, texts.clone(), output.is_error).await?;
                let made = made.map_err(|by| Stop::unchecked(&by, "the result of a tool"))?;
                let notes = spread(&texts, made);
                keys.iter().zip(notes).map(|(key, note)| self.noted(About::Result, key, note)).collect()
            }
        };
        for (at, note) in output.texts.iter().zip(&notes) {
            self.apply(at, note);
        }
        Ok(())
    }

    /// Returns the call of a result, as the client has it.
    fn call(&self, conversation: &Conversation<'b>, id: &str) -> ToolCall {
        let parts: Vec<&Part<'_>> = conversation.messages.iter().flat_map(|one| &one.parts).collect();
        let mut found = parts.into_iter().rev().filter_map(|part| match part {
            Part::Call(call) if call.id == id => Some(call),
            _ => None,
        });
        let (name, arguments) = found
            .next()
            .map_or_else(|| (String::new(), "{}".to_owned()), |call| (call.name.clone(), call.arguments(self.doc)));
        ToolCall { id: CallId::new(id), name, arguments }
    }
}

/// Assigns the returned texts to the blocks. If their number has changed, the first block gets all of them, and the others become empty.
fn spread(before: &[String], after: Vec<String>) -> Vec<Note> {
    if before.len() == after.len() {
        return before.iter().zip(after).map(|(before, after)| note(before, after)).collect();
    }
    let all = after.join("\n");
    let mut notes = vec![note(&before[0], all)];
    notes.extend(before.iter().skip(1).map(|before| note(before, String::new())));
    notes
}
