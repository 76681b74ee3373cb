//! What a run needs from a person, as the interrupts that end it.

use record::figures::date;
use serde_json::{Value, json};

use super::event::Interrupt;
use crate::conventions::act::{Answered, Asked};
use crate::conventions::calls::Open;

/// Returns the interrupt of what a turn waits for.
pub(super) fn interrupt(open: &Open) -> Interrupt {
    match open {
        Open::Question(asked) => question(asked),
        Open::Limit(limit) => Interrupt {
            id: limit.approval_request_id.clone(),
            reason: "confirmation",
            message: limit.message.clone(),
            tool_call_id: None,
            response_schema: json!({
                "type": "object",
                "properties": {"approved": {"type": "boolean"}, "max": {"type": "number", "default": limit.proposed_max}},
                "required": ["approved"],
            }),
            expires_at: None,
            metadata: json!({"tidegate": limit}),
        },
    }
}

/// Returns the value of the event that something was decided about a call.
pub(super) fn decided(answered: &Answered) -> Value {
    json!({
        "question_id": answered.question,
        "call_id": answered.call,
        "approved": answered.is_approved,
        "decision": answered.decision,
        "decided_by": answered.by,
    })
}

fn question(asked: &Asked) -> Interrupt {
    let mut properties = json!({
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "description": "Replaces all arguments."},
        "reason": {"type": "string", "description": "Of a denial, for the model."},
    });
    if let Some(always) = &asked.always {
        properties["always"] = json!({"type": "boolean", "description": format!("Also allow {always} from now on.")});
    }
    Interrupt {
        id: asked.question.clone(),
        reason: "tool_call",
        message: format!("Run `{}`? {}", asked.tool, asked.reason),
        tool_call_id: Some(asked.call.clone()),
        response_schema: json!({"type": "object", "properties": properties, "required": ["approved"]}),
        expires_at: asked.expires_ms.map(instant),
        metadata: json!({"tidegate": {"preview": asked.preview, "always": asked.always}}),
    }
}

/// Returns a time as ISO 8601 has it.
fn instant(ms: u64) -> String {
    let (seconds, (year, month, day)) = (ms / 1000 % 86_400, date(ms / 86_400_000));
    let (hour, minute, second, ms) = (seconds / 3600, seconds / 60 % 60, seconds % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_798_761_599_001, "2026-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(instant(ms), expected);
        }
    }
}
