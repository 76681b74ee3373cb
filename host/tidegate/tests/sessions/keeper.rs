//! Conversations of a gateway: which request belongs to which, what leaves memory, and what comes back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Answer, Trail, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::gateway::{ConversationLimits, ConversationOptions, Conversations, Visit};
use tidegate::rule::RuleSpec;
use tidegate::{Host, SessionId};

use super::support::builder;

const NO_TODO: &str = "no-todo";

async fn host(state: Option<&Path>) -> Host {
    let state = state.map(|folder| format!("[state]\nbackend = \"disk\"\nfolder = {folder:?}\n"));
    builder(&state.unwrap_or_default()).without_model().open().await.unwrap()
}

pub(super) fn options(folder: &TempDir) -> ConversationOptions {
    let rule = RuleSpec::new(NO_TODO, "Finish the work.").condition(r"\bTODO\b").scope("text");
    ConversationOptions::new(folder.path()).rule(rule)
}

pub(super) fn keeper(host: Host, folder: &TempDir, limits: ConversationLimits) -> Arc<Conversations> {
    Conversations::new(host, options(folder), limits)
}

/// Returns the trail of a request with these texts, of the user and the model in turns.
pub(super) fn trail(session: Option<&str>, texts: &[String], tools: bool) -> Trail {
    let message =
        |(at, text): (usize, &String)| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": text});
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    let tools = if tools { json!([{"name": "Read"}]) } else { json!([]) };
    let request = json!({"messages": messages, "tools": tools});
    Trail::of(Wire::Anthropic, &request, |name| session.filter(|_| name == "session-id"), None, b"key")
}

pub(super) fn answer(text: &str) -> Answer {
    let mut answer = Answer::default();
    answer.blocks.push((StreamKind::Text, text.to_owned()));
    answer
}

/// One exchange: enters, ends with an answer, and returns the conversation's id with how many reminders it knew at its start. `reminds`: the rule
/// fires in it.
pub(super) async fn exchange(
    keeper: &Arc<Conversations>,
    session: Option<&str>,
    texts: &[&str],
    reply: &str,
    reminds: bool,
) -> (SessionId, usize) {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let visit = keeper.enter(trail(session, &texts, true)).await.unwrap();
    let mut rules = visit.rules();
    let knew = rules.memory().records.len();
    if reminds {
        rules.injected(&[NO_TODO.to_owned()]);
    }
    visit.end(&rules, Some(&answer(reply))).await.unwrap();
    (visit.conversation().id().clone(), knew)
}

#[tokio::test]
async fn a_conversation_is_what_extends_the_same_messages() {
    let folder = TempDir::new().unwrap();
    for session in [None, Some("7f")] {
        let keeper = keeper(host(None).await, &folder, ConversationLimits::default());
        let (first, knew) = exchange(&keeper, session, &["Hello"], "Hi", true).await;
        assert_eq!(knew, 0);
        let (same, knew) = exchange(&keeper, session, &["Hello", "Hi", "Go on"], "Well", false).await;
        assert_eq!((&same, knew), (&first, 1), "{session:?}");
        // Another one begins with the same words.
        let (other, knew) = exchange(&keeper, session, &["Hello"], "Good day", false).await;
        assert_eq!((other != first, knew), (true, 0));
        let (still, knew) = exchange(&keeper, session, &["Hello", "Good day", "Go on"], "Yes", true).await;
        assert_eq!((&still, knew), (&other, 0));
        // The client goes back to where one answer had been given, and on from there: the records until then are inherited.
        let (branch, knew) = exchange(&keeper, session, &["Hello", "Hi", "No, this"], "As you like", false).await;
        assert_eq!((branch != first && branch != other, knew), (true, 1));
        let (same, _) =
            exchange(&keeper, session, &["Hello", "Hi", "No, this", "As you like", "Fine"], "!", false).await;
        assert_eq!(same, branch);
        // The original goes on as well.
        let (same, knew) = exchange(&keeper, session, &["Hello", "Hi", "Go on", "Well", "More"], "Done", false).await;
        assert_eq!((&same, knew), (&first, 1));
        assert_eq!(keeper.counts().branched, 1);
    }
}

#[tokio::test]
async fn names_keep_conversations_apart_and_asides_disturb_none() {
    let folder = TempDir::new().unwrap();
    let keeper = keeper(host(None).await, &folder, ConversationLimits::default());
    let (one, _) = exchange(&keeper, Some("one"), &["Hello"], "Hi", true).await;
    let (other, knew) = exchange(&keeper, Some("other"), &["Hello"], "Hi", false).await;
    assert_eq!((one != other, knew), (true, 0));
    // A title, asked for in the same session.
    let side = keeper.enter(trail(Some("one"), &["Title?".to_owned()], false)).await.unwrap();
    assert_eq!(side.rules().memory().records, []);
    let mut rules = side.rules();
    rules.injected(&[NO_TODO.to_owned()]);
    side.end(&rules, Some(&answer("A greeting"))).await.unwrap();
    let (same, knew) = exchange(&keeper, Some("one"), &["Hello", "Hi", "Go on"], "Well", false).await;
    assert_eq!((&same, knew), (&one, 1));
    assert_eq!(keeper.counts().open, 2, "nothing is kept of the title");
    // It was the first turn of a conversation without tools.
    for (session, knows) in [("one", 1), ("other", 0)] {
        let (next, knew) = exchange(&keeper, Some(session), &["Title?", "A greeting", "More"], "Yes", false).await;
        assert_eq!((next != same && next != other, knew), (true, knows), "{session}");
    }
}

#[tokio::test]
async fn a_request_that_names_an_answer_continues_it() {
    let folder = TempDir::new().unwrap();
    let keeper = keeper(host(None).await, &folder, ConversationLimits::default());
    let of = |request: Value| Trail::of(Wire::OpenAiResponses, &request, |_| None, None, b"key");
    let visit = keeper.enter(of(json!({"input": "Hello"}))).await.unwrap();
    let mut rules = visit.rules();
    rules.injected(&[NO_TODO.to_owned()]);
    let mut first = answer("Hi");
    first.id = Some("resp_1".to_owned());
    visit.end(&rules, Some(&first)).await.unwrap();
    let next = keeper.enter(of(json!({"input": "Go on", "previous_response_id": "resp_1"}))).await.unwrap();
    assert_eq!(next.conversation().id(), visit.conversation().id());
    assert_eq!(next.rules().memory().records.len(), 1);
}

#[tokio::test]
async fn idle_conversations_leave_memory_and_come_back_from_the_store() {
    let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut limits = ConversationLimits::default();
    limits.idle = Duration::from_millis(50);
    let keeper = keeper(host(Some(state.path())).await, &folder, limits);
    let (first, _) = exchange(&keeper, None, &["Hello"], "Hi", true).await;
    // One that is used stays.
    let used: Visit =
        keeper.enter(trail(None, &["Hello".to_owned(), "Hi".to_owned(), "Go on".to_owned()], true)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(keeper.counts().open, 1);
    used.end(&used.rules(), Some(&answer("Well"))).await.unwrap();
    drop(used);
    tokio::time::timeout(Duration::from_secs(30), async {
        while keeper.counts().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    let (same, knew) = exchange(&keeper, None, &["Hello", "Hi", "Go on", "Well", "More"], "Done", false).await;
    assert_eq!((&same, knew), (&first, 1));
    keeper.close().await;
    // Another process goes on.
    let keeper = self::keeper(host(Some(state.path())).await, &folder, limits);
    let (same, knew) =
        exchange(&keeper, None, &["Hello", "Hi", "Go on", "Well", "More", "Done", "And"], "Yes", false).await;
    assert_eq!((&same, knew), (&first, 1));
}

#[tokio::test]
async fn as_many_are_kept_as_the_limits_say() {
    let folder = TempDir::new().unwrap();
    let mut limits = ConversationLimits::default();
    (limits.open, limits.kept) = (2, 1);
    let keeper = keeper(host(None).await, &folder, limits);
    for word in ["one", "two", "three", "four"] {
        exchange(&keeper, None, &[word], "Hi", true).await;
    }
    let counts = keeper.counts();
    assert_eq!((counts.open, counts.evicted, counts.forgotten), (2, 2, 1));
    let (_, knew) = exchange(&keeper, None, &["two", "Hi", "Go on"], "Well", false).await;
    assert_eq!(knew, 1, "it is in the store");
    let (_, knew) = exchange(&keeper, None, &["one", "Hi", "Go on"], "Well", false).await;
    assert_eq!(knew, 0, "it was forgotten");
}

#[tokio::test]
async fn a_closed_conversation_that_cannot_be_opened_again_still_counts() {
    let folder = TempDir::new().unwrap();
    let mut limits = ConversationLimits::default();
    (limits.open, limits.kept) = (1, 1);
    let keeper = keeper(host(None).await, &folder, limits);
    for word in ["one", "two"] {
        exchange(&keeper, None, &[word], "Hi", true).await;
    }
    let texts = ["one", "Hi", "Go on"].map(str::to_owned);
    let rules = folder.path().join(".tidegate/rules");
    std::fs::create_dir_all(&rules).unwrap();
    let unusable = "+++\nrequired = true\ncondition = '(x'\nscope = 'text'\n+++\nDo not say it.\n";
    std::fs::write(rules.join("guard.md"), unusable).unwrap();
    keeper.enter(trail(None, &texts, true)).await.unwrap_err();
    std::fs::remove_dir_all(rules).unwrap();
    assert_eq!(keeper.counts().forgotten, 0);
    exchange(&keeper, None, &["three"], "Hi", true).await;
    assert_eq!(keeper.counts().forgotten, 1);
}

/// Has an exchange of a conversation that remembers 8,000 bytes, and returns how much it knew.
async fn large_exchange(keeper: &Arc<Conversations>, texts: &[&str]) -> usize {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let visit = keeper.enter(trail(None, &texts, true)).await.unwrap();
    let knew = visit.conversation().memory()["note"].as_str().map_or(0, str::len);
    visit.conversation().set_memory(json!({"note": "x".repeat(8_000)}));
    visit.end(&visit.rules(), Some(&answer("Hi"))).await.unwrap();
    knew
}

#[tokio::test]
async fn closed_conversations_of_a_store_in_memory_are_as_large_as_the_limits_say() {
    let folder = TempDir::new().unwrap();
    let mut limits = ConversationLimits::default();
    (limits.open, limits.bytes) = (1, 30_000);
    let host = host(None).await;
    let before = keeper(host.clone(), &folder, limits);
    for word in ["one", "two", "three", "four", "five"] {
        assert_eq!(large_exchange(&before, &[word]).await, 0);
    }
    // An exchange counts from its end: until the next one, there is one conversation more.
    let counts = before.counts();
    assert_eq!((counts.open, counts.evicted, counts.forgotten), (1, 4, 1));
    before.close().await;
    assert_eq!(before.counts().forgotten, 2);
    // Those that replace them continue to count.
    let now = Conversations::in_place_of(&before, host, options(&folder), limits);
    for (word, knew) in [("three", 8_000), ("five", 8_000), ("one", 0), ("six", 0), ("seven", 0), ("three", 0)] {
        assert_eq!(large_exchange(&now, &[word, "Hi", "Go on"]).await, knew, "{word}");
    }
    assert!(now.counts().forgotten > 0, "{:?}", now.counts());
}

#[tokio::test]
async fn conversations_in_memory_go_on_in_a_host_that_takes_the_place_of_theirs() {
    let (folder, limits) = (TempDir::new().unwrap(), ConversationLimits::default());
    for (settings, is_same) in [("", true), ("[state]\nsession_ttl_h = 24\n", false)] {
        let first = builder("").without_model().open().await.unwrap();
        let before = keeper(first.clone(), &folder, limits);
        let (id, _) = exchange(&before, None, &["Hello"], "Hi", true).await;
        before.close().await;
        let second = builder(settings).without_model().in_place_of(&first).open().await.unwrap();
        let now = Conversations::in_place_of(&before, second, options(&folder), limits);
        let (same, knew) = exchange(&now, None, &["Hello", "Hi", "Go on"], "Well", false).await;
        assert_eq!((same, knew), (id, usize::from(is_same)), "{settings}");
    }
}

#[tokio::test]
async fn a_first_turn_without_tools_goes_on_in_those_that_replace_its_own() {
    let (folder, limits) = (TempDir::new().unwrap(), ConversationLimits::default());
    let before = keeper(host(None).await, &folder, limits);
    let visit = before.enter(trail(Some("7f"), &["Hello".to_owned()], false)).await.unwrap();
    let mut rules = visit.rules();
    rules.injected(&[NO_TODO.to_owned()]);
    visit.end(&rules, Some(&answer("Hi"))).await.unwrap();
    drop(visit);
    let now = Conversations::in_place_of(&before, host(None).await, options(&folder), limits);
    before.close().await;
    assert_eq!(exchange(&now, Some("7f"), &["Hello", "Hi", "Go on"], "Well", false).await.1, 1);
}
