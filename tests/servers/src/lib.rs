//! Independent servers that speak the wire formats of model vendors: installed when missing, started on a free port of
//! this machine, stopped with their owner.
//!
//! Nothing here is skipped: what cannot be installed or started is an error that says what is missing. A started server
//! lives as long as its value; it also ends when the process that started it ends in any other way.

#![forbid(unsafe_code)]

mod aimock;
mod apt;
mod certificates;
mod chromium;
mod http;
mod install;
mod judge;
mod llmock;
mod model;
mod oteltap;
mod peers;
mod process;
mod progress;
mod prometheus;
mod proxy;
mod redis;
mod redis_cluster;
mod scripted;
mod tmux;

pub use aimock::Aimock;
pub use certificates::Certificates;
pub use chromium::ensure_chromium;
pub use http::{Response, get, post};
pub use install::{
    ensure_ag_ui, ensure_book, ensure_clients, ensure_componentize_js, ensure_componentize_py, ensure_conventions_js,
    ensure_editors_js, ensure_editors_py, ensure_examples_js, ensure_fuzz, ensure_judge, ensure_model, ensure_node,
    ensure_otel, ensure_proxy, ensure_python, ensure_react_18, ensure_sdks_js, ensure_web_js, extism_library,
    has_clients, node_of, tombi,
};
pub use judge::Judge;
pub use llmock::Llmock;
pub use model::RealModel;
pub use oteltap::{OtelTap, Received};
pub use peers::{KEY, Peer};
pub use process::free_port;
pub use progress::{Step, say};
pub use prometheus::{Prometheus, ensure_prometheus, promtool_check};
pub use proxy::{BEHIND, ProxyServers};
pub use redis::{RedisServer, ensure_redis};
pub use redis_cluster::RedisCluster;
pub use scripted::Scripted;
pub use tmux::ensure_tmux;
