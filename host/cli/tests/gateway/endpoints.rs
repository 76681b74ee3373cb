//! Endpoints without guarded answers, where a plugin guards requests.

use serde_json::json;

use super::model::Model;
use super::running::{Answer, Running};
use super::{place, plain};

#[test]
fn a_compaction_is_masked_and_what_cannot_be_masked_is_not_sent() {
    let (model, token) = (Model::start(), crate::masked::token());
    let plugin = crate::masked::plugin().display().to_string();
    let place = place(&plain(&model, &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n")));
    let running = Running::start(&place);
    let text = format!("The token is {token}.");
    let body = json!({"model": "m", "input": [{"role": "user", "content": text}]}).to_string();
    let answer = running.ask("POST", "/v1/responses/compact", &[], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = model.seen();
    assert!(seen[0].1.contains("TIDEGATE_SECRET_GITHUB_TOKEN_") && !seen[0].1.contains(&token), "{seen:?}");
    let body = json!({"model": "m", "prompt": text, "input": text, "requests": [text]}).to_string();
    for path in UNREAD {
        let answer = running.ask("POST", path, &[], &body);
        assert_eq!((answer.status, answer.code().as_str()), (400, "gateway_unread"), "{path} {answer:?}");
        let said = ["the plugin `mask-secrets` guards requests", "a `[[gateway.route]]` for this path whose `plugins`"];
        assert!(said.iter().all(|words| answer.body.contains(words)), "{path} {answer:?}");
        assert!(answer.head.contains("x-should-retry: false"), "{path} {answer:?}");
    }
    for method in ["PUT", "PATCH", "DELETE", "GET"] {
        assert_eq!(running.ask(method, "/api/chat", &[], &body).code(), "gateway_unread", "{method}");
    }
    assert!(model.seen().iter().all(|(head, body)| !format!("{head}{body}").contains(&token)), "{:?}", model.seen());
}

/// Endpoints whose requests the gateway does not read, of several vendors.
const UNREAD: [&str; 20] = [
    "/v1/completions",
    "/v1/messages/batches",
    "/v1/embeddings",
    "//v1/%63ompletions",
    "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
    "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
    "/v1beta/models/gemini:generateContent",
    "/v1beta/models/gemini:streamGenerateContent?alt=sse",
    "/model/m/converse",
    "/model/m/converse-stream",
    "/model/m/invoke",
    "/model/m/invoke-with-response-stream",
    "/model/files/converse",
    "/api/chat",
    "/api/generate",
    "/completion",
    "/infill",
    "/v1/responses/resp_1/unknown",
    "/v1/vector_stores/vs_1/files",
    "/",
];

/// Requests that agents and SDKs send in addition to those for answers.
#[test]
fn what_no_model_reads_passes_a_plugin_that_guards() {
    let model = Model::start();
    let plugin = crate::masked::plugin().display().to_string();
    let place = place(&plain(&model, &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n")));
    let running = Running::start(&place);
    let requests = [
        ("GET", "/v1/models", ""),
        ("HEAD", "/", ""),
        ("GET", "/v1/messages/batches", ""),
        ("GET", "/v1/responses/resp_1", ""),
        ("DELETE", "/v1/responses/resp_1", ""),
        ("POST", "/v1/responses/resp_1/cancel", ""),
        ("POST", "/v1/messages/batches/b_1/cancel", "{}"),
        ("POST", "/v1/messages/count_tokens", "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi.\"}]}"),
        ("POST", "/v1/responses/input_tokens", "{\"input\": \"Hi.\"}"),
        ("POST", "/v1/files", "a file"),
        ("POST", "/v1/uploads/u_1/complete", "{\"part_ids\": [\"p_1\"]}"),
        ("POST", "/api/event_logging/v2/batch", "{\"events\": []}"),
    ];
    for (number, (method, path, body)) in requests.into_iter().enumerate() {
        let answer = running.ask(method, path, &[], body);
        assert_eq!(answer.status, 200, "{method} {path} {answer:?}");
        assert_eq!(model.seen()[number].1, body, "{method} {path}");
    }
}

/// A route whose `plugins` do not name the plugin is the way around it.
#[test]
fn a_route_without_the_plugin_passes() {
    let model = Model::start();
    let plugin = crate::masked::plugin().display().to_string();
    let route = format!(
        "[[gateway.route]]\npath = \"/v1/embeddings\"\nupstream = \"{}/v1/embeddings\"\nplugins = []\n",
        model.url
    );
    let place = place(&plain(&model, &format!("{route}[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n")));
    let running = Running::start(&place);
    assert_eq!(running.ask("POST", "/v1/embeddings", &[], "{\"input\": 1}").status, 200);
    assert_eq!(running.ask("POST", "/v1/completions", &[], "{\"input\": 1}").code(), "gateway_unread");
}

/// Without such a plugin they pass unchanged, and the log names those that a model can have answered.
#[test]
fn what_nothing_guards_passes() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    for path in ["/v1/completions", "/v1/messages/batches", "/v1/responses/compact", "/api/chat", "/v1/files"] {
        assert_eq!(running.ask("POST", path, &[], "{\"a\" : 1}").status, 200);
    }
    assert!(model.seen().iter().all(|(_, body)| body == "{\"a\" : 1}"), "{:?}", model.seen());
    assert!(running.log_has(0, "a request passed unchecked"), "{}", running.log());
    let log = running.log();
    let named = |path: &str| log.lines().any(|line| line.contains("passed unchecked") && line.contains(path));
    assert!(named("/v1/completions") && named("/api/chat") && !named("/v1/files"), "{log}");
}

/// Plugins get texts, which such a body does not have. Rules watch the answer alone.
#[test]
fn a_body_that_is_not_utf_8_is_refused_where_plugins_act() {
    let model = Model::start();
    let plugin = crate::masked::plugin().display().to_string();
    let guarded = place(&plain(&model, &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n")));
    for (place, is_refused) in [(guarded, true), (place(&plain(&model, "")), false)] {
        let running = Running::start(&place);
        let body = b"{\"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}";
        let head = "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Length: ";
        let request = [format!("{head}{}\r\n\r\n", body.len()).as_bytes(), body].concat();
        let (before, answer) = (model.seen().len(), Answer::of(&running.raw(&request)));
        if is_refused {
            assert_eq!((answer.status, answer.code().as_str()), (400, "gateway_request"), "{answer:?}");
            assert!(answer.body.contains("invalid_request_error") && answer.body.contains("UTF-8"), "{answer:?}");
        }
        assert_eq!(model.seen().len() > before, !is_refused, "{answer:?}");
    }
}
