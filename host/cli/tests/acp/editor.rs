//! An editor of a few lines: it writes and reads lines of JSON, and keeps all of them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a line is waited for before a test fails: no time that a test depends on.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the agent sent, and what it answers.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    Notification { method: String, params: Value },
    Request { method: String, params: Value },
    Response { method: String, result: Value },
    Failure { error: Value },
}

/// Answers the agent's requests: the method and its parameters.
pub(crate) type Answers = Box<dyn FnMut(&str, &Value) -> Result<Value, Value>>;

/// A connection to the agent, from the side of the editor.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    reading: Arc<Mutex<()>>,
    pub(crate) answers: Answers,
    /// A method of which requests get no answer.
    held: Option<&'static str>,
    /// Methods of the agent's requests that were not looked at.
    asked: VecDeque<String>,
    /// Requests that have no response, with their methods.
    open: Vec<(u64, String)>,
    done: Vec<(u64, Result<Value, Value>)>,
    next: u64,
    /// All that the agent sent.
    pub(crate) traffic: Vec<Sent>,
    /// Updates that were not looked at.
    updates: VecDeque<Value>,
}

/// A refusal of everything.
pub(crate) fn no_answers() -> Answers {
    Box::new(|method, _| Err(json!({"code": -32601, "message": format!("no {method}")})))
}

impl Editor {
    pub(crate) fn start(command: Command) -> Self {
        Self::logging(command, Stdio::inherit())
    }

    /// An agent whose log lines go elsewhere.
    pub(crate) fn logging(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        let reading: Arc<Mutex<()>> = Arc::default();
        let gate = Arc::clone(&reading);
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| {
                drop(gate.lock());
                sender.send(line)
            })
        });
        let input = child.stdin.take();
        let (open, done, traffic, updates, asked) = Default::default();
        let (answers, held) = (no_answers(), None);
        Self { child, input, lines, reading, answers, held, asked, open, done, next: 1, traffic, updates }
    }

    /// The agent's process.
    pub(crate) fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Sends a request; returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let [id] = self.send_together([(method, params)]);
        id
    }

    /// Sends requests with one write; returns their ids.
    pub(crate) fn send_together<const N: usize>(&mut self, requests: [(&str, Value); N]) -> [u64; N] {
        let mut lines = Vec::new();
        let ids = requests.map(|(method, params)| {
            let id = self.next;
            self.next += 1;
            self.open.push((id, method.to_owned()));
            lines.push(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
            id
        });
        self.write_line(lines.join("\n").as_bytes());
        ids
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn write(&mut self, message: &Value) {
        self.write_line(message.to_string().as_bytes());
    }

    pub(crate) fn write_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Waits for the response to a request.
    pub(crate) fn response(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(at) = self.done.iter().position(|(one, _)| *one == id) {
                return self.done.remove(at).1;
            }
            self.step();
        }
    }

    /// Sends a request and waits for its result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request and waits for its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id).err().unwrap_or_else(|| panic!("{method} was not refused"))
    }

    /// Waits for an update that is looked for, and returns it. Those before it are dropped.
    pub(crate) fn update(&mut self, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        loop {
            while let Some(update) = self.updates.pop_front() {
                if is_it(&update) {
                    return update;
                }
            }
            self.step();
        }
    }

    /// Reads nothing of what the agent sends, while the function runs.
    pub(crate) fn unread(&mut self, run: impl FnOnce(&mut Self)) {
        let reading = Arc::clone(&self.reading);
        let _stopped = reading.lock().unwrap();
        run(self);
    }

    /// Leaves requests of this method without an answer.
    pub(crate) fn hold(&mut self, method: &'static str) {
        self.held = Some(method);
    }

    /// Waits for a request of the agent. Those before it are dropped.
    pub(crate) fn request_of(&mut self, method: &str) {
        loop {
            while let Some(asked) = self.asked.pop_front() {
                if asked == method {
                    return;
                }
            }
            self.step();
        }
    }

    /// All updates that were not looked at.
    pub(crate) fn updates(&mut self) -> Vec<Value> {
        self.updates.drain(..).collect()
    }

    /// Reads one line of the agent, and answers it if it is a request.
    pub(crate) fn step(&mut self) {
        let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let last = &self.traffic[self.traffic.len().saturating_sub(5)..];
            panic!("the agent sends no line: {error}; the last were {last:#?}")
        });
        // Nothing but the protocol is on standard output.
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        let params = message["params"].clone();
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id")) {
            (Some(method), None) => {
                if method == "session/update" {
                    self.updates.push_back(params["update"].clone());
                }
                self.traffic.push(Sent::Notification { method, params });
            }
            (Some(method), Some(id)) => {
                self.asked.push_back(method.clone());
                if self.held == Some(&*method) {
                    self.traffic.push(Sent::Request { method, params });
                    return;
                }
                let answer = match (self.answers)(&method, &params) {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
                };
                self.traffic.push(Sent::Request { method, params });
                self.write(&answer);
            }
            (None, id) => self.ended(id.and_then(Value::as_u64), &message),
        }
    }

    fn ended(&mut self, id: Option<u64>, message: &Value) {
        // What could not be read has no id.
        if id.is_none() && message["id"].is_null() {
            return self.traffic.push(Sent::Failure { error: message["error"].clone() });
        }
        let at = self.open.iter().position(|(one, _)| Some(*one) == id);
        let (id, method) = self.open.remove(at.unwrap_or_else(|| panic!("a response to nothing: {message}")));
        let result = match message.get("error") {
            Some(error) => {
                self.traffic.push(Sent::Failure { error: error.clone() });
                Err(error.clone())
            }
            None => {
                self.traffic.push(Sent::Response { method, result: message["result"].clone() });
                Ok(message["result"].clone())
            }
        };
        self.done.push((id, result));
    }

    /// `initialize` with these capabilities, then a session in a folder; returns its id.
    pub(crate) fn open(&mut self, capabilities: Value, cwd: &std::path::Path) -> String {
        self.initialize(capabilities);
        self.new_session(cwd)
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let info = json!({"name": "test-editor", "version": "1"});
        self.request(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info}),
        )
    }

    pub(crate) fn new_session(&mut self, cwd: &std::path::Path) -> String {
        let opened = self.request("session/new", json!({"cwd": cwd, "mcpServers": []}));
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt of one text; returns the request's id.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Sends a prompt and waits; returns the stop reason and the text that was shown.
    pub(crate) fn ask(&mut self, session: &str, text: &str) -> (String, String) {
        self.updates();
        let id = self.prompt(session, text);
        let response = self.response(id).unwrap_or_else(|error| panic!("{text}: {error}"));
        (response["stopReason"].as_str().unwrap().to_owned(), shown(&self.updates()))
    }

    /// Ends the agent as if its machine had failed.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for a notification of the agent that is no update. Those before it are dropped.
    pub(crate) fn notification_of(&mut self, method: &str) -> Value {
        loop {
            let is_it = |sent: &Sent| matches!(sent, Sent::Notification { method: other, .. } if other == method);
            if let Some(at) = self.traffic.iter().position(is_it) {
                let Sent::Notification { params, .. } = self.traffic.remove(at) else { unreachable!() };
                return params;
            }
            self.step();
        }
    }

    /// Closes the connection, and waits for the end of the agent.
    pub(crate) fn close(mut self) -> std::process::ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of the agent's messages.
pub(crate) fn shown(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}
