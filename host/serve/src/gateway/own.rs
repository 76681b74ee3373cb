//! Requests that a gateway answers itself: `/healthz`, for everyone who can connect, and `/metrics`, for admitted clients.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::json;

use super::Shared;
use super::answer::Body;
use super::refusal::Refusal;
use super::site::Open;

/// Answers `/healthz`: whether the gateway works. The body has no names of routes or clients.
pub(super) fn health(head: &Parts, shared: &Arc<Shared>) -> Option<Response<Body>> {
    if !is_for(head, "/healthz") {
        return None;
    }
    // The result of a check, which can take a while, is in the next answer.
    drop(shared.check());
    let (status, word) = match shared.closing.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
        false => (StatusCode::OK, "ok"),
    };
    // The cause is in the log only: everyone who can connect reads this.
    let audit = shared.site().audit.as_ref().and_then(super::Audit::failure);
    let has_failed = [shared.reload_failure().is_some(), audit.is_some(), shared.is_store_away()];
    let certificate = shared.tls.as_ref().map_or("ok", |tls| tls.state().word());
    let is_degraded = has_failed.contains(&true) || !["ok", "expires_soon"].contains(&certificate);
    let word = if status == StatusCode::OK && is_degraded { "degraded" } else { word };
    let [reload, audit, store] = has_failed.map(|has_failed| if has_failed { "failed" } else { "ok" });
    let body = json!({"status": word, "reload": reload, "audit": audit, "store": store, "certificate": certificate});
    Some(answered(status, "application/json", format!("{body}\n")))
}

/// Answers `/metrics`, in the format of Prometheus.
pub(super) fn metrics(head: &Parts, shared: &Shared, site: &Open) -> Option<Response<Body>> {
    if !is_for(head, "/metrics") {
        return None;
    }
    if let Err(refusal) = site.access.check(&head.headers) {
        shared.metrics.gateway_rejected();
        return Some(Refusal::response(&refusal));
    }
    shared.count_conversations();
    Some(answered(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", shared.metrics.prometheus()))
}

fn is_for(head: &Parts, path: &str) -> bool {
    head.uri.path() == path && matches!(head.method, Method::GET | Method::HEAD)
}

fn answered(status: StatusCode, media_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
