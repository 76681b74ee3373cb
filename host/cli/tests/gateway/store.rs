//! A gateway whose Redis server ends and is started again while requests run, and one that uses TLS.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_servers::{Certificates, RedisServer};

use super::model::Model;
use super::plain;
use super::running::{Answer, Running};
use crate::support::{Place, err, out};

/// A rule that acts once in a conversation.
const ONCE: &str = "+++\ncondition = \"forbidden\"\nscope = \"text\"\n+++\nNever say that word.\n";

fn place_of(model: &Model, settings: &str) -> Place {
    let place = Place::with(&[("once", ONCE)]);
    place.write("tidegate.toml", &plain(model, settings));
    place
}

fn start(place: &Place, redis: &RedisServer) -> Running {
    let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
    command.env("TIDEGATE_REDIS_URL", redis.url());
    Running::of(command)
}

/// Returns the text of a streamed answer.
fn text(answer: &Answer) -> String {
    let data = answer.body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    data.filter_map(|data| data["delta"]["text"].as_str().map(str::to_owned)).collect()
}

/// A conversation of one client.
struct Client {
    name: &'static str,
    messages: Vec<Value>,
}

impl Client {
    fn new(name: &'static str) -> Self {
        Self { name, messages: vec![json!({"role": "user", "content": "Hello"})] }
    }

    /// Asks once more, and continues the conversation if there is an answer.
    fn ask(&mut self, running: &Running) -> Answer {
        let body = json!({"stream": true, "messages": self.messages, "tools": [{"name": "Read"}]}).to_string();
        let session = format!("session-id: {}", self.name);
        let answer = running.ask("POST", "/v1/messages", &[&session], &body);
        if answer.status == 200 {
            self.messages.push(json!({"role": "assistant", "content": text(&answer)}));
            self.messages.push(json!({"role": "user", "content": "Go on"}));
        }
        answer
    }

    /// Asks, and returns whether the rule has stopped the answer.
    fn is_stopped(&mut self, running: &Running) -> bool {
        let answer = self.ask(running);
        assert!(
            answer.status == 200 && answer.body.contains("message_stop"),
            "{}: {answer:?} {}",
            self.name,
            running.log()
        );
        !text(&answer).contains("forbidden")
    }
}

fn health(running: &Running) -> Value {
    serde_json::from_str(&running.ask("GET", "/healthz", &[], "").body).unwrap()
}

/// Returns the value of a metric; 0 if it has none.
fn metric(running: &Running, series: &str) -> u64 {
    let text = running.ask("GET", "/metrics", &[], "").body;
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or(0)
}

fn ok() -> Value {
    json!({"status": "ok", "reload": "ok", "audit": "ok", "store": "ok", "certificate": "ok"})
}

fn away() -> Value {
    json!({"status": "degraded", "reload": "ok", "audit": "ok", "store": "failed", "certificate": "ok"})
}

const UNSTORED: &str = "gateway_conversations_unstored";

fn durable() -> RedisServer {
    RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap()
}

#[test]
fn requests_are_refused_until_the_server_is_back() {
    let (mut redis, model) = (durable(), Model::start());
    let place = place_of(&model, "[state]\nbackend = \"redis\"\n");
    let running = start(&place, &redis);
    let mut client = Client::new("a");
    assert!(client.is_stopped(&running) && health(&running) == ok());
    redis.kill();
    let asked = model.seen().len();
    let answer = client.ask(&running);
    assert_eq!((answer.status, answer.code().as_str()), (503, "gateway_store"), "{answer:?}");
    assert!(answer.body.contains("cannot reach the state store redis at 127.0.0.1"), "{answer:?}");
    assert_eq!(Client::new("other").ask(&running).status, 503);
    assert_eq!((model.seen().len(), health(&running), metric(&running, UNSTORED)), (asked, away(), 0));
    assert_eq!(metric(&running, "gateway_request_total{route=\"/\",outcome=\"refused\"}"), 2);
    let away_words = "until it is back, `without_store` under [gateway] applies";
    assert!(running.log_has(0, away_words), "{}", running.log());
    assert_eq!(running.log().matches(away_words).count(), 1);
    redis.start_again().unwrap();
    // The first command on a connection that broke can fail.
    let begun = Instant::now();
    let answer = loop {
        let answer = client.ask(&running);
        if answer.status == 200 {
            break answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{answer:?} {}", running.log());
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(text(&answer).contains("forbidden"), "the rule has acted in this conversation: {answer:?}");
    assert_eq!(health(&running), ok());
    assert!(running.log_has(0, "the state store answers again"), "{}", running.log());
}

#[test]
fn requests_are_answered_without_the_server_and_stored_when_it_is_back() {
    let (mut redis, model) = (durable(), Model::start());
    let place = place_of(&model, "[state]\nbackend = \"redis\"\n[gateway]\nwithout_store = \"local\"\n");
    let mut running = start(&place, &redis);
    let (mut before, mut during, mut throughout) =
        (Client::new("before"), Client::new("during"), Client::new("throughout"));
    assert!(before.is_stopped(&running) && throughout.is_stopped(&running));
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A client that never notices anything.
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                assert!(!throughout.is_stopped(&running), "the rule acts once");
            }
        });
        redis.kill();
        assert!(!before.is_stopped(&running), "its records are in memory");
        assert!(during.is_stopped(&running) && !during.is_stopped(&running), "it began without the store");
        assert_eq!((health(&running), metric(&running, "gateway_conversation_total{outcome=\"local\"}")), (away(), 1));
        assert!(metric(&running, UNSTORED) >= 2, "{}", running.log());
        assert!(running.log_has(0, "it is guarded with the data of this process only"), "{}", running.log());
        // Reloads lose nothing: the records stay, and a new rule acts.
        for name in ["one-more", "and-one"] {
            place.write(&format!(".tidegate/rules/{name}.md"), &ONCE.replace("forbidden", "nothing"));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!before.is_stopped(&running) && !during.is_stopped(&running), "{name}: its records are in memory");
        }
        place.write(".tidegate/rules/now.md", &ONCE.replace("forbidden", "come"));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!text(&before.ask(&running)).contains("come"), "the new rule acts");
        assert!(metric(&running, UNSTORED) >= 2, "{}", running.log());
        redis.start_again().unwrap();
        // With their next requests, and at an interval.
        let begun = Instant::now();
        while metric(&running, UNSTORED) > 0 {
            assert!(!before.is_stopped(&running) && !during.is_stopped(&running));
            assert!(begun.elapsed() < Duration::from_secs(20), "{}", running.log());
            std::thread::sleep(Duration::from_millis(200));
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert_eq!((health(&running), metric(&running, "gateway_conversation_total{outcome=\"lost\"}")), (ok(), 0));
    running.signal("TERM");
    assert!(running.ended().success(), "{}", running.log());
    // Another process finds everything.
    let other = start(&place, &redis);
    for client in [&mut before, &mut during, &mut throughout] {
        assert!(!client.is_stopped(&other), "{}: the rule has acted", client.name);
    }
    assert_eq!(metric(&other, "gateway_conversation_total{outcome=\"local\"}"), 0);
}

/// Data of the time without the server is stored at the end, too.
#[test]
fn what_is_not_stored_is_stored_at_the_end() {
    let (mut redis, model) = (durable(), Model::start());
    let place = place_of(&model, "[state]\nbackend = \"redis\"\n[gateway]\nwithout_store = \"local\"\n");
    let mut running = start(&place, &redis);
    redis.kill();
    let mut client = Client::new("a");
    assert!(client.is_stopped(&running));
    redis.start_again().unwrap();
    running.signal("TERM");
    assert!(running.ended().success(), "{}", running.log());
    assert!(!client.is_stopped(&start(&place, &redis)), "{}", running.log());
}

/// The program with a server that needs TLS, a certificate of the client, and a user with few commands.
#[test]
fn the_program_uses_tls_and_a_user() {
    let (all, model) = (Certificates::make().unwrap(), Model::start());
    let redis = RedisServer::start_tls(&all, true).unwrap();
    let page = include_str!("../../../GATEWAY_OPERATORS.md");
    let user =
        page.lines().find(|line| line.starts_with("ACL SETUSER tidegate ")).unwrap().replace("PASSWORD", "hunter2");
    let set = |user: &str| redis.command(&user.split(' ').collect::<Vec<_>>()).unwrap();
    set(&user);
    let file = |name: &str| all.path(name).display().to_string();
    let settings = |ca: &str| {
        format!(
            "[state]\nbackend = \"redis\"\nuser = \"tidegate\"\npassword = \"env:REDIS_PASSWORD\"\nca = {:?}\n\
             certificate = {:?}\ncertificate_key = {:?}\n",
            file(ca),
            file("client.pem"),
            file("client.key")
        )
    };
    let place = place_of(&model, &settings("authority.pem"));
    let run = |arguments: &[&str], password: Option<&str>| {
        let mut command = place.command(arguments);
        command.env("TIDEGATE_REDIS_URL", format!("rediss://{}", redis.tls_host())).env_remove("REDIS_PASSWORD");
        command.envs(password.map(|password| ("REDIS_PASSWORD", password)));
        command
    };
    let running = Running::of(run(&["gateway", "--listen", "127.0.0.1:0"], Some("hunter2")));
    let mut client = Client::new("a");
    assert!(client.is_stopped(&running) && !client.is_stopped(&running), "{}", running.log());
    assert_eq!(health(&running), ok());
    let doctor = |password: Option<&str>| {
        let output = run(&["doctor"], password).output().unwrap();
        let shown = out(&output) + &err(&output);
        assert!(!shown.contains("hunter"), "{shown}");
        shown
    };
    let shown = doctor(Some("hunter2"));
    assert!(shown.contains("ok   state store: a session was opened"), "{shown}");
    for (password, user, ca, words) in [
        (
            Some("hunter3"),
            user.clone(),
            "authority.pem",
            "fail state store: cannot reach the state store redis at localhost",
        ),
        (Some("hunter3"), user.clone(), "authority.pem", "it refuses the user or the password"),
        (
            Some("hunter2"),
            user.replace(" +hincrby", " -hincrby"),
            "authority.pem",
            "access control list does not permit `hincrby`",
        ),
        (Some("hunter2"), user.clone(), "stranger.pem", "set `ca` under [state] to the certificates of its authority"),
        (None, user, "authority.pem", "the environment variable `REDIS_PASSWORD`, which contains the password"),
    ] {
        place.write("tidegate.toml", &plain(&model, &settings(ca)));
        set(&user);
        let shown = doctor(password);
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// What is wrong with the connection to the server is reported with its place.
#[test]
fn settings_of_the_server_have_places() {
    let (model, all) = (Model::start(), Certificates::make().unwrap());
    let authority = all.path("authority.pem").display().to_string();
    for (url, setting, message) in [
        ("rediss://localhost", "ca = \"missing.pem\"", "missing.pem, which cannot be read: No such file"),
        ("rediss://localhost", "ca = \"tidegate.toml\"", "contains no certificate in PEM"),
        ("redis://localhost", &format!("ca = {authority:?}"), "is for a connection with TLS"),
        (
            "rediss://localhost",
            "password = \"env:NO_SUCH_PASSWORD\"",
            "`NO_SUCH_PASSWORD`, which contains the password",
        ),
        ("rediss://:hunter2@localhost", "password = \"env:PATH\"", "and the URL contains a password, too"),
    ] {
        let place = place_of(&model, &format!("[state]\nbackend = \"redis\"\n{setting}\n"));
        let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
        let output = command.env("TIDEGATE_REDIS_URL", url).output().unwrap();
        let shown = err(&output);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(shown.contains(message) && shown.contains("tidegate.toml:6:") && shown.contains("^^^"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for (url, message) in [
        ("redis+sentinel://hunter2", "it does not name the primary"),
        ("redis://hunter2-a,hunter2-b", "several servers"),
        ("rediss://hunter2#insecure", "disable the check of certificates"),
    ] {
        let place = place_of(&model, "[state]\nbackend = \"redis\"\n");
        let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
        let shown = err(&command.env("TIDEGATE_REDIS_URL", url).output().unwrap());
        assert!(shown.contains("the URL in `TIDEGATE_REDIS_URL`") && shown.contains(message), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

/// Without a request, `/healthz` reports a server that never answered.
#[test]
fn a_server_that_is_away_from_the_start_is_reported() {
    let (mut redis, model) = (durable(), Model::start());
    redis.kill();
    let place = place_of(&model, "[state]\nbackend = \"redis\"\n");
    let running = start(&place, &redis);
    let begun = Instant::now();
    while health(&running) != away() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", running.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}
