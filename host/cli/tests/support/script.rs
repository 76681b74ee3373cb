//! A model whose answers a test writes while they are read, in the wire format of Anthropic.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a request may take to arrive.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Model(TcpListener);

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    /// The operator's file for it.
    pub(crate) fn settings(&self, more: &str) -> String {
        let address = self.0.local_addr().unwrap();
        format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"scripted\"\nbase_url = \"http://{address}\"\napi_key_env = \"\"\n\
             [rules]\nbuiltin_rules = false\nretry_delay_ms = 0\n{more}"
        )
    }

    /// Waits for the next request.
    pub(crate) fn request(&self) -> Request {
        let begun = Instant::now();
        let socket = loop {
            match self.0.accept() {
                Ok((socket, _)) => break socket,
                Err(_) if begun.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => panic!("no request: {error}"),
            }
        };
        socket.set_nonblocking(false).unwrap();
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut request =
            Request { body: serde_json::from_slice(&body).unwrap(), socket, blocks: 0, open: false, stop: "end_turn" };
        request.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
        let usage = json!({"input_tokens": 5, "output_tokens": 1});
        request.event(&json!({"type": "message_start", "message": {"model": "scripted", "usage": usage}}));
        request
    }
}

/// A request, whose answer is being written.
pub(crate) struct Request {
    pub(crate) body: Value,
    socket: TcpStream,
    blocks: u32,
    open: bool,
    stop: &'static str,
}

impl Request {
    /// What the request says, as JSON.
    pub(crate) fn text(&self) -> String {
        self.body["messages"].to_string()
    }

    /// Writes some of a text.
    pub(crate) fn say(&mut self, text: &str) -> &mut Self {
        if !self.open {
            self.open = true;
            self.begin(&json!({"type": "text", "text": ""}));
        }
        self.delta(&json!({"type": "text_delta", "text": text}));
        self
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &Value) -> &mut Self {
        self.call_cut(id, name, &[arguments.to_string()])
    }

    /// Writes reasoning, a part a delta.
    pub(crate) fn think(&mut self, parts: &[String]) -> &mut Self {
        self.close();
        self.begin(&json!({"type": "thinking", "thinking": ""}));
        parts.iter().for_each(|part| self.delta(&json!({"type": "thinking_delta", "thinking": part})));
        self.delta(&json!({"type": "signature_delta", "signature": "c2lnbmVk"}));
        self.open = true;
        self.close();
        self
    }

    /// Calls a tool, with a part of its arguments a delta.
    pub(crate) fn call_cut(&mut self, id: &str, name: &str, arguments: &[String]) -> &mut Self {
        self.close();
        self.begin(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        arguments.iter().for_each(|part| self.delta(&json!({"type": "input_json_delta", "partial_json": part})));
        self.open = true;
        self.close();
        self.stop = "tool_use";
        self
    }

    /// Ends the answer.
    pub(crate) fn end(&mut self) {
        self.close();
        let stop = self.stop;
        self.event(&json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 40}}));
        self.event(&json!({"type": "message_stop"}));
        // A client that is gone is not a failure here.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Ends the answer at the most tokens.
    #[allow(dead_code, reason = "some tests end no answer so")]
    pub(crate) fn end_cut_off(&mut self) {
        self.stop = "max_tokens";
        self.end();
    }

    fn begin(&mut self, block: &Value) {
        let index = self.blocks;
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn delta(&mut self, delta: &Value) {
        let index = self.blocks;
        self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let index = self.blocks;
            self.event(&json!({"type": "content_block_stop", "index": index}));
            self.blocks += 1;
        }
    }

    fn event(&mut self, event: &Value) {
        self.write(&format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    }

    /// A client that has closed its end, because the turn was cancelled, is not a failure here.
    fn write(&mut self, text: &str) {
        let _gone = self.socket.write_all(text.as_bytes()).and_then(|()| self.socket.flush());
    }
}
