//! Two instances of a gateway on one Redis server: any of them has each request, both at once, and one is killed in between.
//!
//! The instances are processes of this test program, which [`child`] runs: a line for each exchange, and a line when it is stored.
#![allow(clippy::print_stdout, reason = "an instance answers on its standard output")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use gateway::{Answer, Trail, Wire};
use rules::RuleMemory;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::gateway::{ConversationLimits, ConversationOptions, Conversations};
use tidegate::rule::{Evidence, RuleMatch, RuleSpec};
use tidegate_servers::RedisServer;
use tokio::sync::oneshot;

use super::support::builder;

const CHILD: &str = "TIDEGATE_INSTANCE";
const URL: &str = "TIDEGATE_REDIS_URL";
const CONVERSATIONS: usize = 100;
const ROUNDS: usize = 6;

fn rule(number: usize) -> String {
    format!("rule-{number}")
}

/// Returns the rules: each acts once, and answers of a turn are stopped three times at most.
fn options(folder: &TempDir) -> ConversationOptions {
    let spec = |number| RuleSpec::new(rule(number), "Do not.").condition(format!("NEVER{number}")).scope("text");
    (0..ROUNDS * 2).map(spec).fold(ConversationOptions::new(folder.path()), ConversationOptions::rule)
}

fn matched(rule: String) -> RuleMatch {
    let (pattern, text) = ("NEVER".to_owned(), "NEVER".to_owned());
    let evidence = Evidence { pattern, text, start: 0, end: 5, line: 1, field: None, path: None, unread: false };
    RuleMatch { rule, stream: StreamKind::Text, evidence }
}

/// The process of an instance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let host = builder("[state]\nbackend = \"redis\"\n").without_model().open().await.unwrap();
    let keeper = Conversations::new(host, options(&folder), ConversationLimits::default());
    let mut ends = None;
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if asked["ends"] == true {
            let end: oneshot::Sender<()> = ends.take().unwrap();
            end.send(()).unwrap();
            continue;
        }
        let (end, ended) = oneshot::channel();
        ends = Some(end);
        let keeper = std::sync::Arc::clone(&keeper);
        tokio::spawn(async move {
            let done = exchange(&keeper, &asked, ended).await;
            // What the harness prints does not begin with a brace.
            println!("\n{done}");
        });
    }
}

/// Runs one exchange in which a rule stops an answer, and changes the memory.
async fn exchange(keeper: &std::sync::Arc<Conversations>, asked: &Value, ended: oneshot::Receiver<()>) -> Value {
    let request = &asked["request"];
    let session = asked["session"].as_str().map(str::to_owned);
    let trail =
        Trail::of(Wire::Anthropic, request, |name| session.as_deref().filter(|_| name == "session-id"), None, b"key");
    let visit = keeper.enter(trail).await.unwrap();
    if asked["waits"] == true {
        println!("\n{}", json!({"entered": asked["number"]}));
        ended.await.unwrap();
    }
    let mut rules = visit.rules();
    let knew = known(&rules.memory());
    let noted = visit.conversation().memory();
    let fires = asked["rule"].as_str().unwrap().to_owned();
    let judged = rules.judge(&[matched(fires.clone())]);
    rules.injected(&judged.rules);
    let mut memory = noted.clone();
    if memory.is_null() {
        memory = json!({});
    }
    memory[&fires] = json!(true);
    visit.conversation().set_memory(memory);
    let mut answer = Answer::default();
    answer.blocks.push((StreamKind::Text, asked["answer"].as_str().unwrap().to_owned()));
    if let Some(id) = asked["call"].as_str() {
        let kind = StreamKind::Tool { call: tidegate::tool::CallId::new(id), name: "Read".to_owned() };
        answer.blocks.push((kind, "{}".to_owned()));
    }
    visit.end(&rules, Some(&answer)).await.unwrap();
    json!({"number": asked["number"], "knew": knew, "noted": noted, "fired": judged.rules, "id": visit.conversation().id().as_str()})
}

fn known(memory: &RuleMemory) -> Value {
    let rules: Vec<&str> = memory.records.iter().map(|one| one.rule.as_str()).collect();
    json!({"rules": rules, "completed": memory.completed, "interrupts": memory.spent.interrupts})
}

/// An instance of a gateway.
struct Instance {
    process: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Instance {
    fn start(server: &RedisServer) -> Self {
        let name = std::thread::current().name().unwrap_or_default().replace(NAME, "child");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([&name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1").env(URL, server.url());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, input, output }
    }

    fn ask(&mut self, asked: &Value) {
        writeln!(self.input, "{asked}").unwrap();
    }

    fn done(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the instance has ended");
            if line.starts_with('{') {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

const NAME: &str = "any_instance_has_each_request_and_one_is_killed";

/// Returns whether all of a conversation is one turn: its client gives results of calls.
fn is_one_turn(number: usize) -> bool {
    number % 4 == 3
}

/// How often rules stop the answers of one turn.
const BUDGET: usize = 3;

/// A conversation as its client has it.
#[derive(Default)]
struct Client {
    messages: Vec<Value>,
    fired: BTreeSet<String>,
    noted: usize,
    id: Option<Value>,
}

impl Client {
    fn request(&mut self, number: usize, round: usize, part: usize) -> Value {
        let rule = rule(round * 2 + part);
        let session = number.is_multiple_of(2).then(|| format!("session-{number}"));
        let request = json!({"messages": self.messages, "tools": [{"name": "Read"}]});
        let answer = format!("answer {number} {round}");
        let call = is_one_turn(number).then(|| format!("toolu_{number}_{round}"));
        json!({"number": number, "session": session, "request": request, "rule": rule, "answer": answer, "call": call})
    }

    fn says(&mut self, number: usize, round: usize) {
        let content = match round.checked_sub(1).filter(|_| is_one_turn(number)) {
            Some(before) => {
                json!([{"type": "tool_result", "tool_use_id": format!("toolu_{number}_{before}"), "content": "x"}])
            }
            None => json!(format!("question {number} {round}")),
        };
        self.messages.push(json!({"role": "user", "content": content}));
    }

    fn hears(&mut self, number: usize, round: usize) {
        let mut content = vec![json!({"type": "text", "text": format!("answer {number} {round}")})];
        if is_one_turn(number) {
            content.push(
                json!({"type": "tool_use", "id": format!("toolu_{number}_{round}"), "name": "Read", "input": {}}),
            );
        }
        self.messages.push(json!({"role": "assistant", "content": content}));
    }

    fn check(&mut self, done: &Value, number: usize, round: usize) {
        let rules: BTreeSet<String> =
            done["knew"]["rules"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect();
        assert_eq!(rules, self.fired, "{done}");
        let noted: BTreeSet<String> =
            done["noted"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
        assert_eq!(noted.len(), self.noted, "{done}");
        // A question begins a turn with a full budget; a result continues the turn with the remaining budget.
        let (completed, spent) = if is_one_turn(number) { (0, round.min(BUDGET)) } else { (round, 0) };
        assert_eq!(
            (&done["knew"]["completed"], &done["knew"]["interrupts"]),
            (&json!(completed), &json!(spent)),
            "{done}"
        );
        let id = self.id.get_or_insert_with(|| done["id"].clone());
        assert_eq!(*id, done["id"]);
    }
}

#[test]
fn any_instance_has_each_request_and_one_is_killed() {
    let server = RedisServer::start().unwrap();
    let mut instances = [Instance::start(&server), Instance::start(&server)];
    let mut clients: Vec<Client> = (0..CONVERSATIONS).map(|_| Client::default()).collect();
    let mut random = 7_u64;
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            // One instance is killed: data that only it had is lost, but not that of any answer that a client has received.
            let killed = std::mem::replace(&mut instances[1], Instance::start(&server));
            killed.kill();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.says(number, round);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let first = usize::from(random >> 63 == 1);
            let both = number % 4 == 1 && round > 0;
            let mut one = client.request(number, round, 0);
            one["waits"] = json!(both);
            instances[first].ask(&one);
            if both {
                let mut other = client.request(number, round, 1);
                other["waits"] = json!(true);
                instances[1 - first].ask(&other);
                // The same request again, concurrently on another instance: both are guarded, and neither loses the changes of the other.
                instances.iter_mut().for_each(|instance| assert_eq!(instance.done(), json!({"entered": number})));
                instances.iter_mut().for_each(|instance| instance.ask(&json!({"ends": true})));
                let done = [instances[first].done(), instances[1 - first].done()];
                assert!(done.iter().all(|done| done["id"] == *client.id.as_ref().unwrap()), "{done:?}");
                client.fired.insert(rule(round * 2 + 1));
                client.fired.insert(rule(round * 2));
                client.noted += 1;
            } else {
                let done = instances[first].done();
                client.check(&done, number, round);
                client
                    .fired
                    .extend(done["fired"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()));
            }
            client.noted += 1;
            client.hears(number, round);
        }
    }
    for instance in instances {
        instance.kill();
    }
}
