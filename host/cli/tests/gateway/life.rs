//! Reload, shutdown and TLS.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_servers::{BEHIND, ProxyServers};

use super::model::Model;
use super::running::{Answer, Running, request, rest};
use super::{RULE, place, plain};
use crate::support::age::age;
use crate::support::{Place, err};

const BODY: &str = r#"{"messages": [{"role": "user", "content": "x"}]}"#;

/// Sends requests until the answer contains these words.
fn until(running: &Running, target: &str, words: &str) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = running.ask("POST", target, &[], BODY);
        if answer.body.contains(words) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{words} is not in {answer:?}: {}", running.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn health(running: &Running) -> Value {
    serde_json::from_str(&running.ask("GET", "/healthz", &[], "").body).unwrap()
}

#[test]
fn changed_files_count_and_wrong_ones_do_not() {
    let (model, other) = (Model::start(), Model::start());
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    let answer = until(&running, "/v1/messages", "message_stop");
    assert!(answer.body.contains("fine.") && !answer.body.contains("forbidden"), "{answer:?}");
    // Another rule.
    place.write(".tidegate/rules/no-forbidden.md", &RULE.replace("\"forbidden\"", "\"These\""));
    until(&running, "/v1/messages", "come.");
    // Invalid settings: the previous ones remain in force, and the failure is reported.
    place.write("tidegate.toml", &plain(&other, "[gateway.limits]\nbody_mb = 1\n"));
    // Asking for its health suffices.
    let begun = Instant::now();
    while health(&running)["status"] == "ok" {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", running.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    let wrong = health(&running);
    until(&running, "/v1/messages", "come.");
    // The reason is in the log only: everyone who can connect reads the other.
    assert_eq!(
        wrong,
        serde_json::json!({"status": "degraded", "reload": "failed", "audit": "ok", "store": "ok", "certificate": "ok"})
    );
    assert!(running.log_has(0, "unknown key `body_mb`"), "{}", running.log());
    assert_eq!(running.log().matches("cannot be used").count(), 1, "{}", running.log());
    assert_eq!(other.seen().len(), 0);
    // Another server, with valid settings.
    place.write("tidegate.toml", &plain(&other, "[gateway.limits]\nbody_mib = 1\n"));
    std::thread::sleep(Duration::from_millis(300));
    until(&running, "/v1/messages", "come.");
    assert!(!other.seen().is_empty());
    assert_eq!(
        health(&running),
        serde_json::json!({"status": "ok", "reload": "ok", "audit": "ok", "store": "ok", "certificate": "ok"})
    );
    // A signal reloads everything, including unchanged files.
    let read = || running.log().matches("has read its settings again").count();
    let before = read();
    running.signal("HUP");
    let begun = Instant::now();
    while read() == before {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", running.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The reload takes longer than the client that has begun it stays connected.
#[test]
fn a_reload_is_not_lost_with_the_request_that_began_it() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    for number in 0..200 {
        let rule = RULE.replace("forbidden", &format!("absent{number} +word"));
        place.write(&format!(".tidegate/rules/absent-{number}.md"), &rule);
    }
    let running = Running::start(&place);
    until(&running, "/v1/messages", "fine.");
    for (word, expected) in [("These", "come."), ("forbidden", "fine.")].repeat(3) {
        place.write(".tidegate/rules/no-forbidden.md", &RULE.replace("forbidden", word));
        std::thread::sleep(Duration::from_millis(300));
        let mut client = running.connect();
        client.write_all(request("GET", "/a", &[], "").replace("HOST", &running.address).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        drop(client);
        std::thread::sleep(Duration::from_millis(300));
        let answer = running.ask("POST", "/v1/messages", &[], BODY);
        assert!(answer.body.contains(expected), "{word}: {answer:?} {}", running.log());
    }
}

/// Conversations under previous rules are closed when their last answer has ended.
#[test]
fn a_reload_closes_the_conversations_before_it() {
    let model = Model::start();
    let place = place(&plain(&model, "[transcript]\nenabled = true\nfolder = \"sessions\"\n"));
    let running = Running::start(&place);
    until(&running, "/v1/messages", "fine.");
    place.write(".tidegate/rules/no-forbidden.md", &RULE.replace("\"forbidden\"", "\"These\""));
    until(&running, "/v1/messages", "come.");
    let is_closed = || {
        let mut found = std::process::Command::new("grep");
        found.args(["-rq", "thread_completed"]).arg(place.path("sessions"));
        found.status().unwrap().success()
    };
    let begun = Instant::now();
    while !is_closed() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", running.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A typing error does not disable a guard.
#[test]
fn a_rule_in_force_stays_where_its_file_is_broken() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    until(&running, "/v1/messages", "fine.");
    let file = ".tidegate/rules/no-forbidden.md";
    for (broken, why) in [
        (RULE.replace("forbidden", "forb(idden"), "unclosed group"),
        (RULE.replace("condition", "condtion"), "condtion"),
        ("+++\n".to_owned(), "no-forbidden"),
    ] {
        place.write(file, &broken);
        std::thread::sleep(Duration::from_millis(300));
        let answer = running.ask("POST", "/v1/messages", &[], BODY);
        assert!(answer.body.contains("fine.") && !answer.body.contains("come."), "{broken}: {answer:?}");
        let health = health(&running);
        assert_eq!(health["status"], "degraded", "{broken}: {health}");
        assert!(running.log_has(0, why), "{broken}: {}", running.log());
        assert!(!running.log().contains("not in force"), "{broken}: {}", running.log());
    }
    // Removing a rule is intended.
    std::fs::remove_file(place.path(file)).unwrap();
    until(&running, "/v1/messages", "come.");
    assert_eq!(health(&running)["status"], "ok");
}

/// A plugin stays in its previous version if its new component is invalid.
#[test]
fn a_plugin_stays_where_its_component_is_broken() {
    let model = Model::start();
    let place = place(&plain(&model, "[[plugin]]\npath = \"mask\"\ngrants = [\"state\"]\n"));
    let built = crate::masked::plugin();
    std::fs::create_dir(place.path("mask")).unwrap();
    for file in ["plugin.toml", "component.wasm"] {
        std::fs::copy(built.join(file), place.path("mask").join(file)).unwrap();
    }
    let running = Running::start(&place);
    until(&running, "/v1/messages", "fine.");
    place.write("mask/component.wasm", "broken");
    running.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    until(&running, "/v1/messages", "fine.");
    let wrong = health(&running);
    assert_eq!(wrong["status"], "degraded", "{wrong}: {}", running.log());
}

/// Data in memory is kept only with its route and its store.
#[test]
fn a_reload_reports_the_conversations_that_it_forgets() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    until(&running, "/v1/messages", "fine.");
    place.write("tidegate.toml", &plain(&model, "[state]\nbackend = \"disk\"\nfolder = \"state\"\n"));
    std::thread::sleep(Duration::from_millis(300));
    until(&running, "/v1/messages", "fine.");
    assert!(running.log_has(0, "forgotten, because `[state]` has changed"), "{}", running.log());
    place.write("tidegate.toml", &plain(&model, ""));
    std::thread::sleep(Duration::from_millis(300));
    until(&running, "/v1/messages", "fine.");
    place.write("tidegate.toml", &plain(&model, "").replace("path = \"/\"", "path = \"/other\""));
    std::thread::sleep(Duration::from_millis(300));
    until(&running, "/other/v1/messages", "fine.");
    assert!(running.log_has(0, "forgotten, because the route is gone"), "{}", running.log());
    assert_eq!(running.log().matches("forgotten").count(), 2, "{}", running.log());
}

/// A gateway does not start without a rule that a route names.
#[test]
fn a_route_says_why_its_rule_is_not_there() {
    let model = Model::start();
    let place = place(&plain(&model, "rules = [\"no-forbidden\"]\n"));
    place.write(".tidegate/rules/no-forbidden.md", &RULE.replace("forbidden", "forb(idden"));
    let output = place.run(&["gateway", "--listen", "127.0.0.1:0"]);
    let told = err(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("unclosed group") && !told.contains("does not exist"), "{told}");
}

#[test]
fn old_conversations_are_removed() {
    let model = Model::start();
    let place = place(&plain(&model, "[transcript]\nenabled = true\nkeep_days = 1\n"));
    let sessions = || -> Vec<String> {
        let list = place.json(&["session", "list", "--json"]);
        let ids = list["sessions"].as_array().unwrap().iter();
        ids.map(|one| one["session"].as_str().unwrap().to_owned()).collect()
    };
    let mut running = Running::start(&place);
    until(&running, "/v1/messages", "message_stop");
    let metrics = running.ask("GET", "/metrics", &[], "").body;
    assert!(metrics.contains("\ngateway_conversations 1\n"), "{metrics}");
    running.signal("TERM");
    assert!(running.ended().success(), "{}", running.log());
    assert_eq!(sessions().len(), 1);
    age(&place.path("state"));
    let running = Running::start(&place);
    let begun = Instant::now();
    while !running.log().contains("removed 1 session of this workspace") {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", running.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(sessions(), Vec::<String>::new());
}

/// `tidegate guard` removes old conversations as well, at its end.
#[test]
fn old_conversations_of_a_guard_are_removed() {
    let model = Model::start();
    let place = place("[transcript]\nenabled = true\nkeep_days = 1\n");
    let guard = |command: &str| {
        let output = place.run(&["guard", "--anthropic-url", &model.url, "--", "sh", "-c", command]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        err(&output)
    };
    let told = guard(&format!("curl -sS --data '{BODY}' \"$ANTHROPIC_BASE_URL/v1/messages\" >/dev/null"));
    assert!(told.contains("1 answer checked") && !told.contains("conversation"), "{told}");
    assert_eq!(place.json(&["session", "list", "--json"])["sessions"].as_array().unwrap().len(), 1);
    age(&place.path("state"));
    assert!(guard("true").contains("removed 1 session of this workspace"));
    assert_eq!(place.json(&["session", "list", "--json"])["sessions"].as_array().unwrap().len(), 0);
}

/// `tidegate guard` reports data that is not stored.
#[test]
fn a_guard_without_its_store_reports_what_is_lost() {
    let model = Model::start();
    let mut redis = tidegate_servers::RedisServer::start().unwrap();
    let place = place("[state]\nbackend = \"redis\"\n[gateway]\nwithout_store = \"local\"\n");
    let mut command = place.command(&["guard", "--anthropic-url", &model.url, "--", "sh", "-c"]);
    command.arg(format!("curl -sS --data '{BODY}' \"$ANTHROPIC_BASE_URL/v1/messages\" >/dev/null"));
    command.env("TIDEGATE_REDIS_URL", redis.url());
    redis.kill();
    let told = err(&command.output().unwrap());
    assert!(told.contains("the data of 1 conversation is not stored, because the state store is away"), "{told}");
}

/// The program reopens a file that was moved away.
#[test]
fn the_audit_file_is_opened_again() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway]\naudit = \"audit.jsonl\"\n"));
    let running = Running::start(&place);
    until(&running, "/v1/messages", "message_stop");
    std::fs::rename(place.path("audit.jsonl"), place.path("old.jsonl")).unwrap();
    running.signal("HUP");
    std::thread::sleep(Duration::from_millis(100));
    until(&running, "/v1/messages", "message_stop");
    let lines = |name: &str| std::fs::read_to_string(place.path(name)).unwrap().lines().count();
    assert_eq!((lines("old.jsonl"), lines("audit.jsonl")), (1, 1));
}

#[test]
fn answers_under_way_end_and_nothing_else_begins() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let mut running = Running::start(&place);
    let mut stream = running.connect();
    let bytes = request("POST", "/v1/messages?do=slow", &[], BODY).replace("HOST", &running.address);
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 200]).unwrap();
    running.signal("TERM");
    let answer = rest(&mut stream);
    assert!(answer.contains("message_stop") && answer.ends_with("0\r\n\r\n"), "{answer}");
    assert_eq!(running.ended().code(), Some(0), "{}", running.log());
    assert!(std::net::TcpStream::connect(&running.address).is_err());
}

#[test]
fn the_end_has_a_limit_and_a_second_signal_has_none() {
    let model = Model::start();
    for (drain, signals, most) in [("drain_ms = 300\n", 1, 5), ("drain_ms = 600000\n", 2, 5)] {
        let place = place(&plain(&model, &format!("[gateway.limits]\n{drain}")));
        let mut running = Running::start(&place);
        let mut stream = running.connect();
        let bytes = request("POST", "/a?do=endless", &[], BODY).replace("HOST", &running.address);
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.read_exact(&mut [0; 200]).unwrap();
        let begun = Instant::now();
        for _ in 0..signals {
            running.signal("TERM");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(running.ended().code(), Some(0), "{}", running.log());
        assert!(begun.elapsed() < Duration::from_secs(most), "{:?}", begun.elapsed());
        let said = if signals == 1 { "did not end within `drain_ms`" } else { "ended at once" };
        assert!(running.log_has(0, said), "{}", running.log());
    }
}

/// A server whose certificate is only in the operator's file, behind a proxy that is only in the environment.
#[test]
fn certificates_are_checked_against_the_file_of_the_route() {
    let servers = ProxyServers::start().unwrap();
    let port = |part: &str| servers.port(part).unwrap();
    let authority = servers.authority().unwrap();
    let proxy = format!("http://127.0.0.1:{}", port("proxy"));
    let tls = format!("https://{BEHIND}:{}", port("tls"));
    for (ca, variables, said) in [
        (format!("ca = {authority:?}\n"), vec![("HTTPS_PROXY", proxy.as_str())], "Reached."),
        (String::new(), vec![("HTTPS_PROXY", proxy.as_str()), ("SSL_CERT_FILE", authority)], "Reached."),
        (String::new(), vec![("HTTPS_PROXY", proxy.as_str())], "gateway_unreachable"),
        (
            format!("ca = {authority:?}\n"),
            vec![("HTTPS_PROXY", proxy.as_str()), ("NO_PROXY", BEHIND)],
            "gateway_unreachable",
        ),
    ] {
        let place: Place = place(&format!("[[gateway.route]]\npath = \"/\"\nupstream = \"{tls}\"\n{ca}"));
        let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"] {
            command.env_remove(name).env_remove(name.to_ascii_uppercase());
        }
        command.envs(variables);
        let running = Running::of(command);
        let answer = running.ask(
            "POST",
            "/v1/messages",
            &["x-api-key: k", "anthropic-version: 2023-06-01"],
            r#"{"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "x"}]}"#,
        );
        assert!(answer.body.contains(said), "{ca}: {answer:?} {}", running.log());
    }
}
