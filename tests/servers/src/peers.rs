//! Gateways that users would choose instead of ours, and a plain proxy, for the benches: each in front of one model.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::apt::{check_with, ensure_starts};
use crate::install::{ensure_litellm, ensure_portkey, folder};
use crate::process::Server;

/// The key that clients send. A gateway may refuse one that is easy to guess.
pub const KEY: &str = "sk-2f6d8c0b5e7a4193a1c4d9e8f7b6a5d4c3b2a190";

/// A running gateway. It ends with its value.
#[derive(Debug)]
pub struct Peer {
    _server: Server,
    /// What it is called.
    pub name: &'static str,
    /// Where it listens, for requests to `/v1/chat/completions`.
    pub address: SocketAddr,
    /// Headers that it wants in a request next to `Authorization: Bearer KEY`, each with its line end.
    pub headers: String,
}

impl Peer {
    /// Returns all of them, each with its name; installed first where they are missing, and each may use two processors.
    pub fn all(model: SocketAddr) -> [(&'static str, Result<Self>); 3] {
        [("nginx", nginx(model)), ("litellm", litellm(model)), ("portkey", portkey(model))]
    }

    fn new(name: &'static str, server: Server, headers: String) -> Result<Self> {
        let address = server.base_url().trim_start_matches("http://").parse().context("no address")?;
        Ok(Self { _server: server, name, address, headers })
    }
}

/// Returns a folder for the files of a peer.
fn place(name: &str) -> Result<std::path::PathBuf> {
    let place = folder(name);
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

fn write(file: &Path, text: &str) -> Result<String> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file.display().to_string())
}

/// Returns the plain proxy: two workers, nothing buffered, connections to the model kept.
fn nginx(model: SocketAddr) -> Result<Peer> {
    ensure_starts("nginx-light", || check_with("nginx-light", "nginx", "-v"))?;
    let (place, port) = (place("nginx")?, crate::free_port()?);
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {}/{name};", place.display()))
        .join("\n");
    let text = format!(
        "daemon off;\nworker_processes 2;\npid {place}/pid;\nerror_log stderr;\nworker_rlimit_nofile 8192;\n\
         events {{ worker_connections 8000; }}\nhttp {{\naccess_log off;\nkeepalive_requests 100000000;\n{temporary}\n\
         upstream model {{ server {model}; keepalive 2048; keepalive_requests 100000000; }}\n\
         server {{\nlisten 127.0.0.1:{port};\nlocation = /health {{ return 200; }}\n\
         location / {{ proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }}\n}}\n}}\n",
        place = place.display(),
    );
    let file = write(&place.join("nginx.conf"), &text)?;
    let prefix = place.display().to_string();
    let server = Server::start_on(port, "nginx", &folder("logs"), "/health", &["nginx", "-p", &prefix, "-c", &file])?;
    Peer::new("nginx", server, String::new())
}

fn litellm(model: SocketAddr) -> Result<Peer> {
    let program = ensure_litellm()?.join("bin/litellm").display().to_string();
    let text = format!(
        "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_base: http://{model}/v1\n      api_key: key\n\
         litellm_settings:\n  telemetry: false\ngeneral_settings:\n  master_key: {KEY}\n"
    );
    let file = write(&place("litellm-place")?.join("config.yaml"), &text)?;
    let port = crate::free_port()?;
    let on = port.to_string();
    let command = ["env", "LITELLM_LOCAL_MODEL_COST_MAP=True", &program, "--config", &file, "--host", "127.0.0.1"];
    let command = [&command[..], &["--port", &on, "--num_workers", "2", "--run_gunicorn"]].concat();
    let server = Server::start_on(port, "litellm", &folder("logs"), "/health/liveliness", &command)?;
    Peer::new("litellm", server, String::new())
}

fn portkey(model: SocketAddr) -> Result<Peer> {
    let program = ensure_portkey()?.join("node_modules/@portkey-ai/gateway/build/start-server.js");
    let (program, port) = (program.display().to_string(), crate::free_port()?);
    let on = format!("--port={port}");
    let command = ["env", "TRUSTED_CUSTOM_HOSTS=127.0.0.1,localhost", "node", &program, &on, "--headless"];
    let server = Server::start_on(port, "portkey", &folder("logs"), "/", &command)?;
    let headers = format!("x-portkey-provider: openai\r\nx-portkey-custom-host: http://{model}/v1\r\n");
    Peer::new("portkey", server, headers)
}
