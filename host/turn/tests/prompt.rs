//! What is sent to the model: the parts of a request, their order, and the origin of each.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{AdditionId, BlockOrigin, Message, Origin, Position, Prompt, PromptAddition, SystemBlock};
use tidegate_kit::{Plugin, ScriptedModel, calls, rule_set, say};
use tidegate_turn as turn;
use turn::{CancellationToken, Session, SessionParts, SessionSettings};

fn addition(plugin: &str, index: usize, position: Position, text: &str) -> PromptAddition {
    PromptAddition { id: AdditionId { plugin: plugin.parse().unwrap(), index }, position, text: text.into() }
}

fn session(
    model: &Arc<ScriptedModel>,
    plugins: Vec<Plugin>,
    settings: SessionSettings,
    rules: &[(&str, &str)],
) -> Session {
    let parts = SessionParts { settings, ..tidegate_kit::parts(model, plugins, rule_set(rules, |_| {})) };
    Session::open(parts).unwrap()
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
        session.shared_history().visible(0, 9).iter().map(|(_, message)| message.plain_text()).collect();
    assert_eq!(visible, ["Go.", "Done."], "what extensions and front ends see as the conversation");
    let by_user: Vec<String> = session
        .history()
        .iter()
        .filter(|message| message.origin == Origin::User)
        .map(|message| message.plain_text())
        .collect();
    assert_eq!(by_user, ["Go."]);
}
