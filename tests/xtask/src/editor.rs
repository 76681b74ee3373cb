//! The end of the demo: an editor that starts `tidegate acp`, shows what the host sends, answers its question and lends it a buffer that is
//! not saved.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tidegate_servers::say;

/// What the user of the editor asks for.
const PROMPT: &str = "Take the port from PORT.";

/// Runs the session in a workspace, whose `src/main.rs` is open in the editor.
pub(crate) fn session(program: Command, workspace: &Path) -> Result<()> {
    let file = workspace.canonicalize()?.join("src/main.rs");
    let saved = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    // The user has typed this, and has not saved it.
    let buffer = format!("// not saved\n{}", saved.replace("8080", "9090"));
    let mut editor = Editor::start(program, file.clone(), buffer)?;
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "session": {"notices": {}}});
    editor.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}))?;
    let opened = editor.request("session/new", &json!({"cwd": workspace.canonicalize()?, "mcpServers": []}))?;
    say(&format!("  user     {PROMPT}"));
    let prompt = json!([{"type": "text", "text": PROMPT}]);
    let ended = editor.request("session/prompt", &json!({"sessionId": opened["sessionId"], "prompt": prompt}))?;
    editor.line();
    say(&format!("  end      {}", ended["stopReason"].as_str().unwrap_or("?")));
    ensure!(editor.interrupts > 0, "a rule was to stop the model, and none did");
    ensure!(editor.questions == 1, "the user was to be asked once, and was asked {} times", editor.questions);
    ensure!(editor.buffer.contains("env::var"), "the buffer was to be changed, and is {:?}", editor.buffer);
    ensure!(fs::read_to_string(&file)? == saved, "the file on the disk was not to be changed");
    say("the change is in the editor's buffer, and the file on the disk is as it was");
    editor.close()
}

/// The editor's side of a connection.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    file: PathBuf,
    buffer: String,
    next: u64,
    /// Text of the model that is not shown yet.
    text: String,
    interrupts: u32,
    questions: u32,
}

impl Editor {
    fn start(mut program: Command, file: PathBuf, buffer: String) -> Result<Self> {
        let mut child =
            program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start tidegate")?;
        let output = BufReader::new(child.stdout.take().context("the program has no standard output")?);
        let input = child.stdin.take();
        let text = String::new();
        Ok(Self { child, input, output, file, buffer, next: 1, text, interrupts: 0, questions: 0 })
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the connection is closed")?;
        writeln!(input, "{message}").and_then(|()| input.flush()).context("the program reads nothing more")
    }

    /// Sends a request, and handles what arrives until its result.
    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the program ended before its answer to {method}");
            let message: Value = serde_json::from_str(&line).with_context(|| format!("no message: {line}"))?;
            let params = &message["params"];
            match (message["method"].as_str(), message["id"].as_u64()) {
                (Some("session/update"), _) => self.update(&params["update"]),
                (Some(method), _) => {
                    let result = self.answer(method, params)?;
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))?;
                }
                (None, Some(answered)) if answered == id => {
                    ensure!(message.get("error").is_none(), "{method}: {}", message["error"]);
                    return Ok(message["result"].clone());
                }
                (None, _) => bail!("an answer to nothing: {line}"),
            }
        }
    }

    /// Shows an update.
    fn update(&mut self, update: &Value) {
        let field = |name: &str| update[name].as_str().unwrap_or_default();
        match field("sessionUpdate") {
            "agent_message_chunk" => self.text.push_str(update["content"]["text"].as_str().unwrap_or_default()),
            "tool_call" => {
                self.line();
                say(&format!("  tool     {}", field("title")));
            }
            "tool_call_update" if update["status"] == "completed" => say("           done"),
            "notice" => {
                self.line();
                self.interrupts += u32::from(update["_meta"]["tidegate/rule"]["action"] == "interrupt");
                say(&format!("  notice   {}", field("title")));
            }
            _ => {}
        }
    }

    /// Answers a request of the program, as the user and the buffers of the editor do.
    fn answer(&mut self, method: &str, params: &Value) -> Result<Value> {
        match method {
            "fs/read_text_file" if params["path"] == json!(self.file) => {
                say("  buffer   read");
                Ok(json!({"content": self.buffer}))
            }
            "fs/write_text_file" if params["path"] == json!(self.file) => {
                say("  buffer   changed");
                params["content"].as_str().unwrap_or_default().clone_into(&mut self.buffer);
                Ok(json!({}))
            }
            "session/request_permission" => {
                self.questions += 1;
                let call = &params["toolCall"];
                let new = call["content"].as_array().into_iter().flatten().find_map(|one| one["newText"].as_str());
                say(&format!("  question {}? yes", call["title"].as_str().unwrap_or_default()));
                new.into_iter().flat_map(str::lines).for_each(|line| say(&format!("           {line}")));
                let option = params["options"].as_array().into_iter().flatten().find(|one| one["kind"] == "allow_once");
                let option = option.context("there is no option to allow the call")?;
                Ok(json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}))
            }
            other => bail!("the editor cannot answer {other}"),
        }
    }

    /// Shows the text so far as a line.
    fn line(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            say(&format!("  model    {text}"));
        }
    }

    fn close(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the program ended with {status}");
        Ok(())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
