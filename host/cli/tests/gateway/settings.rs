//! Settings of `[gateway]` without another test: each has an effect.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::Model;
use super::running::{Answer, Running, request, rest};
use super::{RULE, place, plain};

/// A request with a tool: one without tools, in a session that has a name, is next to the conversation.
const BODY: &str = r#"{"tools": [{"name": "t"}], "messages": [{"role": "user", "content": "x"}]}"#;

/// Returns whether the rule has stopped the answer to a request.
fn is_stopped(running: &Running, target: &str, headers: &[&str]) -> bool {
    let answer = running.ask("POST", target, headers, BODY);
    assert!(answer.body.contains("message_stop"), "{answer:?}");
    let (good, bad) = (answer.body.contains("fine."), answer.body.contains("come."));
    assert_ne!(good, bad, "{answer:?}");
    good
}

#[test]
fn a_route_has_its_rules_and_its_agent() {
    let model = Model::start();
    let route =
        |path: &str, more: &str| format!("[[gateway.route]]\npath = \"{path}\"\nupstream = \"{}\"\n{more}", model.url);
    let routes = [
        route("/all", ""),
        route("/none", "rules = []\n"),
        route("/other", "rules = [\"other\"]\n"),
        route("/this", "rules = [\"no-forbidden\"]\n"),
        route("/reviewer", "rules = [\"of-reviewer\"]\nagent = \"reviewer\"\n"),
        route("/main", "rules = [\"of-reviewer\"]\n"),
    ];
    let other = RULE.replace("\"forbidden\"", "\"somethingelse\"");
    let of_reviewer = RULE.replacen("+++\n", "+++\nagents = [\"reviewer\"]\n", 1);
    let cases =
        [("/all", true), ("/none", false), ("/other", false), ("/this", true), ("/reviewer", true), ("/main", false)];
    for (required, forced) in [("", false), ("[rules]\nrequired = [\"no-forbidden\"]\n", true)] {
        let place = place(&format!("{}{required}", routes.concat()));
        place.write(".tidegate/rules/other.md", &other);
        place.write(".tidegate/rules/of-reviewer.md", &of_reviewer);
        let running = Running::start(&place);
        for (path, stopped) in cases {
            // Required rules act on every route.
            let found = is_stopped(&running, &format!("{path}/v1/messages"), &[]);
            assert_eq!(found, stopped || forced, "{path} {required}");
        }
    }
}

#[test]
fn a_header_names_the_conversation() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway]\nconversation_header = \"X-Talk\"\n"));
    place.write(".tidegate/rules/no-forbidden.md", &RULE.replace("repeat = \"always\"\n", "repeat = \"once\"\n"));
    let running = Running::start(&place);
    let ask = |header: &str, body: &str| {
        let headers = [header, "x-claude-code-session-id: same"];
        running.ask("POST", "/v1/messages", &headers, body).body
    };
    // A request without tools is next to the conversation, and nothing of it is stored.
    let tools = json!([{"name": "write", "input_schema": {"type": "object"}}]);
    let of = |messages: Value| json!({"stream": true, "tools": tools, "messages": messages}).to_string();
    let first = ask("X-Talk: one", &of(json!([{"role": "user", "content": "x"}])));
    assert!(first.contains("fine."), "{first}");
    // The client's next request contains the answer as received, by which the conversation continues.
    let events = first.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let text: String = events.filter_map(|event| Some(event["delta"]["text"].as_str()?.to_owned())).collect();
    let next = of(json!([
        {"role": "user", "content": "x"}, {"role": "assistant", "content": text}, {"role": "user", "content": "y"},
    ]));
    for (header, word) in [("x-talk: one", "come."), ("x-talk: two", "fine.")] {
        let answer = ask(header, &next);
        assert!(answer.contains(word), "{header}: {answer}");
    }
}

#[test]
fn an_answer_that_is_one_body_has_a_limit() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nheld_mib = 1\n"));
    let running = Running::start(&place);
    let answer = running.ask("POST", "/v1/messages?do=large", &[], BODY);
    assert!(
        answer.body.contains("it is too large to be checked; `held_mib` under") && answer.body.len() < 10_000,
        "{answer:?}"
    );
    // An answer that is not checked has none.
    let answer = running.ask("POST", "/a?do=large", &[], BODY);
    assert!(answer.body.len() > 2 << 20, "{}", answer.body.len());
}

#[test]
fn without_tokens_all_requests_count_together() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nconcurrent = 1\n"));
    let running = Running::start(&place);
    let mut first = running.connect();
    let bytes = request("POST", "/a?do=endless", &[], "").replace("HOST", &running.address);
    first.write_all(bytes.as_bytes()).unwrap();
    first.read_exact(&mut [0; 100]).unwrap();
    let answer = running.ask("GET", "/b", &[], "");
    assert_eq!((answer.status, answer.code().as_str()), (429, "gateway_concurrent"), "{answer:?}");
}

#[test]
fn further_connections_wait() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nconnections = 1\n"));
    let running = Running::start(&place);
    let mut first = running.connect();
    let bytes = request("GET", "/a", &[], "").replace("HOST", &running.address);
    first.write_all(bytes.replace("Connection: close\r\n", "").as_bytes()).unwrap();
    first.read_exact(&mut [0; 12]).unwrap();
    let mut second = running.connect();
    second.write_all(bytes.as_bytes()).unwrap();
    second.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(second.read(&mut [0; 1]).is_err(), "it is answered next to the first");
    drop(first);
    second.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(Answer::of(&rest(&mut second)).status, 200);
}

/// A server that never accepts the connections in its queue.
#[cfg(target_os = "linux")]
#[test]
fn connecting_has_a_limit() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let server = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&server, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    listen(&server, 0).unwrap();
    let address: std::net::SocketAddr = getsockname(&server).unwrap().try_into().unwrap();
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let waiting: Vec<TcpStream> = (0..4).filter_map(connect).collect();
    assert!(waiting.len() < 4, "all connections are taken");
    let settings = format!(
        "[[gateway.route]]\npath = \"/\"\nupstream = \"http://{address}\"\n[gateway.limits]\nconnect_timeout_ms = 300\n"
    );
    let place = place(&settings);
    let running = Running::start(&place);
    let begun = Instant::now();
    let answer = running.ask("POST", "/v1/messages", &[], BODY);
    assert_eq!((answer.status, answer.code().as_str()), (502, "gateway_unreachable"), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn it_listens_where_the_file_says() {
    let model = Model::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = place(&plain(&model, &format!("[gateway]\nlisten = \"127.0.0.1:{port}\"\n")));
    let running = Running::of(place.command(&["gateway"]));
    assert_eq!(running.address, format!("127.0.0.1:{port}"));
    let output = place.command(&["gateway"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("cannot listen on 127.0.0.1:{port}")));
}
