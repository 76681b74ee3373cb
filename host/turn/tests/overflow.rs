//! Requests that are too large: what is refused before it is sent, what a provider's refusal leads to, and what is left out then.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{
    BlockOrigin, CompactionCause, CompactionMethod, ErrorClass, ErrorPattern, Event, EventKind, FailureKind, InputWay,
    LeftOut, Message, MessagePattern, ModelError, Origin, Part, RetryTable, Role, SystemBlock, TurnStatus, Usage,
};
use tidegate_kit::{Fetch, Scene, Script, ScriptedModel, assert_rebuilt, calls, ready, rule_set, say};
use tidegate_turn as turn;
use turn::{Compaction, Session, SessionParts, SessionSettings};

fn table() -> Arc<RetryTable> {
    let mut entry = ErrorPattern::new("overflow", ErrorClass::ContextOverflow);
    entry.message = MessagePattern::new(r"too long(?:: (?<tokens>\d+) tokens > (?<limit>\d+))?").ok();
    let mut named = ErrorPattern::new("named", ErrorClass::Permanent);
    named.message = MessagePattern::new("api key").ok();
    Arc::new(RetryTable::new(vec![entry, named], BTreeMap::new()))
}

fn scene_with(scripts: Vec<Script>, change: impl FnOnce(&mut SessionSettings)) -> Scene {
    let model = ScriptedModel::new(scripts);
    let rules = rule_set(&[("no-bad", "+++\ncondition = \"BAD\"\n+++\nSay it differently.")], |_| {});
    let compaction = Some(Compaction { context_tokens: Some(20_000), at: 0.8, keep_turns: 2 });
    let mut settings = SessionSettings { compaction, retries: table(), ..SessionSettings::default() };
    change(&mut settings);
    let parts = SessionParts { settings, tools: Arc::new(Fetch), ..tidegate_kit::parts(&model, vec![], rules) };
    let session = ready(Session::open(parts)).unwrap();
    let events = session.subscribe();
    Scene { model, session, events, past: Vec::new() }
}

fn scene(scripts: Vec<Script>) -> Scene {
    scene_with(scripts, |_| ())
}

fn refusal(said: &str) -> Script {
    let mut error = ModelError::of_kind(FailureKind::Http, format!("the provider answered HTTP 400: {said}"));
    (error.status, error.facts.said) = (Some(400), Some(said.to_owned()));
    Script::Refuse(error)
}

/// A step that calls a tool: its result has about so many tokens.
fn read(id: &str, tokens: usize) -> Script {
    calls(&[(id, "fetch", &format!("{{\"bytes\":{}}}", tokens * 4))], usize::MAX)
}

/// What was left out, in order: the cause, the method, and the parts.
fn left_out(events: &[Event]) -> Vec<(CompactionCause, CompactionMethod, Vec<LeftOut>)> {
    let mut found = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::ContextCompactionStart { cause, method, .. } => found.push((*cause, *method, Vec::new())),
            EventKind::ContextCompactionEnd { left_out, .. } => found.last_mut().unwrap().2.clone_from(left_out),
            _ => {}
        }
    }
    found
}

fn notices(events: &[Event]) -> Vec<String> {
    let notice = |event: &Event| match &event.kind {
        EventKind::Notice { message } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(notice).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_sent_again_with_a_smaller_conversation() {
    for in_stream in [false, true] {
        let Script::Refuse(error) = refusal("prompt is too long: 9000 tokens > 8900 maximum") else { panic!() };
        let refused = if in_stream { Script::Say(Vec::new(), Some(Err(error))) } else { Script::Refuse(error) };
        let scripts = vec![read("1", 5_000), read("2", 3_000), refused, say("Done.")];
        let mut scene = scene(scripts);
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
        let found = left_out(&events);
        assert_eq!((found[0].0, found[0].1), (CompactionCause::Overflow, CompactionMethod::Shorten));
        // The result that the model has read is shortened, and that which it has not read is not.
        assert!(
            matches!(&found[0].2[..], [LeftOut::ToolResult { message: 2, part: 0, tool, .. }] if tool == "fetch"),
            "{found:?}"
        );
        let sent = scene.model.request(3);
        assert!(sent[2].1.contains("bytes of this result were left out") && sent[2].1.contains("Call `fetch` again"));
        assert!(!sent[4].1.contains("left out"), "{}", sent[4].1);
        // The records have all of it.
        let whole =
            |event: &&Event| matches!(&event.kind, EventKind::ToolCallResult { output, .. } if output.len() > 11_000);
        assert_eq!(events.iter().filter(whole).count(), 2);
    }
}

/// The refusal names no limit: each time less is sent, and no more often than that.
#[tokio::test(start_paused = true)]
async fn a_provider_that_always_refuses_ends_the_turn() {
    let mut scripts = vec![read("1", 3_000), read("2", 3_000)];
    scripts.extend(std::iter::repeat_n(refusal("prompt is too long"), 20));
    let mut scene = scene(scripts);
    let (report, _) = scene.turn("go").await;
    let TurnStatus::Failed { class: ErrorClass::ContextOverflow, message } = &report.status else {
        panic!("{report:?}")
    };
    assert!(message.contains("prompt is too long"), "{message}");
    assert!(scene.model.asked() <= 12, "{} requests", scene.model.asked());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_words_is_one_of_size_where_the_request_has_grown() {
    let mut scene = scene(vec![say("Hi."), read("1", 3_000), read("2", 3_000), refusal("Bad request"), say("Done.")]);
    scene.turn("hello").await;
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    assert_eq!(left_out(&events)[0].0, CompactionCause::Overflow);
    assert!(notices(&events)[0].contains("names no fault: it is sent again with a smaller conversation"));
}

#[tokio::test(start_paused = true)]
async fn other_refusals_are_reported_as_they_are() {
    // A fault that is named; a request that is small; one that is no larger than what was accepted.
    let grown = || vec![read("1", 3_000), read("2", 3_000)];
    for (mut before, said) in
        [(grown(), "the api key is not valid"), (vec![], "Bad request"), (vec![read("1", 10)], "Bad request")]
    {
        before.push(refusal(said));
        let mut scene = scene(before);
        let (report, events) = scene.turn("go").await;
        let TurnStatus::Failed { class: ErrorClass::Permanent, message } = &report.status else { panic!("{report:?}") };
        assert_eq!(*message, format!("the provider answered HTTP 400: {said}"));
        assert_eq!(left_out(&events), []);
    }
    // A guess that was wrong is no more than one.
    let mut before = grown();
    before.extend([refusal("Bad request"), refusal("Bad request"), say("Fine.")]);
    let mut scene = scene(before);
    let (report, _) = scene.turn("go").await;
    let TurnStatus::Failed { class: ErrorClass::Permanent, message } = &report.status else { panic!("{report:?}") };
    assert_eq!(message, "the provider answered HTTP 400: Bad request");
    assert_eq!(scene.turn("again").await.0.status, TurnStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn without_compaction_the_error_is_the_turns() {
    let scripts = vec![read("1", 3_000), refusal("prompt is too long: 9000 tokens > 8900 maximum")];
    let mut scene = scene_with(scripts, |settings| settings.compaction = None);
    let (report, events) = scene.turn("go").await;
    let TurnStatus::Failed { class: ErrorClass::ContextOverflow, message } = &report.status else {
        panic!("{report:?}")
    };
    assert!(message.contains("`enabled` under `[compaction]` is false"), "{message}");
    assert_eq!(left_out(&events), []);
}

/// What can never fit does not join the conversation, and the next turn is as if it had not been.
#[tokio::test(start_paused = true)]
async fn an_input_that_can_never_fit_is_refused() {
    let mut scene = scene(vec![say("Hi."), say("Fine.")]);
    scene.turn("hello").await;
    let (report, events) = scene.turn(&"word ".repeat(20_000)).await;
    let TurnStatus::Failed { class: ErrorClass::ContextOverflow, message } = &report.status else {
        panic!("{report:?}")
    };
    assert!(
        message.starts_with("the input is too large: it has about 25,004 tokens (100,000 bytes), and at most 18,"),
        "{message}"
    );
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::CognitionIn { .. })));
    assert_eq!((scene.model.asked(), scene.session.history().len()), (1, 2));
    assert_eq!(scene.turn("and now").await.0.status, TurnStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_steering_message_that_can_never_fit_is_refused_with_a_notice() {
    let mut scene = scene(vec![read("1", 10), say("Done.")]);
    let large = (None, Message::user("word ".repeat(20_000)));
    let _ = scene.session.handles().inputs.wait(vec![large], InputWay::Steer);
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    assert!(notices(&events).iter().any(|message| message.starts_with("the input is too large")), "{events:?}");
    let texts = scene.model.texts();
    assert!(texts.iter().flatten().all(|text| text.len() < 10_000));
}

#[tokio::test(start_paused = true)]
async fn a_system_prompt_that_leaves_no_room_is_named() {
    let mut scene = scene_with(vec![], |settings| {
        settings.system = vec![SystemBlock::new(BlockOrigin::Host, "rule ".repeat(16_000))];
    });
    let (report, _) = scene.turn("hello").await;
    let TurnStatus::Failed { class: ErrorClass::ContextOverflow, message } = &report.status else {
        panic!("{report:?}")
    };
    assert!(message.starts_with("the system prompt and the definitions of the tools have about 20,0"), "{message}");
}

/// One step has more than fits: each of its results keeps as much as does.
#[tokio::test(start_paused = true)]
async fn results_of_one_step_that_do_not_fit_are_shortened_alike() {
    let (big, small) = ("{\"bytes\":60000}", "{\"bytes\":6}");
    let three = calls(&[("1", "fetch", big), ("2", "fetch", big), ("3", "fetch", small)], usize::MAX);
    let scripts = vec![three, say("Done.")];
    let mut scene = scene_with(scripts, |settings| {
        settings.compaction = Some(Compaction { context_tokens: Some(30_000), at: 0.8, keep_turns: 2 });
    });
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.status, TurnStatus::Completed);
    let found = left_out(&events);
    let parts = |parts: &[LeftOut]| -> Vec<(u64, u64)> {
        let part = |one: &LeftOut| match one {
            LeftOut::ToolResult { part, head, .. } => Some((*part, *head)),
            _ => None,
        };
        parts.iter().filter_map(part).collect()
    };
    let shortened = parts(&found.last().unwrap().2);
    assert_eq!(shortened.iter().map(|(part, _)| *part).collect::<Vec<_>>(), [0, 1], "{found:?}");
    assert_eq!(shortened[0].1, shortened[1].1);
}

/// The oldest messages go where no summary can be made; the input of the turn stays, and a reminder that is gone can come again.
#[tokio::test(start_paused = true)]
async fn the_oldest_messages_are_left_out_where_a_summary_fails() {
    let long = || say(&"word ".repeat(1_500));
    let no = || Script::Refuse(ModelError::new(ErrorClass::Permanent, "no"));
    // In the fourth turn the context is filled to the share, and in the fifth nothing more fits.
    let scripts = vec![say("BAD"), long(), long(), long(), no(), long(), no(), say("Done.")];
    let mut scene = scene_with(scripts, |settings| {
        settings.compaction = Some(Compaction { context_tokens: Some(8_000), at: 0.6, keep_turns: 1 });
    });
    let mut all = Vec::new();
    for input in ["first", "second", "third", "fourth", "fifth"] {
        let (report, events) = scene.turn(input).await;
        assert_eq!(report.status, TurnStatus::Completed, "{input}");
        all.extend(events);
    }
    let found = left_out(&all);
    let drop = found.iter().find(|(_, method, _)| *method == CompactionMethod::Drop);
    assert!(matches!(&drop.unwrap().2[..], [LeftOut::Messages { message: 0, count, .. }] if *count > 2), "{found:?}");
    assert!(all.iter().any(|event| event.kind == EventKind::TtsrRearmed { rules: vec!["no-bad".into()] }));
    let history = scene.session.history();
    assert!(history[0].hidden && history[0].origin == Origin::Host && history[0].role == Role::User);
    assert!(history.iter().any(|message| message.plain_text() == "fifth"));
    assert!(!history.iter().any(|message| message.plain_text() == "first"));
    assert_rebuilt(&scene.past, &history);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cuts_prompts_off_is_reported_once() {
    let counted = |tokens: u64| {
        let Script::Say(mut deltas, end) = say("Fine.") else { panic!() };
        deltas.insert(1, flow::Delta::Usage(Usage { input: Some(tokens), output: Some(2), ..Usage::default() }));
        Script::Say(deltas, end)
    };
    let mut scene = scene(vec![counted(2_600), counted(2_048), counted(2_048)]);
    scene.turn(&"word ".repeat(2_000)).await;
    let (_, events) = scene.turn(&"word ".repeat(3_000)).await;
    assert!(
        notices(&events)[0].starts_with("the server has counted 2048 tokens of a prompt that has about 6"),
        "{events:?}"
    );
    assert_eq!(notices(&scene.turn("and").await.1), Vec::<String>::new());
}

/// An image of an earlier turn is left out before anything that is only text.
#[tokio::test(start_paused = true)]
async fn images_of_earlier_turns_are_left_out() {
    let image = flow::Image::new("image/gif", "R0lGODlhAAAA").unwrap();
    let with_images = |text: &str| {
        let mut message = Message::user(text);
        message.parts.extend(std::iter::repeat_n(Part::Image(image.clone()), 3));
        message
    };
    let mut scene = scene_with(vec![say("Hi."), say("Fine.")], |settings| {
        settings.compaction = Some(Compaction { context_tokens: Some(9_000), at: 0.8, keep_turns: 2 });
    });
    let cancel = turn::CancellationToken::new();
    for text in ["look", "and at these"] {
        let report = scene.session.run(vec![with_images(text)], &cancel).await;
        assert_eq!(report.status, TurnStatus::Completed);
    }
    let images = |message: &Message| message.parts.iter().filter(|part| matches!(part, Part::Image(_))).count();
    let counts: Vec<usize> = scene.session.history().iter().map(|message| images(message)).collect();
    assert_eq!(counts, [0, 0, 3, 0]);
    let text = scene.session.history()[0].plain_text();
    assert!(text.contains("An image was left out here: image/gif, 9 bytes"), "{text}");
}
