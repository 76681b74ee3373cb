//! The process of a session ends at every event of a turn: the next process sends a conversation that servers of others take, and that the
//! vendors' own types allow.

use serde_json::Value;
use tempfile::TempDir;
use tidegate::TurnStatus;

use super::place::{QUESTION, Servers, WIRES, Wire, close, session, workspace};

/// A workspace with the transcripts of another as they are on the disk now: what a process that dies now leaves behind.
fn as_left_behind(folder: &TempDir) -> TempDir {
    let left = workspace();
    let (from, to) = (folder.path().join("sessions"), left.path().join("sessions"));
    for session in std::fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        let to = to.join(session.file_name());
        std::fs::create_dir_all(&to).unwrap();
        // Its lock is that of a living process. Before the first record is written there is no transcript.
        let transcript = session.path().join("transcript.jsonl");
        if transcript.exists() {
            std::fs::copy(transcript, to.join("transcript.jsonl")).unwrap();
        }
    }
    left
}

/// Everything that a process can leave behind of one turn: the state of the disk at each of its events.
async fn cuts(wire: Wire, base_url: &str) -> Vec<TempDir> {
    let folder = workspace();
    let whole = session(&folder, wire, base_url).await;
    let mut turn = whole.prompt(QUESTION);
    let mut left = Vec::new();
    while turn.next().await.is_some() {
        left.push(as_left_behind(&folder));
    }
    let report = turn.report().await;
    assert_eq!((report.status, report.place.step), (TurnStatus::Completed, 2), "{wire:?}");
    close(whole).await;
    left
}

/// What of the answer is in a request, so that the cuts are known to be in all kinds of content.
fn kinds(body: &Value) -> [bool; 4] {
    let text = body.to_string();
    ["Stream interrupted", "I look at", "notes.txt", "It says"].map(|part| text.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_cut_anywhere_continues_with_every_server() {
    let mut servers = Servers::start();
    for wire in WIRES {
        let left = cuts(wire, servers.aimock.base_url()).await;
        assert!(left.len() > 30, "{wire:?}: {}", left.len());
        let mut seen = [false; 4];
        for (number, folder) in left.iter().enumerate() {
            let at = format!("{}, cut at event {number}", wire.0);
            let body = servers.accept(folder, wire, number, &at).await;
            kinds(&body).iter().zip(&mut seen).for_each(|(found, seen)| *seen |= found);
        }
        assert_eq!(seen, [true; 4], "{wire:?}: the cuts are in all kinds of content");
    }
}
