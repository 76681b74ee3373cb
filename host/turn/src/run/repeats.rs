//! A model that does not get any further: the same call with the same result many times in a row, answers of which rules block every
//! call, answers whose calls are cut off, pauses without end. Each is bounded: the model reads about it, and if it continues, the turn ends.
//!
//! Calls are compared by name and arguments, whatever the order of keys and the space between them. A call that was not made before in the
//! turn, or one whose result is another than the last time, is progress: what a model repeats between two such calls, as it runs the same
//! tests after each change, is not counted. Calls that alternate are counted each on its own.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use flow::{StopReason, ToolCall, ToolOutput, TurnStatus};
use serde_json::Value;

/// How many answers in a row can be cut off in the middle of their calls.
const MAX_CUT_OFF: u32 = 3;

/// How many pauses without a call can follow each other.
const MAX_PAUSES: u32 = 8;

/// What the model has repeated in a turn.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// How often the same call can have the same result; 0: any number of times.
    most: u32,
    calls: HashMap<u64, Seen>,
    /// The step under way.
    step: u32,
    /// The tool that was called again after the model had read that it repeats itself, and how often.
    ended: Option<(String, u32)>,
    /// Calls of the step that did not fail.
    succeeded: u32,
    /// The call at hand is blocked by a rule.
    is_blocked: bool,
    /// Calls of the step that rules blocked.
    blocked: usize,
    /// Answers in a row of which rules blocked all calls.
    blocked_steps: u32,
    cut_off: u32,
    pauses: u32,
}

/// The last result of a call.
#[derive(Clone, Copy, Debug)]
struct Seen {
    result: u64,
    /// How often it had this result since something else has happened.
    times: u32,
    /// The step in which the repetition was reported to the model.
    told: Option<u32>,
}

impl Repeats {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, ..Self::default() }
    }

    /// A step begins.
    pub(crate) fn begin_step(&mut self) {
        self.step += 1;
        (self.succeeded, self.blocked) = (0, 0);
    }

    /// The user has something new to say.
    pub(crate) fn reset(&mut self) {
        *self = Self { step: self.step, ..Self::new(self.most) };
    }

    /// The call at hand does not run because a rule blocks it.
    pub(crate) fn block(&mut self) {
        self.is_blocked = true;
        self.blocked += 1;
    }

    /// A call has its result. Returns what the model reads about it, where it is repeated too often.
    pub(crate) fn result(&mut self, call: &ToolCall, output: &ToolOutput) -> Option<String> {
        let is_blocked = std::mem::take(&mut self.is_blocked);
        self.succeeded += u32::from(!output.is_error && !is_blocked);
        if self.most == 0 {
            return None;
        }
        let of_same = self.same_result(call, output);
        let blocked = self.blocked_steps + 1;
        let of_blocked = (is_blocked && self.succeeded == 0 && blocked >= self.most).then(|| {
            format!(
                "Rules have blocked all calls of {blocked} answers in a row. Do something else, or answer. If they block those of your next \
                 answer too, the turn ends."
            )
        });
        of_same.or(of_blocked)
    }

    fn same_result(&mut self, call: &ToolCall, output: &ToolOutput) -> Option<String> {
        let (key, result) =
            (hash(&(&call.name, canonical(&call.arguments))), hash(&(&output.content, output.is_error)));
        let times = match self.calls.get(&key) {
            Some(seen) if seen.result == result => seen.times + 1,
            _ => {
                self.calls.values_mut().for_each(|seen| (seen.times, seen.told) = (1, None));
                self.calls.insert(key, Seen { result, times: 1, told: None });
                1
            }
        };
        let (most, step) = (self.most, self.step);
        let seen = self.calls.get_mut(&key)?;
        seen.times = times;
        if times < most {
            return None;
        }
        // Several calls of one answer were made before the model could read anything.
        if seen.told.is_some_and(|told| told < step) {
            self.ended = Some((call.name.clone(), times));
        }
        seen.told.get_or_insert(step);
        Some(format!(
            "You have made this call {times} times with the same result. Nothing will change if you make it again: do something else, or \
             answer. If you repeat it, the turn ends."
        ))
    }

    /// A step has ended. Returns how the turn ends, where the model does not get any further.
    pub(crate) fn end_step(&mut self, stop: &StopReason, calls: usize) -> Option<TurnStatus> {
        let is_cut_off =
            matches!(stop, StopReason::MaxTokens | StopReason::ContextFull) && calls > 0 && self.succeeded == 0;
        let is_blocked = self.most > 0 && calls > 0 && self.blocked >= calls;
        self.blocked_steps = if is_blocked { self.blocked_steps + 1 } else { 0 };
        self.cut_off = if is_cut_off { self.cut_off + 1 } else { 0 };
        self.pauses = if *stop == StopReason::Pause && calls == 0 { self.pauses + 1 } else { 0 };
        let message = if let Some((tool, times)) = self.ended.take() {
            let tool = if tool.trim().is_empty() { "a tool without a name".to_owned() } else { format!("`{tool}`") };
            format!("the model called {tool} {times} times with the same arguments and the same result")
        } else if self.blocked_steps > self.most {
            format!("rules blocked all calls of {} answers in a row", self.blocked_steps)
        } else if self.cut_off >= MAX_CUT_OFF {
            format!(
                "{MAX_CUT_OFF} answers in a row reached their limit of tokens in the middle of a tool call; raise `max_tokens` under `[provider]`"
            )
        } else if self.pauses >= MAX_PAUSES {
            format!("the model paused {MAX_PAUSES} times in a row without an answer")
        } else {
            return None;
        };
        Some(TurnStatus::NoProgress { message })
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Arguments with their keys in order and without space around them; as they are, where they are no JSON.
fn canonical(arguments: &str) -> String {
    fn write(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort_unstable();
                out.push('{');
                for key in keys {
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    write(&map[key], out);
                    out.push(',');
                }
                out.push('}');
            }
            Value::Array(list) => {
                out.push('[');
                for one in list {
                    write(one, out);
                    out.push(',');
                }
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
    }
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return arguments.trim().to_owned() };
    let mut out = String::with_capacity(arguments.len());
    write(&value, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use flow::CallId;

    use super::*;

    /// Makes calls, one a step: `name arguments=result`. Returns after how many the model was told, and after how many the turn ended.
    fn run<'c>(most: u32, calls: impl IntoIterator<Item = &'c str>) -> (Option<usize>, Option<usize>) {
        let mut repeats = Repeats::new(most);
        let mut told = None;
        for (number, call) in calls.into_iter().enumerate() {
            repeats.begin_step();
            told = told.or(one(&mut repeats, call).map(|_| number + 1));
            if let Some(status) = repeats.end_step(&StopReason::ToolUse, 1) {
                assert_eq!(status.as_str(), "no_progress");
                return (told, Some(number + 1));
            }
        }
        (told, None)
    }

    fn one(repeats: &mut Repeats, call: &str) -> Option<String> {
        let (call, content) = call.split_once('=').unwrap_or((call, ""));
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let call = ToolCall { id: CallId::new("1"), name: name.into(), arguments: arguments.into() };
        repeats.result(&call, &ToolOutput { content: content.into(), diff: None, is_error: false })
    }

    #[test]
    fn the_same_call_with_the_same_result_is_reported_and_then_ends_the_turn() {
        let same = |call: &'static str, times| std::iter::repeat_n(call, times);
        assert_eq!(run(8, same("read {}=a", 7)), (None, None));
        assert_eq!(run(8, same("read {}=a", 8)), (Some(8), None));
        assert_eq!(run(8, same("read {}=a", 20)), (Some(8), Some(9)));
        assert_eq!(run(2, same("read {}=a", 20)), (Some(2), Some(3)));
        assert_eq!(run(0, same("read {}=a", 100)), (None, None));
        // The arguments are the same, however they are written.
        let written = ["read {\"a\":1,\"b\":[2]}=x", "read { \"b\" : [2], \"a\" : 1 }=x"];
        assert_eq!(run(3, written.into_iter().cycle().take(9)), (Some(3), Some(4)));
        // What is no JSON is compared as well.
        assert_eq!(run(3, same("read {\"a\"=x", 9)), (Some(3), Some(4)));
    }

    #[test]
    fn calls_that_alternate_are_counted_each_on_its_own() {
        let pairs = ["read {}=a", "list {}=b"];
        assert_eq!(run(4, pairs.into_iter().cycle().take(30)), (Some(7), Some(9)));
        let three = ["read {}=a", "list {}=b", "find {}=c"];
        assert_eq!(run(4, three.into_iter().cycle().take(30)), (Some(10), Some(13)));
    }

    #[test]
    fn progress_resets_the_count() {
        // A result that changes: something that is waited for.
        let changing: Vec<String> = (0..40).map(|number| format!("poll {{}}={}", number / 6)).collect();
        assert_eq!(run(8, changing.iter().map(String::as_str)), (None, None));
        // The same tests after each change.
        let edits: Vec<String> = (0..40)
            .flat_map(|number| [format!("edit {{\"at\":{number}}}=done"), "test {}=failed".to_owned()])
            .collect();
        assert_eq!(run(8, edits.iter().map(String::as_str)), (None, None));
    }

    #[test]
    fn calls_of_one_answer_are_made_before_the_model_reads_anything() {
        let mut repeats = Repeats::new(3);
        repeats.begin_step();
        let told = (0..10).filter(|_| one(&mut repeats, "read {}=a").is_some()).count();
        assert_eq!((told, repeats.end_step(&StopReason::ToolUse, 10)), (8, None));
        repeats.begin_step();
        assert!(one(&mut repeats, "read {}=a").is_some());
        assert!(repeats.end_step(&StopReason::ToolUse, 1).is_some());
    }

    #[test]
    fn what_the_user_says_is_progress() {
        let mut repeats = Repeats::new(2);
        for _ in 0..5 {
            repeats.begin_step();
            assert_eq!(one(&mut repeats, "read {}=a"), None);
            assert_eq!(repeats.end_step(&StopReason::ToolUse, 1), None);
            repeats.reset();
        }
    }

    #[test]
    fn calls_that_rules_block_are_bounded_whatever_they_are() {
        let run = |blocked: &[bool]| {
            let mut repeats = Repeats::new(3);
            let mut reminded = None;
            for (number, blocks) in (1..).zip(blocked) {
                repeats.begin_step();
                if *blocks {
                    repeats.block();
                }
                reminded = reminded.or(one(&mut repeats, &format!("shell {{\"at\":{number}}}=no")).map(|_| number));
                if repeats.end_step(&StopReason::ToolUse, 1).is_some() {
                    return (reminded, Some(number));
                }
            }
            (reminded, None)
        };
        assert_eq!(run(&[true; 9]), (Some(3), Some(4)));
        // A call that runs is progress.
        assert_eq!(run(&[true, true, false, true, true, false, true, true]), (None, None));
        let mut repeats = Repeats::new(1);
        for _ in 0..9 {
            repeats.begin_step();
            repeats.block();
            // Another call of the answer has run.
            assert_eq!(repeats.end_step(&StopReason::ToolUse, 2), None);
        }
    }

    #[test]
    fn answers_that_are_cut_off_and_pauses_are_bounded() {
        let ends = |stop: StopReason, calls: usize, fails: bool| {
            let mut repeats = Repeats::new(8);
            (1..50).find(|_| {
                repeats.begin_step();
                repeats.succeeded = u32::from(!fails);
                repeats.end_step(&stop, calls).is_some()
            })
        };
        assert_eq!(ends(StopReason::MaxTokens, 1, true), Some(3));
        assert_eq!(ends(StopReason::MaxTokens, 2, false), None);
        assert_eq!(ends(StopReason::Pause, 0, true), Some(8));
        assert_eq!(ends(StopReason::ToolUse, 1, true), None);
    }
}
