//! Conversations of a gateway, over several requests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use serve::gateway::{Acting, Conversations, Gateway, Site, UpstreamUrls, Watching};
use tidegate::config::GatewayLimits;
use tidegate::diagnostic::SourceFile;
use tidegate::gateway::WithoutStore;
use tidegate::metrics::Metrics;
use tidegate::native::{CallError, InputAnswer, Native, NativeCall, NativeExtension};
use tidegate::plugin::Callback;
use tidegate::rule::{RuleSet, RuleSettings};
use tidegate::{Host, Message, Operator};
use tokio::runtime::Runtime;

use super::model::Model;
use super::running::{Answer, Running, TOKEN_A, TOKEN_B, request, rest};
use super::{plain, team};
use crate::support::{Place, out};

/// A rule that acts once in a conversation.
const ONCE: &str = "+++\ncondition = \"forbidden\"\nscope = \"text\"\n+++\nNever say that word.\n";

/// Returns the text of a streamed answer.
pub(super) fn text(answer: &Answer) -> String {
    let data = answer.body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    data.filter_map(|data| data["delta"]["text"].as_str().map(str::to_owned)).collect()
}

/// The request that follows an answer is assigned to its conversation, in which the rule has acted.
#[test]
fn what_follows_an_answer_is_of_its_conversation() {
    let model = Model::start();
    // Half of a surrogate pair, as clients cut text; an answer that could not be requested again.
    // A session with a name: without tools, its first turn looks like a question next to it.
    let named = &["session-id: 7f"][..];
    for (said, does, headers) in [
        ("x", "", &[][..]),
        ("cut \\ud83d", "", &[]),
        ("x", "?do=refuse_again", &[]),
        ("x", "", named),
        ("x", "?do=refuse_again", named),
    ] {
        let place = Place::with(&[("once", ONCE)]);
        place.write("tidegate.toml", &plain(&model, ""));
        let running = Running::start(&place);
        let target = format!("/v1/messages{does}");
        let first = format!("{{\"role\": \"user\", \"content\": \"{said}\"}}");
        let ask = |more: &str| {
            let body = format!("{{\"stream\": true, \"messages\": [{first}{more}]}}");
            text(&running.ask("POST", &target, headers, &body))
        };
        let before = model.seen().len();
        let answer = ask("");
        assert_eq!(model.seen().len() - before, 2, "{said} {does}: {answer}");
        assert!(!answer.contains("forbidden") && !answer.is_empty(), "{said} {does}: {answer}");
        let answer = json!({"role": "assistant", "content": answer});
        let answer = ask(&format!(", {answer}, {{\"role\": \"user\", \"content\": \"more\"}}"));
        assert!(answer.contains("forbidden"), "{said} {does}: it is another conversation: {answer}");
    }
}

/// Conversations belong to the token of a client, whose login to the server can change; without tokens, to the login.
#[test]
fn conversations_have_an_owner() {
    let model = Model::start();
    let (token_a, token_b) = (format!("X-Api-Key: {TOKEN_A}"), format!("X-Api-Key: {TOKEN_B}"));
    let (old, new) = ("Authorization: Bearer old", "Authorization: Bearer new");
    let (shared, none) = (team(&model, ""), plain(&model, ""));
    for (name, settings, path, before, after, is_same) in [
        ("a renewed login", &shared, "/openai/messages", [&*token_a, old], [&*token_a, new], true),
        ("another token", &shared, "/openai/messages", [&*token_a, old], [&*token_b, old], false),
        ("the operator's key", &shared, "/anthropic/v1/messages", [&*token_a, old], [&*token_a, new], true),
        ("no token", &none, "/v1/messages", ["X-A: b", old], ["X-A: b", old], true),
        ("no token, and a renewed login", &none, "/v1/messages", ["X-A: b", old], ["X-A: b", new], false),
    ] {
        let place = Place::with(&[("once", ONCE)]);
        place.write("tidegate.toml", settings);
        let running = Running::start(&place);
        let ask = |headers: [&str; 2], more: &str| {
            let body =
                format!("{{\"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": \"x\"}}{more}]}}");
            text(&running.ask("POST", path, &[headers[0], headers[1], "session-id: 7f"], &body))
        };
        let answer = ask(before, "");
        assert!(!answer.contains("forbidden") && !answer.is_empty(), "{name}: {answer}");
        let answer = json!({"role": "assistant", "content": answer});
        let answer = ask(after, &format!(", {answer}, {{\"role\": \"user\", \"content\": \"more\"}}"));
        assert_eq!(answer.contains("forbidden"), is_same, "{name}: {answer}");
    }
}

/// Numbers its inputs.
struct Numbers(AtomicU32);

impl NativeExtension for Numbers {
    fn on_input_messages(&self, _: &NativeCall, messages: &[Message]) -> Result<InputAnswer, CallError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let said = messages.iter().map(|message| Message::user(format!("{} ({number})", message.plain_text())));
        Ok(InputAnswer::Replace(said.collect()))
    }
}

/// Delays its answer.
struct Slow;

impl NativeExtension for Slow {
    fn on_input_messages(&self, _: &NativeCall, _: &[Message]) -> Result<InputAnswer, CallError> {
        std::thread::sleep(Duration::from_millis(1500));
        Ok(InputAnswer::Pass)
    }
}

/// Returns a gateway in which a native extension acts.
fn serving(
    (place, model): (&Place, &Model),
    operator: Operator,
    native: Native,
    request_timeout: Duration,
) -> (Runtime, Gateway) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let gateway = runtime.block_on(async {
        let host = Host::builder(operator).user_rules(None).cache_dir(None);
        let host = host.extension(native.on(Callback::InputMessages)).without_model().open().await.unwrap();
        let conversations = Conversations::new(Acting {
            host: &host,
            workspace: &place.path(""),
            rules: RuleSet::build(Vec::new(), RuleSettings::default(), "").0,
            plugins: None,
            has_plugins: true,
            watching: Watching { header: Some("x-own".to_owned()), ..Watching::default() },
            without_store: WithoutStore::default(),
            before: None,
        });
        let urls = UpstreamUrls { anthropic: Some(model.url.clone()), openai: Some(format!("{}/v1", model.url)) };
        let limits = GatewayLimits { request_timeout, ..GatewayLimits::default() };
        let site = Site { routes: urls.routes(&conversations), limits, ..Site::default() };
        Gateway::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, site, &Metrics::new()).await.unwrap()
    });
    (runtime, gateway)
}

/// Sends a request.
fn begin(gateway: &Gateway, target: &str) -> TcpStream {
    let body = r#"{"stream": true, "messages": [{"role": "user", "content": "yes"}]}"#;
    let bytes = request("POST", target, &["x-own: a"], body).replace("HOST", &gateway.address().to_string());
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream
}

/// A request that arrives while another one of its conversation is answered gets the same replacement.
#[test]
fn what_is_replaced_is_replaced_once() {
    let (model, place) = (Model::start(), Place::new());
    let numbers = Native::new("numbers".parse().unwrap(), Numbers(AtomicU32::new(0)));
    let (_runtime, gateway) = serving((&place, &model), Operator::default(), numbers, Duration::from_secs(60));
    let mut first = begin(&gateway, "/v1/messages?do=slow");
    first.read_exact(&mut [0; 200]).unwrap();
    rest(&mut begin(&gateway, "/v1/messages"));
    rest(&mut first);
    let sent: Vec<String> = model.seen().into_iter().map(|(_, body)| body).collect();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent.iter().all(|body| body.contains("yes (1)")), "{sent:?}");
}

/// The time limit of a request includes the time of plugins.
#[test]
fn what_plugins_take_counts() {
    let (model, place) = (Model::start(), Place::new());
    let slow = Native::new("slow".parse().unwrap(), Slow);
    let (_runtime, gateway) = serving((&place, &model), Operator::default(), slow, Duration::from_millis(300));
    let answer = Answer::of(&rest(&mut begin(&gateway, "/v1/messages")));
    assert_eq!((answer.status, answer.code().as_str()), (504, "gateway_late"), "{answer:?}");
    assert_eq!(model.seen().len(), 0);
}

/// What callbacks do to a request is recorded in the turn that it starts.
#[test]
fn the_first_turn_has_what_callbacks_changed_in_its_request() {
    let (model, place) = (Model::start(), Place::new());
    let settings = format!("[transcript]\nenabled = true\nfolder = {:?}\n", place.path("state/tidegate/sessions"));
    let operator = Operator::of_source(&SourceFile::new("tidegate.toml", settings)).unwrap();
    let numbers = Native::new("numbers".parse().unwrap(), Numbers(AtomicU32::new(0)));
    let (_runtime, gateway) = serving((&place, &model), operator, numbers, Duration::from_secs(60));
    rest(&mut begin(&gateway, "/v1/messages"));
    let listed = place.json(&["session", "list", "--json"]);
    let id = listed["sessions"][0]["session"].as_str().unwrap();
    let explained = out(&place.run(&["explain", "1", "--session", id]));
    assert!(explained.contains("numbers (on_input_messages)"), "{explained}");
}
