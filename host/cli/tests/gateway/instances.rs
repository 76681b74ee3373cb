//! Two gateway processes on one Redis server, case 7 of the specification: requests of many conversations are spread at random, and one
//! process is killed while it answers. Rule records, budgets and masks are as with one process.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_servers::{RedisCluster, RedisServer};

use super::model::Model;
use super::plain;
use super::running::{Answer, Running, request};
use crate::support::Place;

const ROUNDS: usize = 6;
/// The round in which one process is killed.
const KILLED: usize = 2;
/// How often the answers of one turn are stopped.
const BUDGET: usize = 4;
/// How many clients ask at the same time.
const CLIENTS: usize = 4;

const ONCE: &str = "+++\ncondition = \"NEVER-ONCE\"\nscope = \"text\"\n+++\nUse other words.\n";
const ALWAYS: &str = "+++\ncondition = \"NEVER-AGAIN\"\nscope = \"text\"\nrepeat = \"always\"\n+++\nUse other words.\n";

/// Returns a token of nobody, for one conversation.
fn token(number: usize) -> String {
    let token = crate::masked::token();
    format!("{}{number:04}", &token[..token.len() - 4])
}

/// Returns the placeholders of secrets in a text.
fn placeholders(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.match_indices("TIDEGATE_SECRET_").map(|(at, _)| text[at..].split(|c| !is_part(c)).next().unwrap()).collect()
}

/// Returns whether a conversation is one turn: its client sends results of calls.
fn is_one_turn(number: usize) -> bool {
    number % 2 == 1
}

/// The model writes the masked token and a forbidden word, until it is reminded.
fn answer(asked: &Value) -> Vec<Value> {
    let text = asked.to_string();
    let (_, number) = text.split_once("conversation ").unwrap();
    let number: usize = number.split(' ').next().unwrap().parse().unwrap();
    let round = text.matches("\"role\":\"user\"").count();
    let word = match (text.contains("Use other words."), is_one_turn(number)) {
        (true, _) => "Fine.",
        (false, true) => "NEVER-AGAIN.",
        (false, false) => "NEVER-ONCE.",
    };
    let placeholder = placeholders(&text).into_iter().next().unwrap_or("(nothing)");
    let said = json!({"type": "text", "text": format!("It is {placeholder}. {word}\n")});
    let call = json!({"type": "tool_use", "id": format!("toolu_{number}_{round}"), "name": "Read", "input": {}});
    if is_one_turn(number) { vec![said, call] } else { vec![said] }
}

/// A conversation as its client has it.
struct Client {
    number: usize,
    messages: Vec<Value>,
    /// In how many rounds a rule has stopped an answer.
    stopped: usize,
    /// An instance was killed during one of its requests: it can have counted a stop of an answer that nobody got.
    was_cut: bool,
    /// How often it has asked the other instance.
    moved: usize,
}

impl Client {
    fn says(&mut self, round: usize) {
        let number = self.number;
        let call = self.messages.last().and_then(|last| last["content"].as_array()).and_then(|content| content.last());
        let content = match call.filter(|call| call["type"] == "tool_use") {
            Some(call) => json!([{"type": "tool_result", "tool_use_id": call["id"], "content": "x"}]),
            None => json!(format!("conversation {number} , round {round}: the token is {}.", token(number))),
        };
        self.messages.push(json!({"role": "user", "content": content}));
    }

    fn request(&self) -> String {
        let body = json!({"model": "m", "max_tokens": 9, "stream": true, "messages": self.messages, "tools": [{"name": "Read"}]});
        let session = format!("session-id: of-{}", self.number);
        let headers: &[&str] = if self.number % 4 < 2 { &["x-api-key: k", &session] } else { &["x-api-key: k"] };
        request("POST", "/v1/messages", headers, &body.to_string())
    }

    /// Asks the first instance, and the second one if the first one does not answer completely.
    fn ask(&mut self, addresses: [&str; 2]) -> Answer {
        let request = self.request();
        for address in addresses {
            match asked(address, &request) {
                Asked::Answered(answer) => return answer,
                Asked::Refused => self.moved += 1,
                Asked::Cut => (self.moved, self.was_cut) = (self.moved + 1, true),
            }
        }
        panic!("neither instance answers: {request}");
    }

    fn hears(&mut self, answer: &Answer) -> Vec<Value> {
        let mut content: Vec<Value> = Vec::new();
        for line in answer.body.lines() {
            let Some(event) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(event).unwrap();
            if event["type"] == "content_block_start" {
                content.push(event["content_block"].clone());
            }
            if let (Some(text), Some(block)) = (event["delta"]["text"].as_str(), content.last_mut()) {
                block["text"] = json!(format!("{}{text}", block["text"].as_str().unwrap_or_default()));
            }
        }
        self.messages.push(json!({"role": "assistant", "content": content}));
        content
    }

    /// Checks an answer: which rule stopped it, and whether the token is in it.
    fn check(&mut self, answer: &Answer, round: usize) {
        let (number, content) = (self.number, self.hears(answer));
        let text: String = content.iter().filter_map(|block| block["text"].as_str()).collect();
        let shown = format!("{number} in round {round}: {text:?} after {} stops, cut: {}", self.stopped, self.was_cut);
        assert!(text.contains(&token(number)) && placeholders(&text).is_empty(), "{shown}");
        assert_eq!(
            content.iter().filter(|block| block["type"] == "tool_use").count(),
            usize::from(is_one_turn(number))
        );
        let is_stopped = !text.contains("NEVER-");
        let expected = if is_one_turn(number) { self.stopped < BUDGET } else { round == 0 };
        let is_open = self.was_cut && is_one_turn(number) && self.stopped + 1 == BUDGET;
        assert!(is_stopped == expected || is_open, "{shown}");
        self.stopped += usize::from(is_stopped);
    }
}

/// What became of a request at one instance.
enum Asked {
    Answered(Answer),
    /// The instance takes no connections.
    Refused,
    /// The instance ended before it had answered to the end.
    Cut,
}

fn asked(address: &str, request: &str) -> Asked {
    let Ok(mut stream) = TcpStream::connect(address) else { return Asked::Refused };
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut bytes, sent) = (Vec::new(), stream.write_all(request.replace("HOST", address).as_bytes()));
    let read = stream.read_to_end(&mut bytes);
    let answer = Answer::of(&String::from_utf8_lossy(&bytes));
    let is_whole = sent.is_ok() && read.is_ok() && answer.body.contains("message_stop");
    assert!(answer.head.is_empty() || answer.body.is_empty() || answer.status == 200, "{answer:?}");
    if is_whole { Asked::Answered(answer) } else { Asked::Cut }
}

fn start(place: &Place, url: &str) -> Running {
    let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
    command.env("TIDEGATE_REDIS_URL", url);
    Running::of(command)
}

/// Returns 0 or 1, from a linear congruential generator.
fn chosen(number: usize, round: usize) -> usize {
    let seed = (number * ROUNDS + round) as u64;
    let mixed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::from((mixed ^ (mixed >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1)
}

/// Has each conversation make a request; `asked` is called after each of them.
fn round(clients: &[Mutex<Client>], instances: &[Running], round: usize, asked: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some(client) = clients.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut client = client.lock().unwrap();
                    let first = chosen(client.number, round);
                    client.says(round);
                    let answer = client.ask([&instances[first].address, &instances[1 - first].address]);
                    client.check(&answer, round);
                    asked(client.number);
                }
            });
        }
    });
}

#[test]
fn any_process_has_each_request_and_one_is_killed() {
    let redis = RedisServer::start().unwrap();
    spread(&redis.url(), 100);
}

#[test]
fn processes_on_a_cluster_are_as_on_one_server() {
    let redis = RedisCluster::start(0).unwrap();
    spread(&redis.url(), 24);
}

/// Spreads so many conversations over two processes with this store.
fn spread(url: &str, conversations: usize) {
    let model = Model::answering(answer);
    let place = Place::with(&[("once", ONCE), ("always", ALWAYS)]);
    let plugin = crate::masked::plugin();
    place.write(
        "tidegate.toml",
        &plain(
            &model,
            &format!(
                "[state]\nbackend = \"redis\"\n[rules]\nretry_delay_ms = 0\nmax_interrupts_per_turn = {BUDGET}\n\
                 [[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\nrequired = true\n"
            ),
        ),
    );
    let mut instances = vec![start(&place, url), start(&place, url)];
    let new = |number| Mutex::new(Client { number, messages: Vec::new(), stopped: 0, was_cut: false, moved: 0 });
    let clients: Vec<Mutex<Client>> = (0..conversations).map(new).collect();
    for at in 0..ROUNDS {
        // The others continue without waiting: requests are under way at this instance.
        round(&clients, &instances, at, |number| {
            if at == KILLED && number == conversations / 2 {
                instances[1].signal("KILL");
            }
        });
        if at == KILLED {
            instances[1] = start(&place, url);
        }
    }
    let mut known: Vec<BTreeSet<String>> = vec![BTreeSet::new(); conversations];
    for (_, body) in model.seen() {
        let (_, number) = body.split_once("conversation ").unwrap();
        let number: usize = number.split(' ').next().unwrap().parse().unwrap();
        assert!(!body.contains(&token(number)), "{body}");
        known[number].extend(placeholders(&body).into_iter().map(str::to_owned));
    }
    assert!(known.iter().all(|known| known.len() == 1), "each token has one placeholder: {known:?}");
    let moved: usize = clients.iter().map(|client| client.lock().unwrap().moved).sum();
    assert!(moved > 0, "the killed instance would have had requests");
}
