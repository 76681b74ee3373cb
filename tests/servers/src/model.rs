//! A real, small model (SmolLM2, 135 M parameters) behind llama.cpp's server, on one thread.

use anyhow::Result;

use crate::install::{ensure_model, folder, sources};
use crate::process::Server;

/// The running model. Routes below its base address: `/v1/messages`, `/v1/chat/completions`, `/v1/responses`.
///
/// Its context holds 2,048 tokens, it serves one request at a time and takes any model name. Use it for real text, aborts and
/// limits; it is too small to call tools.
#[derive(Debug)]
pub struct RealModel(Server);

impl RealModel {
    /// Starts it; installs it first where it is missing (about 100 MB).
    ///
    /// # Errors
    /// It cannot be installed or does not answer. The message holds the end of its log.
    pub fn start() -> Result<Self> {
        let python = ensure_model()?.join("bin/python").display().to_string();
        let script = sources().join("model_server.py").display().to_string();
        let server = Server::start("model", &folder("logs"), |port| {
            vec![python.clone(), "-u".to_owned(), script.clone(), port.to_string()]
        })?;
        Ok(Self(server))
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    /// What it has written so far. A request whose client went away is logged as a cancelled task.
    pub fn log(&self) -> String {
        self.0.log()
    }
}
