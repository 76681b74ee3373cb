//! Sessions that another process continues, against servers that others wrote: what the model is sent then is what it would have been sent
//! without the interruption, in all three wire formats.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use regex::{Captures, Regex};
use serde_json::Value;
use tempfile::TempDir;
use tidegate::{EventKind, Host, Operator, Session, SessionId, SessionOptions, TurnStatus};
use tidegate_servers::{Aimock, RealModel};

const WIRES: [&str; 3] = ["anthropic", "openai-chat", "openai-responses"];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/turn")
}

/// A process of its own, as far as the session is concerned: a host that shares nothing with others but the folder.
async fn session(folder: &TempDir, wire: &str, base_url: &str) -> Session {
    let text = format!(
        "[provider]\nkind = \"{wire}\"\nmodel = \"claude-or-gpt\"\nbase_url = \"{base_url}\"\nmax_tokens = 120\n\
         [rules]\nbuiltin_rules = false\nretry_delay_ms = 0\n[tools.permission]\nwrite_file = \"allow\"\n\
         [transcript]\nenabled = true\nfolder = \"sessions\"\n[[plugin]]\npath = {:?}\n",
        corpus().join("rules-only").display().to_string()
    );
    let path = folder.path().join("tidegate.toml");
    std::fs::write(&path, text).unwrap();
    let operator = Operator::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).open().await.unwrap();
    host.session(SessionOptions::new(folder.path()).id(SessionId::new("test"))).await.unwrap()
}

async fn close(session: Session) {
    session.close();
    session.closed().await;
}

/// A request with the ids that servers make up replaced by their numbers.
fn without_ids(body: &Value) -> String {
    let id = Regex::new(r"\b(?:call|toolu|fc|rs|msg|resp)[-_][A-Za-z0-9_-]+").unwrap();
    let mut known: HashMap<String, usize> = HashMap::new();
    let encrypted = Regex::new(r#""encrypted_content":"[^"]*""#).unwrap();
    let body = body.to_string().replace('\\', "");
    let body = encrypted.replace_all(&body, "\"encrypted_content\":\"_\"");
    let number = |found: &Captures<'_>| {
        let next = known.len();
        format!("id-{}", known.entry(found[0].to_owned()).or_insert(next))
    };
    id.replace_all(&body, number).into_owned()
}

/// The folder of a workspace is in the system prompt or in results of tools.
fn normal(body: &Value, folder: &TempDir) -> String {
    without_ids(body).replace(&folder.path().display().to_string(), "/workspace")
}

const TURNS: [&str; 4] = ["Say something.", "Write the file.", "What is open?", "Leave nothing behind"];

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_sends_what_an_uninterrupted_one_sends() {
    let server = Aimock::start(&corpus().join("aimock.json")).unwrap();
    for wire in WIRES {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let before = server.journal().unwrap().len();
        let uninterrupted = session(&whole, wire, server.base_url()).await;
        let mut texts = Vec::new();
        for input in TURNS {
            let report = uninterrupted.prompt(input).report().await;
            assert_eq!(report.status, TurnStatus::Completed, "{wire}: {report:?}");
            texts.push(report.text);
        }
        close(uninterrupted).await;
        let between = server.journal().unwrap().len();
        for (input, text) in TURNS.iter().zip(&texts) {
            let resumed = session(&parts, wire, server.base_url()).await;
            let report = resumed.prompt(*input).report().await;
            assert_eq!((&report.status, &report.text), (&TurnStatus::Completed, text), "{wire}");
            close(resumed).await;
        }
        let journal = server.journal().unwrap();
        let (first, second) = (&journal[before..between], &journal[between..]);
        assert_eq!(first.len(), second.len(), "{wire}");
        for (number, (first, second)) in first.iter().zip(second).enumerate() {
            let (first, second) = (normal(&first["body"], &whole), normal(&second["body"], &parts));
            assert_eq!(first, second, "{wire}, request {number}");
        }
        let last = normal(&journal.last().unwrap()["body"], &parts);
        let is_result = ["tool_result", "\"tool\"", "function_call_output"].iter().any(|word| last.contains(word));
        assert!(is_result && last.contains("no-left-over"), "calls, results and reminders are there: {last}");
    }
}

/// An answer that was cut stays in the conversation as far as it was received, marked, and a model accepts that.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_continues_after_an_answer_that_was_cut() {
    let server = RealModel::start().unwrap();
    for wire in WIRES {
        let folder = tempfile::tempdir().unwrap();
        let first = session(&folder, wire, server.base_url()).await;
        let mut turn = first.prompt("Write about mountains.");
        let mut shown = String::new();
        while let Some(event) = turn.next().await {
            if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
                shown.push_str(text);
                if shown.len() > 20 {
                    first.cancel();
                }
            }
        }
        assert_eq!(turn.report().await.status, TurnStatus::Cancelled, "{wire}");
        close(first).await;
        let second = session(&folder, wire, server.base_url()).await;
        let history = second.history();
        let last = history.last().unwrap().plain_text();
        assert!(last.starts_with(&shown) && last.contains("\n\n[Stream interrupted: cancelled"), "{wire}: {last:?}");
        let report = second.prompt("Say yes.").report().await;
        assert_eq!(report.status, TurnStatus::Completed, "{wire}: {report:?}");
        close(second).await;
    }
}
