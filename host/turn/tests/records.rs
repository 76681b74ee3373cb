//! What is kept of rules that were injected, and taken up again: by a session that is resumed, from a store or from a
//! transcript; what becomes of it when rules are edited, when a conversation is compacted, and when keeping fails.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use flow::ports::{BoxFuture, KeptRules, RuleRecords};
use flow::{Action, Event, EventKind, Message, RuleRecord, SessionId, StreamKind};
use record::Record;
use rules::RuleSet;
use tidegate_kit::{Edited, Scene, ScriptedModel, calls, drain, rule_set, text};
use tidegate_turn as turn;
use turn::sources::RuleUpdate;
use turn::{CancellationToken, MemoryRecords, Session};

const WRITE: &str = r#"{"path":"src/a.ts","content":"a FORBIDDEN thing"}"#;

fn forbidden(lines: &str) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"FORBIDDEN\"\n{lines}\n+++\nNever say it.");
    rule_set(&[("no-forbidden", &rule)], |_| {})
}

fn id() -> SessionId {
    SessionId::new("test")
}

fn open(model: &Arc<ScriptedModel>, rules: &Arc<RuleSet>, records: &Arc<MemoryRecords>) -> Session {
    tidegate_kit::session(model, vec![], Arc::clone(rules)).with_records(Arc::<MemoryRecords>::clone(records))
}

async fn run(session: &mut Session) -> turn::TurnReport {
    session.run(vec![Message::user("go")], &CancellationToken::new()).await
}

/// Answers for turns that are stopped (`!`) or not.
fn answers(turns: &str) -> Arc<ScriptedModel> {
    ScriptedModel::new(turns.chars().flat_map(|turn| {
        let stopped = [text("FORBIDDEN", 1), text("Fine.", 1)];
        if turn == '!' { stopped.into() } else { vec![text("FORBIDDEN", 1)] }
    }))
}

/// Turns until the model has nothing more to say: `!` where a rule stopped it, `.` where not.
async fn play(session: &mut Session, model: &Arc<ScriptedModel>) -> String {
    let mut seen = String::new();
    while !model.scripts.lock().unwrap().is_empty() {
        seen.push(if run(session).await.interrupts == 1 { '!' } else { '.' });
    }
    seen
}

#[tokio::test]
async fn everything_that_a_resumed_session_needs_is_kept() {
    let rules = forbidden("repeat = \"always\"");
    let (model, records) = (answers("!"), Arc::new(MemoryRecords::default()));
    model.scripts.lock().unwrap().extend([calls(&[("1", "write", WRITE)], 3), text("Done.", 3)]);
    let mut session = open(&model, &rules, &records);
    let mut events = session.subscribe();
    run(&mut session).await;
    run(&mut session).await;
    let KeptRules { records: kept, completed_turns } = records.get(&id());
    assert_eq!(completed_turns, 2);
    let [text, tool] = kept.as_slice() else { panic!("{kept:#?}") };
    let hash = rules.rule("no-forbidden").unwrap().content_hash();
    assert_eq!((text.rule.as_str(), text.hash, text.turn), ("no-forbidden", hash, 0));
    assert_eq!(
        (text.action, &text.stream, text.evidence.text.as_str()),
        (Action::Interrupt, &StreamKind::Text, "FORBIDDEN")
    );
    // The script counts no tokens: nine bytes are about three.
    assert_eq!((text.tokens_discarded, text.tokens_estimated), (3, true));
    assert_eq!((tool.turn, tool.evidence.path.as_deref()), (1, Some("src/a.ts")));
    let told: Vec<RuleRecord> = drain(&mut events)
        .into_iter()
        .filter_map(|e| if let EventKind::TtsrInjection { records, .. } = e.kind { Some(records) } else { None })
        .flatten()
        .collect();
    assert_eq!(told, kept, "events tell what is kept");
}

/// Case 19, in whole sessions: the gap continues where it was, wherever the first run ended.
#[tokio::test]
async fn a_resumed_session_goes_on_in_the_gap() {
    for (lines, whole) in [
        ("", "!......"),
        ("repeat = \"after-gap\"\ngap = 1", "!!!!!!!"),
        ("repeat = \"after-gap\"\ngap = 2", "!.!.!.!"),
        ("repeat = \"after-gap\"\ngap = 3", "!..!..!"),
    ] {
        let rules = forbidden(lines);
        for cut in 0..=whole.len() {
            let (before, after) = whole.split_at(cut);
            let (first, records) = (answers(before), Arc::new(MemoryRecords::default()));
            assert_eq!(play(&mut open(&first, &rules, &records), &first).await, before);
            let second = answers(after);
            assert_eq!(play(&mut open(&second, &rules, &records), &second).await, after, "{lines} after {cut} turns");
        }
    }
}

/// A transcript is enough to resume from.
#[tokio::test]
async fn a_transcript_holds_all_that_is_kept() {
    let rules = forbidden("repeat = \"after-gap\"\ngap = 3");
    let (model, records) = (answers("!.."), Arc::new(MemoryRecords::default()));
    model.scripts.lock().unwrap().extend([calls(&[("1", "write", WRITE)], 3), text("Done.", 3)]);
    let mut session = open(&model, &rules, &records);
    let mut events = session.subscribe();
    play(&mut session, &model).await;
    let lines: Vec<String> = drain(&mut events).iter().map(|event| record::json(event, "t").to_string()).collect();
    let read: Vec<Record> = lines.iter().map(|line| Record::read(line.as_bytes()).unwrap()).collect();
    let (kept, problems) = record::kept_rules(&read);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((&kept, kept.records.len()), (&records.get(&id()), 2));

    let model = answers("..!");
    let resumed = Arc::new(MemoryRecords::of(id(), kept));
    assert_eq!(play(&mut open(&model, &rules, &resumed), &model).await, "..!");
}

#[test]
fn a_damaged_transcript_says_what_is_left_out() {
    let line = |payload: &str| {
        let place = r#""seq":7,"ts":0,"thread_id":"t","turn":1,"step":1,"attempt":1"#;
        Record::read(format!(r#"{{{place},"type":"ttsr_injection","payload":{payload}}}"#).as_bytes())
    };
    let record = |stream: &str, hash: &str| {
        let evidence = r#"{"pattern":"","text":"","start":0,"end":0,"line":1}"#;
        let counts = r#""turn":0,"tokens_discarded":0,"tokens_estimated":false"#;
        let words = format!(r#""rule":"r","action":"remind","stream":"{stream}","hash":"{hash}""#);
        line(&format!(
            r#"{{"rules":["r"],"discarded_bytes":0,"records":[{{{words},{counts},"evidence":{evidence}}}]}}"#
        ))
    };
    let records = [record("ears", "ff").unwrap(), record("text", "no").unwrap(), record("tool", "ff").unwrap()];
    let (kept, problems) = record::kept_rules(&records);
    assert_eq!(kept, KeptRules::default());
    let skipped = |key| format!("record 7 is skipped: `{key}` of the rule `r` is not valid");
    assert_eq!(problems, ["stream", "hash", "call_id"].map(skipped));
    for payload in [r#"{"records":[{"rule":"r"}]}"#, r#"{"records":7}"#, r#"{"rules":["old"]}"#, "null"] {
        let error = line(payload).unwrap_err().to_string();
        assert!(error.starts_with("the payload of `ttsr_injection` is not valid: "), "{error}");
    }
}

#[tokio::test]
async fn edited_rules_count_from_the_next_turn_on() {
    let set = |condition: &str, body: &str| {
        let rule = format!("+++\ncondition = '{condition}'\n+++\n{body}");
        let always = format!("+++\nalways_apply = true\n+++\nAlways {body}");
        rule_set(&[("r", &rule), ("always", &always)], |_| {})
    };
    let update = |condition, body, notices: &[&str]| RuleUpdate {
        set: set(condition, body),
        notices: notices.iter().map(|&one| one.to_owned()).collect(),
    };
    let source = Arc::new(Edited(Mutex::new(update("one", "First.", &["a file cannot be read"]))));
    let model = ScriptedModel::new(
        ["say one", "ok", "say one", "say one", "say two", "ok", "say two"].map(|words| text(words, 2)),
    );
    let parts = turn::SessionParts {
        rules: Arc::<Edited>::clone(&source),
        ..tidegate_kit::parts(&model, vec![], forbidden(""))
    };
    let mut session = Session::open(parts).await.unwrap();
    let mut events = session.subscribe();
    let told = |events: &mut turn::Subscription| -> Vec<EventKind> {
        let of = |kind: &EventKind| matches!(kind, EventKind::RulesReloaded { .. } | EventKind::Notice { .. });
        drain(events).into_iter().map(|event| event.kind).filter(of).collect()
    };
    assert_eq!(run(&mut session).await.interrupts, 1);
    let notice = EventKind::Notice { message: "a file cannot be read".into() };
    assert_eq!(told(&mut events), [notice], "the first rules are no reload");
    // Only the body is another: the rule was injected already.
    *source.0.lock().unwrap() = update("one", "Second.", &[]);
    assert_eq!(run(&mut session).await.interrupts, 0);
    assert_eq!(told(&mut events), [EventKind::RulesReloaded { active: 2, notices: vec![] }]);
    assert_eq!(run(&mut session).await.interrupts, 0);
    assert_eq!(told(&mut events), [], "nothing changed");
    // Another condition is another rule: the new one fires, the old one does not.
    *source.0.lock().unwrap() = update("two", "Third.", &["a rule was refused"]);
    assert_eq!(run(&mut session).await.interrupts, 1);
    assert_eq!(told(&mut events), [EventKind::RulesReloaded { active: 2, notices: vec!["a rule was refused".into()] }]);
    // Deleted: it stops.
    *source.0.lock().unwrap() = RuleUpdate { set: rule_set(&[], |_| {}), notices: vec![] };
    assert_eq!(run(&mut session).await.interrupts, 0);
    let prompts = model.prompts.lock().unwrap();
    let joined =
        |prompt: &flow::Prompt| prompt.system.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("|");
    let system: Vec<String> = prompts.iter().map(joined).collect();
    let expected =
        ["Always First.", "Always First.", "Always Second.", "Always Second.", "Always Third.", "Always Third.", ""];
    assert_eq!(system, expected);
}

#[tokio::test]
async fn a_rule_whose_reminder_left_the_conversation_may_fire_again() {
    let (model, records) = (answers("!.!"), Arc::new(MemoryRecords::default()));
    let mut session = open(&model, &forbidden(""), &records);
    let mut events = session.subscribe();
    assert_eq!(run(&mut session).await.interrupts, 1);
    // What is left out is not the reminder.
    let history = session.history();
    assert_eq!(session.replace_history(history[1..].to_vec()), Vec::<String>::new());
    assert_eq!(run(&mut session).await.interrupts, 0);
    let summary = Arc::new(Message::user("What was said: nothing about rule=\"no-forbidden\" matters."));
    assert_eq!(session.replace_history(vec![summary]), ["no-forbidden"]);
    assert_eq!(records.get(&id()), KeptRules { records: vec![], completed_turns: 2 });
    assert_eq!(run(&mut session).await.interrupts, 1);
    let read: Vec<_> = drain(&mut events).iter().map(|event| Record::of(event, "t")).collect();
    assert_eq!(record::kept_rules(&read).0, records.get(&id()), "a transcript knows too");
}

/// A reminder before a tool's result is found in the conversation as well.
#[tokio::test]
async fn a_reminder_with_a_result_is_in_the_conversation() {
    let scripts = [calls(&[("1", "write", WRITE)], 3), text("Done.", 3)];
    let mut scene = Scene::new(scripts, vec![], forbidden("interrupt = \"never\""));
    let (_, events) = scene.turn("go").await;
    let reminder = events.iter().find_map(|e| match &e.kind {
        EventKind::ToolCallResult { reminder, output, .. } => Some((reminder.clone().unwrap(), output.clone())),
        _ => None,
    });
    let (reminder, output) = reminder.unwrap();
    assert!(reminder.starts_with("<system-reminder") && output.starts_with("write done"), "{reminder}");
    assert!(tidegate_kit::said(&scene.session.history()[2]).contains(&format!("{reminder:?}, {output:?}")));
    let history = scene.session.history();
    assert_eq!(scene.session.replace_history(history.clone()), Vec::<String>::new());
    assert_eq!(scene.session.replace_history(history[..1].to_vec()), ["no-forbidden"]);
}

/// A store that cannot write, or cannot read.
struct Broken;

impl RuleRecords for Broken {
    fn keep(&self, _: &SessionId, _: &RuleRecord) -> Result<(), String> {
        Err("the disk is full".into())
    }

    fn rearmed(&self, _: &SessionId, _: &str) -> Result<(), String> {
        Err("the disk is full".into())
    }

    fn completed(&self, _: &SessionId, _: u64) -> Result<(), String> {
        Err("the disk is full".into())
    }

    fn load<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<KeptRules, String>> {
        Box::pin(async { Err("the file is damaged".to_owned()) })
    }
}

#[tokio::test]
async fn what_cannot_be_kept_or_read_is_told_and_stops_nothing() {
    let model = answers("!.");
    let mut session = tidegate_kit::session(&model, vec![], forbidden("")).with_records(Arc::new(Broken));
    let mut events = session.subscribe();
    assert_eq!(play(&mut session, &model).await, "!.");
    session.replace_history(vec![]);
    let notices: Vec<String> = drain(&mut events)
        .into_iter()
        .filter_map(|event: Event| if let EventKind::Notice { message } = event.kind { Some(message) } else { None })
        .collect();
    let lost = "the record of rule no-forbidden could not be stored: the disk is full";
    let end = "the end of the turn could not be stored for the repeat gaps of stream rules: the disk is full";
    let damaged = "records of stream rules could not be read, so any rule may fire again: the file is damaged";
    assert_eq!(notices, [damaged, lost, end, end, lost]);
}

/// Cases 31 and 33: until the reminder is in the conversation nothing has happened; an error of the retry comes after.
#[tokio::test]
async fn a_turn_that_is_cancelled_before_the_retry_keeps_nothing() {
    let records = Arc::new(MemoryRecords::default());
    let rule = "+++\ncondition = 'FORBIDDEN'\n+++\nNo.";
    let rules = rule_set(&[("r", rule)], |settings| settings.retry_delay_ms = 60_000);
    let model = ScriptedModel::new([text("FORBIDDEN", 1), text("FORBIDDEN", 1)]);
    let mut session = open(&model, &rules, &records);
    for turns in 1..=2 {
        let cancel = CancellationToken::new();
        let stop = async {
            while model.asked() < turns || model.open.load(std::sync::atomic::Ordering::SeqCst) > 0 {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (report, ()) = tokio::join!(session.run(vec![Message::user("go")], &cancel), stop);
        // The rule is eligible again: it fires in the second turn too.
        assert_eq!((report.status, report.interrupts), (flow::TurnStatus::Cancelled, 1));
        assert_eq!(records.get(&id()), KeptRules { records: vec![], completed_turns: turns as u64 });
    }
    assert!(!session.history().iter().any(|message| message.hidden));
}
