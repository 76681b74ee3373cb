//! Admission of clients, the credentials that a server gets, and their absence everywhere else.

use serde_json::Value;

use super::model::Model;
use super::running::{KEY, Running, TOKEN_A, TOKEN_B};
use super::{place, plain, team};
use crate::support::err;

const MESSAGES: &str = "/anthropic/v1/messages";

/// Target, headers, status, name of the error, and the credentials that the server got.
type Case<'c> = (&'c str, &'c [&'c str], u16, &'c str, &'c [&'c str]);

#[test]
fn only_who_has_a_token_is_admitted_and_no_server_gets_it() {
    let model = Model::start();
    let place = place(&team(&model, "[gateway]\naudit = \"audit.jsonl\"\n"));
    let running = Running::start(&place);
    let (bearer_a, key_a) = (format!("Authorization: Bearer {TOKEN_A}"), format!("X-Api-Key: {TOKEN_A}"));
    let (bearer_b, key_b) = (format!("authorization: bearer {TOKEN_B}"), format!("x-api-key: {TOKEN_B}"));
    let in_google = format!("X-Goog-Api-Key: {TOKEN_B}");
    let own = "Authorization: Bearer own-key";
    let (in_query, in_path) = (format!("{MESSAGES}?api_key={TOKEN_A}"), format!("/openai/{TOKEN_A}/models"));
    let of_operator = format!("x-api-key: {KEY}");
    let as_bearer = format!("authorization: Bearer {KEY}");
    let cases: &[Case<'_>] = &[
        (MESSAGES, &[], 401, "gateway_token", &[]),
        (MESSAGES, &[own], 401, "gateway_token", &[]),
        (MESSAGES, &[&format!("Authorization: Basic {TOKEN_A}")], 401, "gateway_token", &[]),
        (MESSAGES, &[&format!("Authorization: Bearer {}", &TOKEN_A[1..])], 401, "gateway_token", &[]),
        (MESSAGES, &[&format!("X-Token: {TOKEN_A}")], 401, "gateway_token", &[]),
        (&in_query, &[], 401, "gateway_token", &[]),
        (&in_query, &[&bearer_a], 400, "gateway_token_in_address", &[]),
        (&in_path, &[&bearer_a], 400, "gateway_token_in_address", &[]),
        ("/nowhere", &[], 401, "gateway_token", &[]),
        ("/nowhere", &[&bearer_a], 404, "gateway_route", &[]),
        ("/anthropicx/v1/messages", &[&bearer_a], 404, "gateway_route", &[]),
        (MESSAGES, &[&bearer_b], 403, "gateway_token_route", &[]),
        ("/openai/../anthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        ("/openai/%2e%2e/anthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        ("/openai/..%2fanthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        ("/openai\\..\\anthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        ("//anthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        ("/%61nthropic/v1/messages", &[&bearer_b], 404, "gateway_path", &[]),
        (MESSAGES, &[&bearer_a], 200, "", &[&of_operator]),
        (MESSAGES, &[&key_a], 200, "", &[&of_operator]),
        (MESSAGES, &[&key_a, own], 200, "", &[&of_operator]),
        ("/anthropic/v1/models", &[&bearer_a, "anthropic-version: 2023-06-01"], 200, "", &[&of_operator]),
        ("/anthropic/v1/models", &[&bearer_a], 200, "", &[&as_bearer]),
        ("/openai/models", &[&bearer_b], 200, "", &[]),
        ("/openai/v1/models", &[&key_b, own], 200, "", &["authorization: Bearer own-key"]),
        ("/openai/models", &[&bearer_b, own], 200, "", &["authorization: Bearer own-key"]),
        ("/openai/models", &[&bearer_b, "Connection: close, x-api-key"], 200, "", &[]),
        ("/openai/models", &[&bearer_b, &format!("api-key: {TOKEN_B}"), &in_google], 200, "", &[]),
        ("/openai/models", &[&in_google, "api-key: own-key"], 200, "", &["api-key: own-key"]),
        (MESSAGES, &[&bearer_a, "api-key: own-key", "x-goog-api-key: own-key"], 200, "", &[&of_operator]),
        ("/metrics", &[], 401, "gateway_token", &[]),
        ("/metrics", &[&bearer_b], 200, "", &[]),
        ("/healthz", &[], 200, "", &[]),
    ];
    for (target, headers, status, code, got) in cases {
        let before = model.seen().len();
        let method = if target.contains("messages") { "POST" } else { "GET" };
        let ask = || running.ask(method, target, headers, r#"{"messages": [{"role": "user", "content": "good"}]}"#);
        let mut answer = ask();
        while answer.status == 429 {
            // The place of the request before is free a moment after its end.
            answer = ask();
        }
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{target} {headers:?}: {answer:?}");
        let is_sent = *status == 200 && !["/metrics", "/healthz"].contains(target);
        assert_eq!(model.seen().len() - before, usize::from(is_sent), "{target} {headers:?}");
        let seen = model.seen();
        let credentials = seen[before..].iter().flat_map(|(head, _)| head.lines()).filter(|line| {
            let name = line.split(':').next().unwrap_or_default().to_lowercase();
            ["authorization", "x-api-key", "api-key", "x-goog-api-key"].contains(&name.as_str())
        });
        assert_eq!(credentials.collect::<Vec<_>>(), got.to_vec(), "{target} {headers:?}");
    }
    // A rule stops an answer: one line in the audit file, and numbers.
    let answer = running.ask("POST", MESSAGES, &[&bearer_a], r#"{"messages": [{"role": "user", "content": "x"}]}"#);
    assert!(answer.body.contains("fine.") && !answer.body.contains("forbidden"), "{answer:?}");
    let audit = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    let line: Value = serde_json::from_str(audit.trim_end()).unwrap();
    let expected = ["route", "client", "action", "stream", "attempt", "rules"].map(|key| line[key].to_string());
    assert_eq!(
        expected,
        ["\"/anthropic\"", "\"a\"", "\"interrupt\"", "\"text\"", "1", "[\"no-forbidden\"]"],
        "{audit}"
    );
    let metrics = running.ask("GET", "/metrics", &[&bearer_a], "").body;
    for line in [
        "gateway_request_total{route=\"/anthropic\",outcome=\"checked\"} 5",
        "gateway_request_total{route=\"/anthropic\",outcome=\"not_admitted\"} 7",
        "gateway_request_total{route=\"/openai\",outcome=\"relayed\"} 6",
        "gateway_retry_total{route=\"/anthropic\"} 1",
        "rule_fired_total{rule=\"no-forbidden\",action=\"interrupt\"} 1",
        "gateway_first_byte_added_ms_count{route=\"/anthropic\"} ",
        "gateway_frame_added_ms_count{route=\"/anthropic\"} ",
        "gateway_held_bytes 0",
        "gateway_connections 1",
        "gateway_token_rejected_total ",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    // Nothing of it is in any output.
    let (seen, log) = (format!("{:?}", model.seen()), running.log());
    for (name, text) in [("servers", &seen), ("the log", &log), ("metrics", &metrics), ("the audit file", &audit)] {
        assert!(!text.contains(TOKEN_A) && !text.contains(TOKEN_B), "a token is in what {name} got");
    }
    assert!(log.contains("outcome=\"checked\"") && !log.contains(KEY), "{log}");
    assert!(!metrics.contains(KEY) && !audit.contains(KEY));
}

/// Settings, variables, arguments, and the expected message.
type Wrong<'c> = (String, &'c [(&'c str, &'c str)], &'c [&'c str], &'c str);

#[test]
fn what_is_wrong_is_said_before_it_listens() {
    let model = Model::start();
    let token = "[[gateway.token]]\nname = \"a\"\nvalue = \"env:A_TOKEN\"\n";
    let of = |more: &str| format!("{}{more}", plain(&model, ""));
    let cases: &[Wrong<'_>] = &[
        (String::new(), &[], &[], "the gateway has no route"),
        (of(token), &[], &[], "the variable A_TOKEN, which contains the token `a`, is not set"),
        (of(token), &[("A_TOKEN", "short")], &[], "the variable A_TOKEN contains no token for `a`"),
        (
            of(&format!("{token}{}", token.replace("A_TOKEN", "B_TOKEN").replace("\"a\"", "\"b\""))),
            &[("A_TOKEN", TOKEN_A), ("B_TOKEN", TOKEN_A)],
            &[],
            "the tokens `a` and `b` have the same value",
        ),
        (of("rules = [\"no-forbiden\"]\n"), &[], &[], "did you mean `no-forbidden`?"),
        (of("ca = \"gone.pem\"\n"), &[], &[], "gone.pem, which cannot be read"),
        (of("[gateway]\naudit = \"gone/audit.jsonl\"\n"), &[], &[], "cannot write the audit file"),
        (of(""), &[], &["--listen", "0.0.0.0:0"], "a gateway listens on addresses of this machine alone"),
        (of("[rules]\nrequired = [\"gone\"]\n"), &[], &[], "`gone`"),
    ];
    for (settings, variables, arguments, said) in cases {
        let place = place(settings);
        let mut command = place.command(&[&["gateway"], *arguments].concat());
        command.env_remove("A_TOKEN").envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{settings}: {text}");
        assert!(text.contains(said) && !text.contains(TOKEN_A), "{said} is not in\n{text}");
    }
}

/// A configuration with a gateway only has no provider, which is fine.
#[test]
fn the_doctor_wants_no_model_for_a_gateway() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let output = place.run(&["doctor"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ok   route /") && !said.contains("provider"), "{said}");
}

#[test]
fn a_route_has_plugins_that_are_there() {
    let model = Model::start();
    let place = place(&plain(&model, "plugins = [\"mask-secret\"]\n"));
    let said = "the route `/` names the plugin `mask-secret`, which does not exist";
    let output = place.run(&["gateway", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains(said) && err(&output).contains("tidegate.toml:"), "{}", err(&output));
    let output = place.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains(said), "{output:?}");
}

#[test]
fn certificates_that_are_not_there_are_shown_where_they_are_named() {
    let model = Model::start();
    for (file, why) in [("nope.pem", "which cannot be read"), ("empty.pem", "which contains no certificate")] {
        let place = place(&plain(&model, &format!("ca = \"{file}\"\n")));
        place.write("empty.pem", "");
        let output = place.run(&["gateway", "--listen", "127.0.0.1:0"]);
        let told = err(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why) && told.contains("tidegate.toml:2:"), "{told}");
    }
}

/// The doctor sends a small request through each route, and reports what it cannot check.
#[test]
fn the_doctor_asks_each_server() {
    let model = Model::start();
    let more = "[[gateway.route]]\npath = \"/gone\"\nupstream = \"http://127.0.0.1:1\"\n\
                [[gateway.route]]\npath = \"/none\"\nupstream = \"http://127.0.0.1:1\"\n";
    let settings = team(&model, more).replacen(
        "name = \"a\"",
        "name = \"a\"\nroutes = [\"/anthropic\", \"/openai\", \"/gone\"]",
        1,
    );
    let place = place(&settings);
    let mut command = place.command(&["doctor", "--json"]);
    command.env("A_TOKEN", TOKEN_A).env("B_TOKEN", TOKEN_B).env("A_KEY", KEY);
    let output = command.output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = |what: &str| {
        let check = json["checks"].as_array().unwrap().iter().find(|check| check["what"] == what).unwrap();
        format!(
            "{}: {}",
            check["health"].as_str().unwrap(),
            check["detail"].as_str().unwrap().replace(&model.url, "URL")
        )
    };
    assert_eq!(found("route /anthropic"), "good: URL: it answers and takes the key in A_KEY");
    assert_eq!(found("route /openai"), "good: URL/v1: it answers (status 200); the keys of clients cannot be checked");
    assert!(
        found("route /gone").starts_with("bad: http://127.0.0.1:1: tidegate: cannot reach http://127.0.0.1:1"),
        "{json}"
    );
    assert_eq!(found("route /none"), "warning: http://127.0.0.1:1: no token is for this route: nobody can use it");
    let text = json.to_string();
    assert!(!text.contains(TOKEN_A) && !text.contains(KEY));
    // Without its variable no request is sent.
    let output = place.command(&["doctor", "--json"]).env_remove("A_KEY").output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("the variable A_KEY, which contains the key of the route")
    );
}
