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
    for path in ["/v1/completions", "/v1/messages/batches", "/v1/embeddings", "//v1/%63ompletions"] {
        let answer = running.ask("POST", path, &[], &body);
        assert_eq!((answer.status, answer.code().as_str()), (400, "gateway_blocked"), "{path} {answer:?}");
        assert!(answer.body.contains("`mask-secrets` cannot check requests of this endpoint"), "{answer:?}");
    }
    assert_eq!(running.ask("GET", "/v1/messages/batches", &[], "").status, 200);
    assert!(model.seen().iter().all(|(head, body)| !format!("{head}{body}").contains(&token)), "{:?}", model.seen());
}

/// Without such a plugin they pass unchanged.
#[test]
fn what_nothing_guards_passes() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    for path in ["/v1/completions", "/v1/messages/batches", "/v1/responses/compact"] {
        assert_eq!(running.ask("POST", path, &[], "{\"a\" : 1}").status, 200);
    }
    assert!(model.seen().iter().all(|(_, body)| body == "{\"a\" : 1}"), "{:?}", model.seen());
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
