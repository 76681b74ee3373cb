//! Front ends of others, which know nothing of this program: `useChat` of the AI SDK, and `HttpAgent` of AG-UI.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tidegate_servers::{ensure_ag_ui, ensure_conventions_js, node_of};

use super::client::Client;
use super::{place, start};
use crate::gateway::running::Running;
use crate::support::script::Model;
use crate::support::{err, out, repository};

/// Questions about files that are written.
pub(super) const ASK: &str = "[tools.permission]\nwrite_file = \"ask\"\n";

fn node(script: &str) -> Command {
    let packages = ensure_conventions_js().unwrap();
    let mut command = Command::new(node_of(&packages));
    command.arg(repository().join("host/cli/tests/serve").join(script));
    command.env("TIDEGATE_TEST_NODE_MODULES", packages).stdin(Stdio::null());
    command
}

/// What an application has printed, a line of JSON each.
fn printed(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}{}", out(output), err(output));
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A model whose first answer a rule stops, whose second asks for two calls, and that ends after them.
fn answers(model: &Model) -> String {
    model.request().say("Good day, this is forbid").say("den-4711 and more").end();
    let mut second = model.request();
    second.say("A better answer.");
    second.call("c-1", "write_file", &json!({"path": "a.txt", "content": "as proposed"}));
    second.call("c-2", "write_file", &json!({"path": "b.txt", "content": "denied"})).end();
    let mut third = model.request();
    let text = third.text();
    third.say("Done.").end();
    text
}

/// Runs an application next to the model, and returns what it has printed, and the last request of the model.
fn application(mut command: Command, model: &Model) -> (Vec<Value>, String) {
    let application = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let last = answers(model);
    (printed(&application.wait_with_output().unwrap()), last)
}

fn base(running: &Running) -> String {
    format!("http://{}", running.address)
}

#[test]
fn committed_streams_are_what_the_clients_of_their_conventions_read() {
    let corpus = repository().join("tests/corpus/conventions");
    let seen = printed(&node("streams.mjs").arg(&corpus).output().unwrap()).pop().unwrap();
    let texts = std::fs::read_to_string(corpus.join("texts.json")).unwrap();
    let texts: BTreeMap<String, Value> = serde_json::from_str(&texts).unwrap();
    assert!(texts.len() > 40);
    for (session, text) in texts {
        assert_eq!(seen[&session]["uiStream"], text, "useChat: {session}");
        assert_eq!(seen[&session]["agUi"], text, "AG-UI: {session}");
    }
}

/// Runs the checker of AG-UI, and returns how it judges.
fn judged(target: &str) -> Value {
    let validator = ensure_ag_ui().unwrap().join("bin/ag-ui-validate");
    let output = Command::new(validator).args([target, "--json", "--max-warnings", "0"]).output().unwrap();
    let report: Value =
        serde_json::from_str(&out(&output)).unwrap_or_else(|_| panic!("{}{}", out(&output), err(&output)));
    assert_eq!(report["diagnostics"], json!([]), "{target}: {report:#}");
    assert!(output.status.success(), "{target}: {report:#}");
    report
}

#[test]
fn the_checker_of_ag_ui_finds_nothing_in_the_committed_runs() {
    for entry in std::fs::read_dir(repository().join("tests/corpus/conventions/ag-ui")).unwrap() {
        judged(&entry.unwrap().path().display().to_string());
    }
}

#[test]
fn the_checker_of_ag_ui_finds_nothing_in_a_run_of_the_program() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let session = Client::new(&running, "").create();
    let target = format!("{}{session}/ag-ui", base(&running));
    std::thread::scope(|scope| {
        let judge = scope.spawn(|| judged(&target));
        model.request().say("Good day, this is forbid").say("den-4711 and more").end();
        model.request().think(&["I see.".to_owned()]).say("A better answer.").end();
        judge.join().unwrap();
    });
}

fn use_chat(way: &str) {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let mut command = node("use_chat.mjs");
    command.args([&base(&running), way]);
    let (seen, last) = application(command, &model);
    let questions = seen[0]["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 2);
    assert_eq!(questions[0]["input"], json!({"path": "a.txt", "content": "as proposed"}));
    let end = &seen[1];
    assert_eq!(end["status"], "ready", "{end:#}");
    assert_eq!(end["texts"], json!(["user: Write", "assistant: A better answer.|Done."]), "{end:#}");
    let states: Vec<&str> =
        end["tools"].as_array().unwrap().iter().map(|tool| tool["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["output-available", "output-denied"], "{end:#}");
    assert!(end["data"].as_array().unwrap().contains(&json!("data-tidegate-rule-fired")), "{end:#}");
    assert_eq!(end["metadata"]["status"], "completed", "{end:#}");
    assert!(last.contains("not that file"), "{last}");
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "as proposed");
    assert!(!place.path("b.txt").exists());
}

#[test]
fn an_application_with_use_chat_has_a_whole_turn() {
    use_chat("at once");
}

#[test]
fn a_page_with_use_chat_that_is_loaded_again_has_the_questions() {
    use_chat("again");
}

/// A stream that is left with `stop()` is followed again with `resumeStream()`, to the end of its turn.
#[test]
fn an_application_with_use_chat_follows_the_turn_that_it_has_stopped_reading() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let mut command = node("use_chat.mjs");
    command.args([&base(&running), "stopped"]).stdout(Stdio::piped());
    let mut application = command.spawn().unwrap();
    let mut lines = BufReader::new(application.stdout.take().unwrap()).lines();
    let mut request = model.request();
    let mut expected = String::from("assistant: ");
    for word in ["One", "Two"] {
        request.say(word);
        expected.push_str(word);
        let seen: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(seen["texts"], json!(["user: Write", expected]), "{seen:#}");
    }
    request.say("Three").end();
    let end: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(end["texts"], json!(["user: Write", "assistant: OneTwoThree"]), "{end:#}");
    assert_eq!((&end["status"], &end["metadata"]["status"]), (&json!("ready"), &json!("completed")), "{end:#}");
    assert!(application.wait().unwrap().success());
}

#[test]
fn an_application_with_http_agent_has_a_whole_turn() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let mut command = node("http_agent.mjs");
    command.arg(base(&running));
    let (seen, last) = application(command, &model);
    let interrupts = seen[0]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 2, "{seen:#?}");
    assert!(interrupts.iter().all(|one| one["reason"] == "tool_call"), "{interrupts:?}");
    let ids: Vec<&Value> = interrupts.iter().map(|one| &one["id"]).collect();
    assert_eq!(seen[1]["again"], json!(ids), "the same input again");
    let end = &seen[2];
    assert_eq!(end["interrupts"], json!([]));
    let messages = end["messages"].as_array().unwrap();
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["content"].as_str()).collect();
    assert!(texts.contains(&"A better answer.") && texts.contains(&"Done."), "{end:#}");
    assert!(!end.to_string().contains("forbid"), "{end:#}");
    assert!(end.to_string().contains(r#"as edited"#), "the arguments that ran: {end:#}");
    assert!(end["custom"].as_array().unwrap().contains(&json!("tidegate.rule_fired")), "{end:#}");
    assert!(last.contains("not that file"), "{last}");
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "as edited");
    assert!(!place.path("b.txt").exists());
}

/// What `HttpAgent` has already of a turn that it left is not added to.
#[test]
fn a_run_that_is_left_and_run_again_has_its_text_once() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let mut command = node("http_agent_left.mjs");
    let mut application = command.arg(base(&running)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(application.stdout.take().unwrap());
    let mut request = model.request();
    request.think(&["I see.".to_owned()]).say("Good ");
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), r#"{"left":"Good "}"#);
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "again");
    request.say("day.").end();
    line.clear();
    output.read_line(&mut line).unwrap();
    let messages: Value = serde_json::from_str(&line).unwrap();
    let texts: Vec<&str> = messages.as_array().unwrap().iter().filter_map(|one| one["content"].as_str()).collect();
    assert_eq!(texts, ["Hello", "I see.", "Good day."], "{messages:#}");
    assert!(application.wait().unwrap().success());
}

pub(super) fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

pub(super) fn post(client: &Client, path: &str, body: &Value) -> (u16, String) {
    let answer = client.send("POST", path, &["Content-Type: application/json"], &body.to_string());
    (answer.status, answer.body)
}

/// The data of a stream, without how it is cut.
pub(super) fn data(body: &str) -> Vec<&str> {
    body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

#[test]
fn a_message_that_is_sent_again_is_taken_once_and_has_the_same_stream() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let path = format!("{session}/ui-messages");
    let body = json!({"id": "chat", "trigger": "submit-message", "messages": [user("m-1", "Hello")]});
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| post(&client, &path, &body));
        model.request().say("Good day.").end();
        first.join().unwrap()
    });
    let again = post(&client, &path, &body);
    assert_eq!(data(&first.1).last(), Some(&"[DONE]"), "{first:?}");
    assert_eq!(data(&again.1), data(&first.1));
    assert!(first.1.contains("Good day."), "{first:?}");
    // No turn runs.
    assert_eq!(client.get(&format!("{path}/chat/stream")).0, 204);
    let inbox = client.prompt(&session, "m-1", "Hello");
    assert_eq!(inbox["receipts"][0]["turn"], 1, "{inbox}");
}

/// An id is that of one message, whichever way it was sent first. What a session shows under an id is that message, too.
#[test]
fn a_message_with_the_id_of_another_one_is_refused() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let ui =
        |id: &str, text: &str| post(&client, &format!("{session}/ui-messages"), &json!({"messages": [user(id, text)]}));
    let run = |messages: &[(&str, &str)]| {
        let message = |(id, text): &(&str, &str)| json!({"id": id, "role": "user", "content": text});
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let input = json!({"threadId": "t", "runId": "r", "messages": messages});
        post(&client, &format!("{session}/ag-ui"), &input).1
    };
    let command = |id: &str, text: &str, attachments: Value| {
        let message = json!({"id": id, "text": text, "attachments": attachments});
        client.post(&format!("{session}/commands"), &json!({"command": "prompt", "messages": [message]}))
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ui("m-1", "Hello"));
        model.request().say("Good day.").end();
        assert_eq!(first.join().unwrap().0, 200);
    });
    let image = json!([{"name": "f", "media_type": "image/png", "source": "iVBORw0KGgo="}]);
    assert_eq!(command("m-2", "Look", image).0, 200);
    model.request().say("A dot.").end();
    let mut answers = Vec::new();
    for (id, text) in [("m-1", "Lost"), ("m-2", "Lost")] {
        let (status, answer) = ui(id, text);
        assert!(status == 409 && answer.contains("id_in_use"), "{id}: {status} {answer}");
        answers.push(run(&[(id, text)]));
        // What is new next to it is not taken either.
        answers.push(run(&[(id, text), ("m-3", "Lost, too")]));
        let (status, answer) = command(id, text, json!([]));
        assert!(status == 409 && answer["code"] == "id_in_use", "{id}: {status} {answer}");
    }
    for answer in answers {
        assert!(answer.contains("RUN_ERROR") && answer.contains("id_in_use"), "{answer}");
    }
    assert!(ui("m-1", "Hello").1.contains("Good day.") && run(&[("m-1", "Hello")]).contains("Good day."));
    assert_eq!(command("m-1", "Hello", json!([])).0, 200);
    // The image is not shown.
    assert!(ui("m-2", "Look").1.contains("A dot."));
    let body = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&[("m-2", "Look"), ("m-3", "And now?")]));
        let mut request = model.request();
        let text = request.text();
        assert!(text.contains("And now?") && text.matches("Look").count() == 1 && !text.contains("Lost"), "{text}");
        request.say("Nothing.").end();
        run.join().unwrap()
    });
    assert!(body.contains("Nothing.") && body.contains("RUN_FINISHED"), "{body}");
}

/// The text of a UI message stream.
fn text_of(body: &str) -> String {
    let chunks = data(body).into_iter().filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok());
    chunks.filter_map(|chunk| chunk["delta"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_turn_is_resumed_from_its_start_also_where_its_events_are_not_kept_any_more() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    let mut live = client.events(&session, None);
    // More than the backlog keeps.
    let long = "x".repeat(1000);
    for _ in 0..1500 {
        request.say(&long);
    }
    request.say(" begun");
    live.until(|event| event.data["payload"]["text"].as_str().is_some_and(|text| text.ends_with(" begun")));
    let resumed = client.stream(&format!("{session}/ui-messages/chat/stream"), None);
    let body = json!({"messages": [user("m-1", "Hello")]});
    let path = format!("{session}/ui-messages");
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| post(&client, &path, &body));
        request.say(", ended").end();
        again.join().unwrap()
    });
    let expected = long.repeat(1500) + " begun, ended";
    let resumed = resumed.rest();
    assert!(text_of(&resumed) == expected, "{} bytes", resumed.len());
    assert!(text_of(&again.1) == expected, "{} bytes", again.1.len());
    assert!(resumed.contains(r#""messageId":"turn-1""#) && resumed.ends_with("data: [DONE]\n\n"), "the whole turn");
}

#[test]
fn what_sessions_do_not_have_is_refused_with_the_reason() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let path = format!("{session}/ui-messages");
    for (body, code) in [
        (json!({"messages": [user("m-1", "Hello")], "trigger": "regenerate-message"}), "not_supported"),
        (json!({"messages": [user("m-1", "Hello")], "messageId": "m-1"}), "not_supported"),
        (json!({"messages": []}), "invalid_message"),
        (json!({"messages": [user("m-1", "")]}), "invalid_message"),
        (
            json!({"messages": [{"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "x"}]}]}),
            "invalid_message",
        ),
        (json!({"messages": [user("a\nb", "Hello")]}), "invalid_request"),
        (json!({"messages": "none"}), "invalid_request"),
    ] {
        let (status, answer) = post(&client, &path, &body);
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert!(status >= 400 && problem["code"] == code, "{body}: {status} {answer}");
    }
    let late = json!({"id": "a", "role": "assistant", "parts": [
        {"type": "dynamic-tool", "state": "approval-responded", "approval": {"id": "question-9", "approved": true}},
    ]});
    let (status, answer) = post(&client, &path, &json!({"messages": [late]}));
    assert!(status == 409 && answer.contains("no_such_question"), "{status} {answer}");
    let run = |more: Value| {
        let mut body = json!({"threadId": "t", "runId": "r", "messages": []});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = post(&client, &format!("{session}/ag-ui"), &body);
        assert_eq!(status, 200, "{answer}");
        let last: Value = serde_json::from_str(data(&answer).last().unwrap()).unwrap();
        (last["type"].as_str().unwrap().to_owned(), last["code"].as_str().unwrap_or_default().to_owned())
    };
    let error = |code: &str| ("RUN_ERROR".to_owned(), code.to_owned());
    assert_eq!(run(json!({})), error("nothing_new"));
    assert_eq!(run(json!({"messages": [{"id": "m", "role": "user", "content": ""}]})), error("invalid_message"));
    assert_eq!(run(json!({"resume": [{"interruptId": "q", "status": "resolved"}]})), error("invalid_message"));
    let unknown = json!({"resume": [{"interruptId": "q", "status": "cancelled"}]});
    assert_eq!(run(unknown), error("no_such_question"));
    assert_eq!(post(&client, "/v1/sessions/none/ag-ui", &json!({"threadId": "t", "runId": "r"})).0, 404);
}

#[test]
fn a_run_that_does_not_answer_what_is_asked_changes_nothing() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let path = format!("{session}/ag-ui");
    let input =
        |id: &str| json!({"threadId": "t", "runId": id, "messages": [{"id": id, "role": "user", "content": "Write"}]});
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| post(&client, &path, &input("m-1")));
        let call = json!({"path": "a.txt", "content": "x"});
        model.request().call("c-1", "write_file", &call).end();
        first.join().unwrap()
    });
    let end: Value = serde_json::from_str(data(&first.1).last().unwrap()).unwrap();
    assert_eq!(end["outcome"]["type"], "interrupt", "{first:?}");
    let other = post(&client, &path, &input("m-2"));
    assert!(other.1.contains("RUN_ERROR") && other.1.contains("interrupts_open"), "{other:?}");
    assert_eq!(client.get(&session).1["state"], "waiting");
    let interrupt = end["outcome"]["interrupts"][0]["id"].clone();
    let mut answer = input("m-1");
    answer["resume"] = json!([{"interruptId": interrupt, "status": "cancelled"}]);
    answer["messages"] = json!([]);
    let last = std::thread::scope(|scope| {
        let last = scope.spawn(|| post(&client, &path, &answer));
        model.request().say("As you like.").end();
        last.join().unwrap()
    });
    assert!(last.1.contains("As you like.") && !place.path("a.txt").exists(), "{last:?}");
    // An answer whose stream was lost is sent again.
    let again = post(&client, &path, &answer);
    assert!(again.1.contains("As you like.") && again.1.contains("RUN_FINISHED"), "{again:?}");
}

/// A turn whose end is not in events any more has the status that its messages have.
#[test]
fn a_turn_that_broke_off_is_not_complete_after_a_restart() {
    let model = Model::start();
    let place = place(&model, "");
    let mut running = start(&place);
    let client = Client::new(&running, "");
    let [killed, cancelled] = [client.create(), client.create()];
    let body = |id: &str| json!({"messages": [user(id, "Hello")]});
    // Open until the end: an answer that ends without its last event fails.
    let mut requests = Vec::new();
    for (session, id) in [(&cancelled, "m-2"), (&killed, "m-1")] {
        let mut events = client.events(session, None);
        client.prompt(session, id, "Hello");
        let mut request = model.request();
        request.say("A start. ");
        events.line("cognition_out_delta");
        requests.push(request);
        if session == &cancelled {
            client.command(session, &json!({"command": "cancel"}));
            events.line("turn_finish");
        }
    }
    running.signal("KILL");
    running.ended();
    let running = start(&place);
    let client = Client::new(&running, "");
    for (session, id, status) in [(&killed, "m-1", "interrupted"), (&cancelled, "m-2", "cancelled")] {
        let again = post(&client, &format!("{session}/ui-messages"), &body(id));
        assert!(again.1.contains(&format!("\"status\":\"{status}\"")), "{status}: {again:?}");
    }
}

#[test]
fn a_message_waits_for_the_answer_to_a_question() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let path = format!("{session}/ui-messages");
    let send = |id: &str| post(&client, &path, &json!({"messages": [user(id, "Write")]}));
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| send("m-1"));
        model.request().call("c-1", "write_file", &json!({"path": "a.txt", "content": "x"})).end();
        first.join().unwrap()
    });
    assert!(first.1.contains("tool-approval-request"), "{first:?}");
    let other = send("m-2");
    assert!(other.0 == 409 && other.1.contains("interrupts_open"), "{other:?}");
    let again = send("m-1");
    assert!(again.1.contains("tool-approval-request"), "{again:?}");
}
