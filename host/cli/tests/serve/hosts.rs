//! Several hosts on one Redis server: each continues the sessions of the others.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_servers::RedisServer;

use super::client::Client;
use super::conventions::{post, user};
use super::stream::{frame, websocket};
use super::{USERS, users};
use crate::gateway::running::{Running, TOKEN_A, TOKEN_B};
use crate::support::Place;
use crate::support::script::Model;
use crate::support::{code, err, out};

/// How long a host that was killed keeps its sessions, in seconds.
const LEASE: u64 = 2;

fn settings(more: &str) -> String {
    format!(
        "[state]\nbackend = \"redis\"\nlease_s = {LEASE}\n[transcript]\nbackend = \"redis\"\n[tools.permission]\nwrite_file = \"ask\"\n{more}"
    )
}

/// Two hosts in one workspace, each with a folder of its own for what it keeps.
pub(super) struct Hosts {
    pub(super) place: Place,
    redis: RedisServer,
}

impl Hosts {
    pub(super) fn new(model: &Model, more: &str) -> Self {
        let hosts = Self::at("", "");
        hosts.place.write("tidegate.toml", &model.settings(&settings(more)));
        hosts
    }

    /// Two hosts with the model at this address.
    pub(super) fn at(url: &str, more: &str) -> Self {
        let redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
        let place = Place::new();
        let model = format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"scripted\"\nbase_url = \"{url}\"\napi_key_env = \"\"\n\
             [rules]\nbuiltin_rules = false\n"
        );
        place.write("tidegate.toml", &(model + &settings(more)));
        Self { place, redis }
    }

    pub(super) fn command(&self, host: &str, arguments: &[&str]) -> std::process::Command {
        let mut command = self.place.command(arguments);
        command.env("TIDEGATE_REDIS_URL", self.redis.url()).env("XDG_STATE_HOME", self.place.path(host));
        command
    }

    /// Hosts that keep their sessions also while the store takes no writes.
    fn patient(model: &Model) -> Self {
        let hosts = Self::at("", "");
        let settings = settings("").replace(&format!("lease_s = {LEASE}"), "lease_s = 120");
        hosts.place.write("tidegate.toml", &model.settings(&settings));
        hosts
    }

    /// Waits until somebody wants to write, while the store takes no writes. Returns whether somebody does.
    fn until_a_write_waits(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            let clients = self.redis.text(&["CLIENT", "LIST"]).unwrap();
            let mut flags = clients.split_whitespace().filter_map(|field| field.strip_prefix("flags="));
            if flags.any(|flags| flags.contains('b')) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub(super) fn start(&self, host: &str) -> (Running, Client) {
        let running = Running::of(self.command(host, &["serve", "--listen", "127.0.0.1:0"]));
        let client = Client::new(&running, "");
        (running, client)
    }
}

/// Asks again as long as the answer is that another host has the session.
pub(super) fn patient(mut ask: impl FnMut() -> (u16, Value)) -> (u16, Value) {
    let begun = Instant::now();
    loop {
        let (status, body) = ask();
        if status != 503 || body["code"] != "open_elsewhere" || begun.elapsed() > Duration::from_secs(60) {
            return (status, body);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn prompt(id: &str, text: &str) -> Value {
    json!({"command": "prompt", "messages": [{"id": id, "text": text}]})
}

#[test]
fn a_session_continues_on_another_host_after_the_first_has_ended() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let ((mut first, one), (_second, two)) = (hosts.start("one"), hosts.start("two"));
    let session = one.create();
    let mut events = one.events(&session, None);
    one.prompt(&session, "m-1", "Hello");
    model.request().say("Good day.").end();
    events.line("turn_finish");
    first.signal("TERM");
    first.ended();

    let listed = two.get("/v1/sessions").1;
    assert_eq!(listed["sessions"][0]["title"], "Hello", "{listed}");
    assert_eq!(two.get(&session).1["turns"], 1);
    let again = two.prompt(&session, "m-1", "Hello");
    assert_eq!(again["receipts"][0]["receipt"], "delivered", "it was taken there: {again}");
    let mut events = two.events(&session, None);
    let snapshot = events.next().unwrap();
    assert!(snapshot.data["chat"].to_string().contains("Good day."), "{snapshot:?}");
    two.prompt(&session, "m-2", "And you?");
    let mut request = model.request();
    assert!(request.text().contains("Good day.") && request.text().contains("And you?"));
    request.say("Well.").end();
    events.line("turn_finish");
    assert_eq!(two.delete(&session).0, 204);
    assert_eq!(two.get(&session).0, 404);
}

#[test]
fn a_killed_host_is_followed_by_another_once_its_lease_has_ended() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let ((mut first, one), (_second, two)) = (hosts.start("one"), hosts.start("two"));
    let session = one.create();
    let mut events = one.events(&session, None);
    one.prompt(&session, "m-1", "Write");
    model.request().call("c-1", "write_file", &json!({"path": "a.txt", "content": "written"})).end();
    events.line("tool_confirmation_requested");
    first.signal("KILL");
    first.ended();

    let (status, refused) = two.post(&format!("{session}/commands"), &prompt("m-2", "x"));
    assert_eq!((status, &refused["code"]), (503, &json!("open_elsewhere")), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("process "), "it names the host: {refused}");
    assert_eq!(patient(|| two.get(&format!("{session}/export"))).0, 200);
    let mut events = two.events(&session, None);
    let asked = events.line("tool_confirmation_requested").pop().unwrap();
    let question = &asked.data["payload"]["question_id"];
    two.command(&session, &json!({"command": "answer", "question": question, "answer": {"decision": "approve"}}));
    model.request().say("Written.").end();
    events.line("turn_finish");
    assert_eq!(std::fs::read_to_string(hosts.place.path("a.txt")).unwrap(), "written");
}

/// A store that takes a while to record an answer: the stream of the answer waits for it, and does not end at the question again.
#[test]
fn an_answer_that_is_recorded_late_has_its_stream() {
    let model = Model::start();
    let hosts = Hosts::patient(&model);
    let (_running, client) = hosts.start("one");
    let session = client.create();
    let path = format!("{session}/ui-messages");
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| post(&client, &path, &json!({"messages": [user("m-1", "Write")]})).1);
        model.request().call("c-1", "write_file", &json!({"path": "a.txt", "content": "written"})).end();
        first.join().unwrap()
    });
    assert!(first.contains("question-1"), "{first}");
    hosts.redis.command(&["CLIENT", "PAUSE", "60000", "WRITE"]).unwrap();
    let approval = json!({"id": "question-1", "approved": true});
    let part = json!({"type": "dynamic-tool", "state": "approval-responded", "approval": approval});
    let answer = json!({"messages": [{"id": "turn-1", "role": "assistant", "parts": [part]}]});
    let (is_late, is_open, rest) = std::thread::scope(|scope| {
        let rest = scope.spawn(|| post(&client, &path, &answer).1);
        // The question is answered, and no event has said so.
        let is_late = hosts.until_a_write_waits();
        std::thread::sleep(Duration::from_millis(300));
        let is_open = !rest.is_finished();
        hosts.redis.command(&["CLIENT", "UNPAUSE"]).unwrap();
        model.request().say("Written.").end();
        (is_late, is_open, rest.join().unwrap())
    });
    assert!(is_late && is_open, "{is_late}, {is_open}: {rest}");
    assert!(rest.contains("Written.") && rest.contains(r#""finishReason":"stop""#), "{rest}");
}

/// Commands of the terminal read what the hosts have written, on any machine.
#[test]
fn sessions_of_the_server_are_listed_shown_and_exported_anywhere() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let (_first, one) = hosts.start("one");
    let session = one.create();
    let id = session.rsplit('/').next().unwrap();
    let mut events = one.events(&session, None);
    one.prompt(&session, "m-1", "Hello");
    model.request().say("Good day.").end();
    events.line("turn_finish");
    let run = |arguments: &[&str]| hosts.command("elsewhere", arguments).output().unwrap();
    for (arguments, expected) in [
        (&["session", "list"][..], "Hello"),
        (&["session", "show", id], "Good day."),
        (&["session", "export", id], "Good day."),
        (&["session", "fork", id], "turn 1"),
        (&["doctor"], "before it is acknowledged (`appendfsync always`)"),
    ] {
        let output = run(arguments);
        assert!(out(&output).contains(expected) || err(&output).contains(expected), "{arguments:?}: {output:?}");
    }
    let refused = run(&["session", "rm", id]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("continue its records"), "{}", err(&refused));
}

/// One browser is connected to the host that runs the session, another one to the other host.
#[test]
fn requests_and_streams_reach_the_host_that_runs_the_session() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let ((_first, one), (_second, two)) = (hosts.start("one"), hosts.start("two"));
    let session = one.create();
    let (mut here, mut there) = (one.events(&session, None), two.events(&session, None));
    two.prompt(&session, "m-1", "Write");
    let mut request = model.request();
    request.say("I will write.");
    assert_eq!(
        there.line("cognition_out_delta").last().unwrap().data,
        here.line("cognition_out_delta").last().unwrap().data
    );
    for client in [&one, &two] {
        assert_eq!(client.get(&session).1["state"], "running");
        assert_eq!(client.get("/v1/sessions").1["sessions"][0]["state"], "running");
    }
    two.command(&session, &json!({"command": "queue", "message": {"id": "m-2", "text": "Later"}}));
    assert_eq!(
        one.command(&session, &json!({"command": "take_back", "id": "m-2"}))["receipts"][0]["receipt"],
        "returned"
    );
    request.call("c-1", "write_file", &json!({"path": "a.txt", "content": "written"})).end();
    let asked = there.line("tool_confirmation_requested").pop().unwrap();
    let question = &asked.data["payload"]["question_id"];
    two.command(&session, &json!({"command": "answer", "question": question, "answer": {"decision": "approve"}}));
    let mut request = model.request();
    request.say("Begun");
    let position = there.line("cognition_out_delta").pop().unwrap().id;
    two.command(&session, &json!({"command": "cancel", "id": "c"}));
    for stream in [&mut here, &mut there] {
        assert_eq!(stream.line("turn_finish").pop().unwrap().data["payload"]["status"], "cancelled");
    }
    drop(there);
    let missed = two.events(&session, Some(&position)).line("turn_finish");
    assert!(
        missed.iter().all(|event| event.kind == "message"),
        "a position of one host counts at the other: {missed:?}"
    );
    let exported = two.get(&format!("{session}/export")).1;
    assert!(exported.as_str().unwrap().contains("I will write."), "{exported}");
    assert_eq!(two.delete(&session).0, 204);
    assert_eq!(here.until(|event| event.kind == "end").pop().unwrap().data["reason"], "deleted");
    assert_eq!(one.get(&session).0, 404);
}

#[test]
fn a_websocket_reaches_the_host_that_runs_the_session() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let ((_first, one), (second, _two)) = (hosts.start("one"), hosts.start("two"));
    let session = one.create();
    let mut live = one.events(&session, None);
    let (mut socket, head) = websocket(&second, &format!("{session}/events"), "");
    assert!(head.starts_with("http/1.1 101") && head.contains("sec-websocket-accept: s3pplmb"), "{head}");
    one.prompt(&session, "m-1", "Hello");
    model.request().say("Good day.").end();
    let received: String = live.line("turn_finish").iter().map(|_| frame(&mut socket)).collect();
    assert!(received.contains("Good day."), "{received}");
}

/// What one host has noted of a session changes when another one changes it.
#[test]
fn who_is_allowed_to_use_a_session_is_the_same_on_all_hosts() {
    let model = Model::start();
    let hosts = Hosts::new(&model, USERS);
    let start = |host: &str| {
        let mut command = hosts.command(host, &["serve", "--listen", "127.0.0.1:0"]);
        command.env("A_TOKEN", TOKEN_A).env("B_TOKEN", TOKEN_B);
        Running::of(command)
    };
    let (first, second) = (start("one"), start("two"));
    let ([anna, bert], [anna_there, bert_there]) = (users(&first), users(&second));
    let session = anna.create();
    assert_eq!(bert_there.get(&session).0, 404);
    assert_eq!(anna_there.put(&format!("{session}/users/bert")), 204);
    assert_eq!(bert.get(&session).0, 200);
    let events = bert_there.events(&session, None);
    assert_eq!(anna.delete(&format!("{session}/users/bert")).0, 204);
    assert!(events.rest().contains("\"reason\":\"closed\""));
    assert_eq!((bert.get(&session).0, bert_there.get(&session).0), (404, 404));
}

/// A machine that is suspended, and wakes up when another host has its sessions.
#[test]
fn a_host_that_was_suspended_shows_nothing_that_is_not_recorded() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "");
    let ((first, one), (_second, two)) = (hosts.start("one"), hosts.start("two"));
    let session = one.create();
    let mut events = one.events(&session, None);
    one.prompt(&session, "m-1", "Hello");
    let mut stale = model.request();
    stale.say("Begun");
    events.line("cognition_out_delta");
    first.signal("STOP");
    let (status, answer) = patient(|| two.post(&format!("{session}/commands"), &prompt("m-2", "And now?")));
    assert_eq!(status, 200, "{answer}");
    let mut request = model.request();
    assert!(request.text().contains("Hello") && request.text().contains("And now?"));
    let mut there = two.events(&session, None);
    request.say("Here.").end();
    there.line("turn_finish");

    first.signal("CONT");
    stale.say(" and ended.").end();
    let rest = events.rest();
    assert!(!rest.contains("turn_finish") && !rest.contains("event: end"), "its client connects again: {rest}");
    let shown = one.events(&session, None).next().unwrap().data["chat"].to_string();
    assert!(shown.contains("Here.") && !shown.contains("and ended."), "{shown}");
}

/// Streams that a host passes on from one that says nothing any more end, as those do that are cut: their clients connect again.
#[test]
fn streams_of_a_host_that_is_silent_break_off() {
    let model = Model::start();
    let hosts = Hosts::new(&model, "[serve.limits]\nkeep_alive_ms = 200\n");
    let ((first, one), (second, _two)) = (hosts.start("one"), hosts.start("two"));
    let path = format!("{}/events", one.create());
    let (mut socket, head) = websocket(&second, &path, "");
    assert!(head.starts_with("http/1.1 101"), "{head}");
    let mut stream = second.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", second.address).unwrap();
    let mut body = vec![0; 1024];
    let begun = stream.read(&mut body).unwrap();
    assert!(begun > 0);
    // While the other host says that it is there, they go on.
    std::thread::sleep(Duration::from_millis(900));
    socket.set_nonblocking(true).unwrap();
    let mut pings = vec![0; 1024];
    assert!(socket.read(&mut pings).is_ok_and(|size| size > 0));
    socket.set_nonblocking(false).unwrap();
    first.signal("STOP");
    let mut rest = Vec::new();
    for (socket, rest) in [(&mut stream, &mut rest), (&mut socket, &mut Vec::new())] {
        let ended = socket.read_to_end(rest).map_err(|error| error.kind());
        let is_open = matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!is_open && !rest.ends_with(b"0\r\n\r\n"), "{ended:?}: {}", String::from_utf8_lossy(rest));
    }
    first.signal("CONT");
}
