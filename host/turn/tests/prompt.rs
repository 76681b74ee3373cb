//! What is sent to the model: the parts of a request, their order, and the origin of each.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{
    AdditionId, BlockOrigin, Callback, Condition, ContextMatch, EventKind, Message, Origin, OutputAnswer, OutputMode,
    Position, Prompt, PromptAddition, StateTest, StateValue, StopReason, StreamKind, SystemBlock, TagPattern,
};
use tidegate_kit::{KeptState, Plugin, Script, ScriptedModel, blocks, calls, drain, rule_set, say, tool};
use tidegate_turn as turn;
use turn::{CancellationToken, Session, SessionParts, SessionSettings};

fn addition(plugin: &str, index: usize, position: Position, text: &str) -> PromptAddition {
    let id = AdditionId { plugin: plugin.parse().unwrap(), index };
    PromptAddition { id, position, text: text.into(), when: Vec::new() }
}

/// The additions of a plugin `a`, each `(position, text, condition)`.
fn conditional<const COUNT: usize>(additions: [(Position, &str, Condition); COUNT]) -> SessionSettings {
    let one = |(index, (position, text, condition))| PromptAddition {
        when: vec![condition],
        ..addition("a", index, position, text)
    };
    SessionSettings { additions: additions.into_iter().enumerate().map(one).collect(), ..SessionSettings::default() }
}

fn session(
    model: &Arc<ScriptedModel>,
    plugins: Vec<Plugin>,
    settings: SessionSettings,
    rules: &[(&str, &str)],
) -> Session {
    let parts = SessionParts { settings, ..tidegate_kit::parts(model, plugins, rule_set(rules, |_| {})) };
    tidegate_kit::ready(Session::open(parts)).unwrap()
}

async fn run(session: &mut Session, input: &str) {
    session.run(vec![Message::user(input)], &CancellationToken::new()).await;
}

/// Every part of a request with its origin, in order.
fn parts(prompt: &Prompt) -> Vec<String> {
    let system = prompt.system.iter().map(|block| format!("{}: {}", block.origin, block.text));
    let author = |message: &Message| match &message.origin {
        Origin::User => "user".to_owned(),
        Origin::Model => "model".to_owned(),
        Origin::Host => "host".to_owned(),
        Origin::Plugin(plugin) => format!("plugin {plugin}"),
        Origin::Addition(id) => id.to_string(),
    };
    let messages =
        prompt.messages.iter().map(|message| format!("{}: {}", author(message), tidegate_kit::said(message)));
    system.chain(messages).collect()
}

#[tokio::test]
async fn every_part_of_a_request_has_its_origin() {
    let model = ScriptedModel::new([calls(&[("1", "read", "{}")], 1), say("Done."), say("Again.")]);
    let guidance = BlockOrigin::Guidance(vec!["a".parse().unwrap(), "b".parse().unwrap()]);
    let settings = SessionSettings {
        system: vec!["Be careful.".into(), SystemBlock::new(guidance, "Prefer `read`.")],
        additions: vec![
            addition("b", 0, Position::SystemPrefix, "b first"),
            addition("a", 0, Position::UserSuffix, "a after"),
            addition("b", 1, Position::UserPrefix, "b before"),
            addition("a", 1, Position::SystemSuffix, "a last"),
        ],
        ..SessionSettings::default()
    };
    let rules =
        [("house", "+++\nalways_apply = true\n+++\nBe kind."), ("deploy", "+++\ndescription = 'How.'\n+++\nSo.")];
    let mut session = session(&model, vec![], settings, &rules);
    run(&mut session, "Go.").await;
    run(&mut session, "Once more.").await;
    let prompts = model.prompts.lock().unwrap();
    let rulebook = &prompts[0].system[4].text;
    let expected = [
        "prompt addition 1 of plugin `b`: b first",
        "host: Be careful.",
        "tool guidance of `a`, `b`: Prefer `read`.",
        "rule `house`: Be kind.",
        &format!("rule `deploy`: {rulebook}"),
        "prompt addition 2 of plugin `a`: a last",
        "prompt addition 2 of plugin `b`: b before",
        "user: Go.",
        "prompt addition 1 of plugin `a`: a after",
    ];
    assert_eq!(parts(&prompts[0]), expected);
    let last = parts(&prompts[2]);
    assert_eq!(last[..9], expected, "what was sent does not change");
    let rest = [
        "model: call read {}",
        "host: result [\"read done: {}\"]",
        "model: Done.",
        "prompt addition 2 of plugin `b`: b before",
        "user: Once more.",
        "prompt addition 1 of plugin `a`: a after",
    ];
    assert_eq!(last[9..], rest);
}

#[tokio::test]
async fn an_addition_is_not_the_users_word_in_the_history() {
    let model = ScriptedModel::new([say("Done.")]);
    let additions =
        vec![addition("a", 0, Position::UserPrefix, "before"), addition("a", 1, Position::UserSuffix, "after")];
    let mut session = session(&model, vec![], SessionSettings { additions, ..SessionSettings::default() }, &[]);
    run(&mut session, "Go.").await;
    let visible: Vec<String> =
        session.handles().history.visible(0, 9).iter().map(|(_, message)| message.plain_text()).collect();
    assert_eq!(visible, ["Go.", "Done."], "what extensions and front ends see as the conversation");
    let by_user: Vec<String> = session
        .history()
        .iter()
        .filter(|message| message.origin == Origin::User)
        .map(|message| message.plain_text())
        .collect();
    assert_eq!(by_user, ["Go."]);
}

/// The system prompts of all requests, blocks joined.
fn systems(model: &ScriptedModel) -> Vec<String> {
    let joined = |prompt: &Prompt| prompt.system.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("|");
    model.prompts.lock().unwrap().iter().map(joined).collect()
}

/// An answer that says this and calls a tool.
fn say_and_call(words: &str) -> Script {
    let deltas = blocks(&[(StreamKind::Text, words), (tool("1", "read"), "{}")], 3, StopReason::ToolUse);
    Script::Say(deltas, Some(Ok(())))
}

#[tokio::test]
async fn a_tag_is_looked_for_in_the_last_input_and_the_last_answer() {
    let model =
        ScriptedModel::new([say_and_call("<plan>one</plan>"), say("Done."), say("`<plan>` is code."), say("So.")]);
    let tag = || Condition::TagPresent(TagPattern::Prefix("pl".into()));
    let mut settings =
        conditional([(Position::SystemSuffix, "tagged", tag()), (Position::UserPrefix, "before", tag())]);
    // Its own tag does not make it pass.
    settings.additions.push(addition("b", 0, Position::UserSuffix, "<plan>"));
    let mut session = session(&model, vec![], settings, &[]);
    for input in ["Go.", "A <plan>?", "Last."] {
        run(&mut session, input).await;
    }
    assert_eq!(systems(&model), ["", "tagged", "tagged", ""]);
    let texts: Vec<String> = session.history().iter().map(|message| message.plain_text()).collect();
    let before: Vec<&str> =
        texts.iter().zip(&texts[1..]).filter(|(one, _)| *one == "before").map(|(_, next)| next.as_str()).collect();
    assert_eq!(before, ["A <plan>?"]);
}

/// A plugin `a` whose state `mode` is set to the text of each answer.
fn remembering() -> (Plugin, KeptState) {
    let state = KeptState::default();
    let kept = Arc::clone(&state);
    let remember = move |output: flow::ModelOutput| {
        kept.lock().unwrap().insert("mode".into(), serde_json::to_vec(&output.text).unwrap());
        Ok(OutputAnswer::default())
    };
    let plugin = Plugin {
        id: "a",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 50)],
        output: Some(Box::new(remember)),
        state: Some(Arc::clone(&state)),
        ..Plugin::default()
    };
    (plugin, state)
}

#[tokio::test]
async fn state_is_read_at_each_step_and_the_history_does_not_change() {
    let model = ScriptedModel::new([say_and_call("strict"), say_and_call("loose"), say("strict"), say("end")]);
    let strict =
        || Condition::StateValue { key: "mode".into(), test: StateTest::Equals(StateValue::Text("strict".into())) };
    let settings =
        conditional([(Position::SystemPrefix, "be strict", strict()), (Position::UserSuffix, "now", strict())]);
    let (plugin, state) = remembering();
    let mut session = session(&model, vec![plugin], settings, &[]);
    run(&mut session, "One.").await;
    assert_eq!(systems(&model), ["", "be strict", ""]);
    run(&mut session, "Two.").await;
    assert_eq!(systems(&model)[3], "be strict");
    assert_eq!(state.lock().unwrap()["mode"], b"\"end\"");
    let texts: Vec<String> = session.history().iter().map(|message| message.plain_text()).collect();
    let inputs: Vec<&str> =
        texts.iter().map(String::as_str).filter(|text| ["One.", "Two.", "now"].contains(text)).collect();
    assert_eq!(inputs, ["One.", "Two.", "now"]);
}

#[tokio::test]
async fn all_attempts_of_a_step_are_asked_with_the_same_additions() {
    let model = ScriptedModel::new([say("<plan> FORBIDDEN"), say("Done.")]);
    let tag = Condition::TagPresent(TagPattern::Exact("plan".into()));
    let rules = [("r", "+++\ncondition = 'FORBIDDEN'\ncontext = 'keep'\n+++\nNo.")];
    let mut session = session(&model, vec![], conditional([(Position::SystemSuffix, "tagged", tag)]), &rules);
    run(&mut session, "Go.").await;
    assert!(model.request(1).iter().any(|(_, text)| text.contains("<plan>")), "what was kept: {:?}", model.request(1));
    assert_eq!(systems(&model), ["", ""]);
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_is_reported_once_in_a_turn() {
    let model = ScriptedModel::new([say_and_call("one"), say("two"), say("three")]);
    let any = Condition::StateValue { key: "mode".into(), test: StateTest::Exists(false) };
    let settings = conditional([(Position::SystemSuffix, "never", any)]);
    let mut session = session(&model, vec![], settings, &[]);
    let mut events = session.subscribe();
    for _ in 0..2 {
        run(&mut session, "Go.").await;
        let notices: Vec<String> = drain(&mut events)
            .into_iter()
            .filter_map(|event| if let EventKind::Notice { message } = event.kind { Some(message) } else { None })
            .collect();
        let expected = "prompt addition 1 of plugin `a` is left out, because a condition of it cannot be evaluated: its \
                        state `mode` cannot be read: the plugin has no component, and therefore no state";
        assert_eq!(notices, [expected]);
    }
    assert_eq!(systems(&model), ["", "", ""]);
}

#[tokio::test]
async fn turns_are_counted_from_one() {
    let model = ScriptedModel::new([say("one"), say("two"), say("three")]);
    let turn = |turn: &str| {
        Condition::ContextMatch(ContextMatch { turn: Some(turn.parse().unwrap()), ..ContextMatch::default() })
    };
    let settings =
        conditional([(Position::SystemPrefix, "first", turn("1")), (Position::SystemPrefix, "later", turn("3.."))]);
    let mut session = session(&model, vec![], settings, &[]);
    for _ in 0..3 {
        run(&mut session, "Go.").await;
    }
    assert_eq!(systems(&model), ["first", "", "later"]);
}
