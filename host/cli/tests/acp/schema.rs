//! Everything that the agent sends is valid by the JSON Schema of the protocol, which the TypeScript SDK brings.

use std::collections::BTreeMap;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use tidegate_servers::ensure_editors_js;

use super::editor::{Editor, Sent};
use super::model::Model;
use super::place;

/// The schemas of messages, by side and method.
struct Protocol {
    schemas: Schemas,
    /// Of the results of the agent.
    results: BTreeMap<String, SchemaIndex>,
    /// Of the requests and notifications to the client.
    calls: BTreeMap<String, SchemaIndex>,
    failure: SchemaIndex,
}

impl Protocol {
    fn load() -> Self {
        let file = ensure_editors_js().unwrap().join("node_modules/@agentclientprotocol/sdk/schema/v1/schema.json");
        let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("acp.json", document.clone()).unwrap();
        let mut compile = |name: &str| compiler.compile(&format!("acp.json#/$defs/{name}"), &mut schemas).unwrap();
        let (mut results, mut calls) = (BTreeMap::new(), BTreeMap::new());
        for (name, about) in document["$defs"].as_object().unwrap() {
            let (Some(method), Some(side)) = (about["x-method"].as_str(), about["x-side"].as_str()) else { continue };
            let is_result = name.ends_with("Response");
            match (side, is_result) {
                ("agent", true) => drop(results.insert(method.to_owned(), compile(name))),
                ("client", false) => drop(calls.insert(method.to_owned(), compile(name))),
                _ => {}
            }
        }
        let failure = compile("Error");
        Self { schemas, results, calls, failure }
    }

    /// Why a message is not valid.
    fn trouble(&self, sent: &Sent) -> Option<String> {
        let (schema, value) = match sent {
            Sent::Notification { method, params } | Sent::Request { method, params } => {
                (*self.calls.get(method).unwrap_or_else(|| panic!("no method {method}")), params)
            }
            // A convention of agents, which the protocol does not know.
            Sent::Response { method, .. } if method.starts_with('_') => return None,
            Sent::Response { method, result } => (self.results[method], result),
            Sent::Failure { error } => (self.failure, error),
        };
        self.schemas.validate(value, schema).err().map(|error| format!("{sent:?}: {error:#}"))
    }
}

/// Does what an editor does, with a client that has all capabilities, and with one that has none.
fn traffic(capabilities: Value) -> Vec<Sent> {
    let model = Model::start();
    let place = place(&model);
    let cwd = place.path("");
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.answers = Box::new(|method, params| match method {
        "session/request_permission" => {
            let option = params["options"][0]["optionId"].clone();
            Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}))
        }
        "fs/read_text_file" => Ok(json!({"content": "buffer\n"})),
        "fs/write_text_file" => Ok(json!({})),
        "terminal/create" => Ok(json!({"terminalId": "t1"})),
        "terminal/wait_for_exit" => Ok(json!({"exitCode": 0})),
        "terminal/output" => Ok(json!({"output": "hello\n", "truncated": false})),
        "terminal/release" => Ok(json!({})),
        other => Err(json!({"code": -32601, "message": other})),
    });
    let session = editor.open(capabilities, &cwd);
    for prompt in [
        "think Yes",
        "read a.txt",
        "write a.txt text",
        "run echo hello",
        "forbidden",
        "/rules",
        "/cost",
        "/plugins",
        "/continue",
    ] {
        editor.ask(&session, prompt);
    }
    let hanging = editor.prompt(&session, "hang");
    editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.response(hanging).unwrap();
    editor.request("session/set_mode", json!({"sessionId": session, "modeId": "approve"}));
    editor.request("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "ask"}));
    editor.refused("session/set_mode", json!({"sessionId": session, "modeId": "none"}));
    editor.refused("session/prompt", json!({"sessionId": "none", "prompt": []}));
    editor.refused("session/unknown", json!({}));
    editor.refused("authenticate", json!({"methodId": "none"}));
    editor.request("authenticate", json!({"methodId": "environment"}));
    editor.request("_session/steering", json!({"sessionId": session, "prompt": [{"type": "text", "text": "say x"}]}));
    editor.ask(&session, "say last");
    editor.request("session/close", json!({"sessionId": session}));
    editor.request("session/list", json!({"cwd": cwd}));
    let server = json!({"name": "one", "command": "/bin/true", "args": [], "env": []});
    editor.request("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": [server]}));
    editor.request("session/close", json!({"sessionId": session}));
    editor.request("session/resume", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    editor.request("session/delete", json!({"sessionId": session}));
    editor.refused("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    std::mem::take(&mut editor.traffic)
}

#[test]
fn all_that_the_agent_sends_is_valid_by_the_schema_of_the_protocol() {
    let protocol = Protocol::load();
    let all = json!({
        "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true,
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    });
    for capabilities in [all, json!({})] {
        let traffic = traffic(capabilities);
        let troubles: Vec<String> = traffic.iter().filter_map(|sent| protocol.trouble(sent)).collect();
        assert!(troubles.is_empty(), "{}", troubles.join("\n"));
        assert!(traffic.len() > 60, "only {} messages", traffic.len());
    }
    // The check notices what is wrong.
    let wrong = json!({"sessionId": "x", "update": {"sessionUpdate": "no_such_update"}});
    let wrong = Sent::Notification { method: "session/update".into(), params: wrong };
    assert!(protocol.trouble(&wrong).is_some());
}
