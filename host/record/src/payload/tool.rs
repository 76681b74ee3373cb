//! The payloads of tool calls and of the questions about them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Absent;

payloads! {
    /// The payload of `tool_call_start`.
    ToolCallStart {
        /// The tool's name.
        tool: String,
        /// Pairs it with its result.
        call_id: String,
        /// The arguments; `{"raw": "…"}` where the model wrote no JSON object.
        input: Value,
    }

    /// The payload of `tool_call_progress`.
    ToolCallProgress {
        /// The id of the call.
        call_id: String,
        /// From 0 to 100; absent where the tool does not know.
        progress: Option<f64>,
        /// A human-readable line.
        message: String,
    }

    /// The payload of `tool_call_result`.
    ToolCallResult {
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// What the tool gave, after extensions.
        output: String,
        /// The output, where the call failed or did not run.
        error: Option<String>,
        /// What precedes the output in what the model reads: that a person has edited the arguments, and reminders of stream rules.
        reminder: Option<String>,
        /// A unified diff, for people.
        diff: Option<String>,
        /// How long it ran; absent where it did not.
        duration_ms: Option<u64>,
        /// How long it waited for a confirmation; absent where nobody was asked.
        waited_ms: Option<u64>,
        /// What the tool gave, where extensions have changed it; absent where what was shown is kept.
        original: Option<String>,
        /// What extensions noted.
        annotations: Option<Vec<super::Note>>,
    }

    /// The payload of `tool_confirmation_requested`.
    ToolConfirmationRequested {
        /// The id of the question; absent in records of early versions.
        question_id: Option<String>,
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, as in `tool_call_start`.
        input: Value,
        /// Which setting asks.
        reason: String,
        /// What the person is shown of the call.
        preview: Preview,
        /// What the answer `always` would allow; absent where each such call is asked about.
        always: Option<String>,
        /// Milliseconds until the question is answered by itself; absent where it waits.
        timeout_ms: Option<u64>,
    }

    /// What a person is shown of a call: exact strings, to be escaped by the front end.
    Preview {
        /// The decoded arguments.
        arguments: Vec<Argument>,
        /// The change to a file as a unified diff.
        diff: Option<String>,
        /// Facts that neither the arguments nor the diff show.
        notes: Vec<String>,
    }

    /// One decoded argument.
    Argument {
        /// The key of the argument.
        name: String,
        /// A string as it is, anything else as JSON.
        value: String,
    }

    /// The payload of `tool_confirmation_resolved`.
    ToolConfirmationResolved {
        /// The id of the question; absent in records of early versions.
        question_id: Option<String>,
        /// The id of the call.
        call_id: String,
        /// Whether the call may run.
        approved: bool,
        /// `approved`, `always`, `edited`, `denied`, `unavailable`, `timed_out` or `cancelled`; absent in records of early versions.
        decision: Option<String>,
        /// Of a denial: the reason, which the model reads.
        reason: Option<String>,
        /// Of `always`: what is not asked about from now on in the session.
        pattern: Option<String>,
        /// Of `edited`: the arguments that run, exactly as they were written.
        arguments: Option<String>,
        /// Who has answered; absent where nobody has.
        decided_by: Option<String>,
    }

    /// The payload of `plan_updated`.
    PlanUpdated {
        /// All entries of the plan, in order. Absent: there is no plan any more.
        entries: Option<Vec<PlanEntry>>,
    }

    /// An entry of a plan.
    PlanEntry {
        /// What is to be done, in the words of the model.
        content: String,
        /// `pending`, `in_progress` or `completed`.
        status: String,
    }
}
