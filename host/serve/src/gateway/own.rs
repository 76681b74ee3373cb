//! What a gateway answers itself: `/healthz`, for whoever can connect, and `/metrics`, for whoever is admitted.

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

/// Whether it works. It has no names of routes and clients.
pub(super) fn health(head: &Parts, shared: &Shared) -> Option<Response<Body>> {
    if !is_for(head, "/healthz") {
        return None;
    }
    let (status, word) = match shared.closing.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
        false => (StatusCode::OK, "ok"),
    };
    // Why is in the log: whoever can connect reads this.
    let audit = shared.site().audit.as_ref().and_then(super::Audit::failure);
    let has_failed = [shared.reload_failure().is_some(), audit.is_some()];
    let word = if status == StatusCode::OK && has_failed.contains(&true) { "degraded" } else { word };
    let [reload, audit] = has_failed.map(|has_failed| if has_failed { "failed" } else { "ok" });
    let body = json!({"status": word, "reload": reload, "audit": audit});
    Some(answered(status, "application/json", format!("{body}\n")))
}

/// The numbers, for Prometheus.
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
