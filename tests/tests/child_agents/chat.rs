//! Chats that are connected with a session: they show its agents on every level, and answer their questions.

use tidegate::chat::{Answer, ChatMode, ChatOptions, ChatState, Policy};
use tidegate::event::{Backlog, NoBacklog};
use tidegate::{Chat, Host, Session};
use tidegate_kit::{ScriptedModel, calls, say};

use super::place::{Place, spawn};

async fn open(place: &Place, host: &Host, kept: usize) -> Session {
    host.session(place.options().backlog(Backlog::default().events(kept)).questions_wait()).await.unwrap()
}

/// A helper that starts another one, which wants to run a command.
fn two_levels(place: &Place) -> std::sync::Arc<ScriptedModel> {
    place.agent("helper", "description: Helps.", "You are a helper.");
    // Only the user raises a limit.
    place.write("../user/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\ndepth = 2\n");
    ScriptedModel::new([
        spawn("1", "helper", "Level one."),
        spawn("2", "helper", "Level two."),
        calls(&[("3", "shell", r#"{"command": "echo from-below"}"#)], usize::MAX),
        say("It ran below."),
        say("One level down it ran."),
        say("It ran."),
    ])
}

/// Waits until the state is as wanted.
async fn until(chat: &mut Chat, wanted: impl Fn(&ChatState) -> bool) -> ChatState {
    let now = chat.state();
    if wanted(&now) {
        return now;
    }
    loop {
        let state = chat.changed().await.expect("the session is open");
        if wanted(&state) {
            return state;
        }
    }
}

fn is_done(state: &ChatState) -> bool {
    state.mode == ChatMode::Idle && state.messages.messages().any(|message| message.text() == "It ran.")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_answers_the_question_of_an_agent_of_an_agent() {
    // Where no events are kept, who comes late gets a snapshot of each agent.
    for kept in [1024, 0] {
        answers_on_every_level(kept).await;
    }
}

async fn answers_on_every_level(kept: usize) {
    let place = Place::new();
    let model = two_levels(&place);
    let host = place.host(&model).await;
    let session = open(&place, &host, kept).await;
    let mut chat = Chat::open(&session).unwrap();
    let mut other = Chat::open(&session).unwrap();
    chat.submit("Go down.");
    let asked = until(&mut chat, |state| state.questions.pending().next().is_some()).await;
    let question = asked.questions.pending().next().unwrap().clone();
    assert_eq!((&*question.tool, asked.mode), ("shell", ChatMode::ConfirmingTool));
    // A front end that comes late finds the agents that work already.
    let mut late = Chat::open(&session).unwrap();
    let seen = until(&mut late, |state| state.questions.pending().next().is_some()).await;
    assert_eq!(seen.questions.pending().next().unwrap().id, question.id);
    chat.respond(&question.id, Answer::Approve).unwrap();
    let ended = until(&mut chat, is_done).await;
    for chat in [&mut other, &mut late] {
        let state = until(chat, is_done).await;
        let texts = |state: &ChatState| state.messages.messages().map(|message| message.text()).collect::<Vec<_>>();
        assert_eq!(texts(&state), texts(&ended));
        let gone = until(chat, |state| state.questions.pending().next().is_none()).await;
        assert_eq!(gone.questions.pending().count(), 0);
    }
    assert!(model.request(3).last().unwrap().1.contains("from-below"));
    session.close();
    while chat.changed().await.is_some() {}
}

/// A policy answers the questions of agents, too, and an answer that is refused opens the question again.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_and_a_refused_answer_reach_agents() {
    let place = Place::new();
    let model = two_levels(&place);
    let host = place.host(&model).await;
    let session = open(&place, &host, 1024).await;
    let mut chat = Chat::open(&session).unwrap();
    chat.submit("Go down.");
    let asked = until(&mut chat, |state| state.questions.pending().next().is_some()).await;
    let id = asked.questions.pending().next().unwrap().id.clone();
    chat.respond(&id, Answer::Edit { arguments: "no JSON".into() }).unwrap();
    let again = chat.changed().await.expect("an answer that is refused wakes the front end");
    let again = again.questions.pending().next().expect("the session has refused the answer");
    assert!(again.error.as_deref().is_some_and(|why| why.contains("JSON")), "{again:?}");
    let policy = ChatOptions::default().policy(|_| Policy::APPROVE);
    let mut approving = Chat::with_options(&session, policy, "a policy").unwrap();
    until(&mut approving, is_done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_needs_a_session_that_keeps_events() {
    let place = Place::new();
    let session = place.open(&ScriptedModel::new([])).await;
    assert_eq!(Chat::open(&session).unwrap_err(), NoBacklog);
}
