//! Every event with hostile text in each of its strings: nothing of it acts on the terminal or begins a line of the host.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tidegate::PluginId;
use tidegate::event::{
    CallFailure, CallbackOutcome, CallbackReport, FailureCause, RegistrationAction, RunPosition, StreamKind,
};
use tidegate::model::{ErrorClass, ErrorMetadata};
use tidegate::plugin::CallbackKind;
use tidegate::prompt::PromptText;
use tidegate::rule::{Action, Evidence, RuleMatch};
use tidegate::tool::{ToolOutcome, ToolReport};

use super::*;
use crate::args::ColorWhen;
use tidegate::text::is_hidden;

use crate::screen::clean::GUTTER;
use crate::screen::testing::written;

const HOSTILE: &str =
    "a\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}1m\r\n▌● shell\u{202e}\u{200b}\n+ok\n-no\0\u{8}\u{e0041}\u{10ffff}z";

/// Every kind of event that is printed; `text` is in each string that others write.
fn events(text: &str) -> Vec<EventKind> {
    let string = || text.to_owned();
    let child = || tidegate::SessionId::new(text);
    let mut events = vec![
        EventKind::TurnStart,
        EventKind::InputReceived { id: None, message: Arc::new(tidegate::Message::user(string())) },
        EventKind::CognitionOutDelta { text: string(), index: 0, is_final: false },
        EventKind::SteeringMessage { id: None, role: tidegate::Message::user("").role, text: string(), hidden: false },
        EventKind::CustomMessage { custom_type: string(), text: string(), hidden: true },
        EventKind::ErrorClassified {
            class: ErrorClass::Transient,
            code: string(),
            message: string(),
            retryable: true,
            metadata: ErrorMetadata::default(),
        },
        EventKind::Notice { message: string() },
        EventKind::StateLost { message: string() },
        EventKind::ChildThreadStarted {
            child: child(),
            agent: string(),
            parent: tidegate::SessionId::new("p"),
            call: CallId::new("c"),
        },
        EventKind::ChildThreadFailed { child: child(), error: string() },
        EventKind::TurnFinish { status: TurnStatus::Rejected { by: plugin(), reason: string() } },
        EventKind::TurnFinish { status: TurnStatus::StoppedByRule { rule: string() } },
        EventKind::TurnFinish { status: TurnStatus::Failed { class: ErrorClass::Permanent, message: string() } },
    ];
    events.extend(rule_events(text));
    events.extend(tool_events(text));
    events.extend(extension_events(text));
    events
}

fn rule_events(text: &str) -> Vec<EventKind> {
    let string = || text.to_owned();
    vec![
        fired(text, Action::Interrupt, true, false),
        fired(text, Action::Pass, true, false),
        fired(text, Action::Pass, false, true),
        EventKind::RuleHoldReleased { stream: StreamKind::Text, bytes: 1, bound: string() },
        EventKind::RulesReloaded { active: 1, notices: vec![string(), string()] },
    ]
}

fn fired(text: &str, action: Action, first: bool, again: bool) -> EventKind {
    let string = || text.to_owned();
    let evidence = Evidence {
        pattern: string(),
        text: string(),
        start: 0,
        end: 1,
        line: 1,
        field: Some(string()),
        path: Some(string()),
        unread: false,
    };
    let found = RuleMatch { rule: string(), stream: StreamKind::Text, evidence };
    EventKind::RuleFired { found, action, first, again }
}

fn tool_events(text: &str) -> Vec<EventKind> {
    let (call, string) = (|| CallId::new("c"), || text.to_owned());
    let result = |diff, is_error| EventKind::ToolCallResult {
        call: call(),
        tool: string(),
        output: string(),
        reminder: None,
        diff,
        is_error,
        duration_ms: Some(1),
        waited_ms: None,
        original: None,
        annotations: Vec::new(),
    };
    vec![
        EventKind::ToolCallStart { call: call(), tool: string(), arguments: string() },
        result(None, true),
        result(None, false),
        result(Some(string()), false),
    ]
}

fn extension_events(text: &str) -> Vec<EventKind> {
    let string = || text.to_owned();
    let called =
        |outcome| EventKind::ExtensionCallback(CallbackReport::new(plugin(), CallbackKind::PlainText, outcome, 0));
    let tool = |outcome| EventKind::ExtensionTool(ToolReport::new(plugin(), string(), CallId::new("c"), outcome, 0));
    let log = |level| EventKind::ExtensionLog { plugin: plugin(), level, message: string() };
    let failure = CallFailure {
        plugin: plugin(),
        called: CallbackKind::PlainText.into(),
        cause: FailureCause::Trap,
        message: string(),
        frames: vec![string(), string()],
    };
    vec![
        EventKind::ExtensionRegistered {
            plugin: plugin(),
            version: string(),
            action: RegistrationAction::Reload,
            callbacks: Vec::new(),
        },
        EventKind::ExtensionUnregistered { plugin: plugin(), action: RegistrationAction::Disable, reason: string() },
        EventKind::ExtensionPrompt(ExtensionPrompt {
            plugin: plugin(),
            changed: false,
            texts: vec![PromptText::new(string(), string())],
            digest: string(),
        }),
        called(CallbackOutcome::Failed(failure.clone())),
        tool(ToolOutcome::Failed(failure)),
        tool(ToolOutcome::NotPermitted(string())),
        tool(ToolOutcome::Stopped),
        called(CallbackOutcome::Ignored(string())),
        called(CallbackOutcome::NotPermitted(string())),
        log("info".into()),
        log(string()),
    ]
}

fn plugin() -> PluginId {
    "p".parse().unwrap()
}

/// What is printed of an event, to standard output and to standard error.
fn printed(kind: EventKind) -> (String, String) {
    let mut printer = Printer::new(true, None);
    printer.event(&Event::new(0, 0, RunPosition::default(), kind)).unwrap();
    printer.answer.finish().unwrap();
    written()
}

#[test]
fn no_event_acts_on_the_terminal_or_forges_a_line() {
    style::choose(ColorWhen::Never);
    let mut lines = 0;
    for (hostile, harmless) in events(HOSTILE).into_iter().zip(events("harmless")) {
        let what = format!("{hostile:?}");
        // These show text of several lines by intent; each of its lines gets a gutter of its own.
        let several = matches!(
            hostile,
            EventKind::CustomMessage { .. }
                | EventKind::ExtensionPrompt(_)
                | EventKind::ToolCallResult { is_error: false, .. }
        );
        let (out, err) = printed(hostile);
        assert!(!out.chars().chain(err.chars()).any(|c| c != '\n' && is_hidden(c)), "{what}\n{out}\n{err}");
        assert!(!out.contains(GUTTER), "{what}\n{out}");
        for line in err.lines() {
            assert!(line.starts_with(GUTTER) && line.matches(GUTTER).count() == 1, "{what}\n{err}");
        }
        let expected = printed(harmless).1.lines().count();
        assert!(several || err.lines().count() == expected, "{what}\n{err}");
        lines += err.lines().count();
    }
    assert!(lines > 30, "only {lines} lines were printed");
}

#[test]
fn rules_that_cannot_read_the_same_call_are_one_line() {
    style::choose(ColorWhen::Never);
    let fired = |rule: &str, unread, text: &str| {
        let evidence = Evidence {
            pattern: String::new(),
            text: text.to_owned(),
            start: 0,
            end: 1,
            line: 1,
            field: None,
            path: None,
            unread,
        };
        let found = RuleMatch { rule: rule.to_owned(), stream: StreamKind::Text, evidence };
        EventKind::RuleFired { found, action: Action::Block, first: true, again: false }
    };
    let events = [
        fired("a", true, "unread"),
        fired("b", true, "unread"),
        fired("c", true, "other"),
        fired("d", false, "other"),
        fired("e", true, "other"),
        EventKind::Notice { message: "end".to_owned() },
    ];
    let mut printer = Printer::new(false, None);
    for kind in events {
        printer.event(&Event::new(0, 0, RunPosition::default(), kind)).unwrap();
    }
    let lines = [
        "▲ rule a blocks the tool call: \"unread\" (the same for 1 more rule)",
        "▲ rule c blocks the tool call: \"other\"",
        "▲ rule d blocks the tool call: \"other\"",
        "▲ rule e blocks the tool call: \"other\"",
        "! end",
    ];
    let expected: String = lines.map(|line| format!("{GUTTER}{line}\n")).concat();
    assert_eq!(written().1, expected);
}

#[test]
fn an_output_is_its_first_line_and_the_number_of_the_others() {
    style::choose(ColorWhen::Never);
    for (output, expected) in
        [("1\n", vec!["1"]), ("1\n2", vec!["1", "… 1 more line"]), ("\n1\r\n2\n\n4\n", vec!["1", "… 3 more lines"])]
    {
        result_lines(output, None, false).iter().for_each(screen::note);
        let expected: String = expected.iter().map(|line| format!("{GUTTER}  {line}\n")).collect();
        assert_eq!(written().1, expected, "{output:?}");
    }
}

#[test]
fn a_further_violation_of_a_rule_that_is_used_up_is_a_line() {
    style::choose(ColorWhen::Never);
    let line = |first, again| printed(fired("r", Action::Pass, first, again)).1;
    assert!(line(false, true).contains("matched again and is only reported"));
    assert!(line(true, false).contains("its budget is spent"));
    assert!(line(false, false).contains("its budget is spent"), "whatever earlier matches of the turn were");
}

#[test]
fn a_rule_whose_budget_is_spent_is_not_silent() {
    style::choose(ColorWhen::Never);
    let mut printer = Printer::new(false, None);
    let mut lines = |kind| {
        printer.event(&Event::new(0, 0, RunPosition::default(), kind)).unwrap();
        written().1
    };
    let mut matched = |action, first| lines(fired("r", action, first, false));
    assert!(matched(Action::Interrupt, true).contains("stopped the model"));
    assert!(matched(Action::Interrupt, false).contains("stopped the model"), "each time");
    assert!(matched(Action::Pass, false).contains("its budget is spent"), "what it lets through");
    assert_eq!(matched(Action::Pass, false), "", "once");
    assert_eq!(matched(Action::Remind, false), "", "a word that occurs often");
    lines(EventKind::TurnStart);
    assert!(lines(fired("r", Action::Pass, true, false)).contains("its budget is spent"), "in each turn");
}

#[test]
fn an_escape_that_is_cut_in_two_is_written_out() {
    style::choose(ColorWhen::Never);
    let mut printer = Printer::new(false, None);
    for text in ["a\u{1b}", "[2Jb\r", "c\r", "\nd\r"] {
        let kind = EventKind::CognitionOutDelta { text: text.into(), index: 0, is_final: false };
        printer.event(&Event::new(0, 0, RunPosition::default(), kind)).unwrap();
    }
    printer.answer.finish().unwrap();
    assert_eq!(written().0, "a\\u{1b}[2Jb\\rc\nd\\r\n");
}

#[test]
fn a_log_event_is_one_line() {
    use std::io::Write;
    use tracing_subscriber::fmt::MakeWriter;
    style::choose(ColorWhen::Never);
    let mut line = screen::log::Log.make_writer();
    line.write_all(format!("WARN {HOSTILE}\n").as_bytes()).unwrap();
    drop(line);
    let (_, err) = written();
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(!err.chars().any(|c| c != '\n' && is_hidden(c)), "{err}");
}
