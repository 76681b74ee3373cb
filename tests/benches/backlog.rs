//! What a session pays for front ends that can reconnect: turns with a backlog, compared with the same turns without one.

use std::sync::Arc;
use std::task::{Context, Poll};

use flow::ports::{BoxFuture, Model, ModelStream};
use flow::{Delta, Message, ModelError, Prompt, SourceFile, StopReason, StreamKind, TurnStatus};
use tempfile::TempDir;
use tidegate::event::Backlog;
use tidegate::{Host, Operator, Session, SessionOptions};
use tokio::runtime::Runtime;

use crate::support::text::{pieces, text};
use crate::support::{Aim, Lane, Table, criterion, race};

/// Words of one long answer, in deltas of four bytes.
const BYTES: usize = 40_000;

pub(crate) fn bench() {
    let mut table = Table::new("backlog");
    let runtime = Runtime::new().unwrap();
    let (model, folder) = (Arc::new(Recited(deltas())), tempfile::tempdir().unwrap());
    let without = runtime.block_on(session(&model, &folder, None));
    let with = runtime.block_on(session(&model, &folder, Some(Backlog::default())));
    let lanes = vec![
        Lane::new("without a backlog", || runtime.block_on(run(&without))),
        Lane::new("with a backlog", || runtime.block_on(run(&with))),
    ];
    let times = race(&mut criterion(), "backlog", 101, lanes);
    let deltas = (BYTES / 4) as f64;
    table.row("turn with a backlog ÷ without", Aim::None, times.ratio(1, 0), "×");
    table.row("– a delta without a backlog", Aim::None, times.of(0) / deltas, "ns");
    table.row("– a delta with a backlog", Aim::None, times.of(1) / deltas, "ns");
    table.finish();
}

async fn session(model: &Arc<Recited>, folder: &TempDir, backlog: Option<Backlog>) -> Session {
    let source = SourceFile::new("tidegate.toml", "[rules]\nbuiltin_rules = false\n");
    let operator = Operator::of_source(&source).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).user_rules(None).open().await.unwrap();
    let options = SessionOptions::new(folder.path()).model(Arc::<Recited>::clone(model) as Arc<dyn Model>);
    let options = match backlog {
        Some(backlog) => options.backlog(backlog),
        None => options,
    };
    host.session(options).await.unwrap()
}

/// Runs one turn, always with the same conversation.
async fn run(session: &Session) {
    session.replace_history(Vec::<Message>::new()).unwrap();
    let report = session.prompt("Write a lot.").report().await;
    assert_eq!((report.status, report.text.len()), (TurnStatus::Completed, BYTES));
}

fn deltas() -> Vec<Delta> {
    let text = text(BYTES);
    let start = [Delta::Start { model: None }, Delta::BlockStart { block: 0, kind: StreamKind::Text }];
    let pieces = pieces(&text).into_iter().map(|text| Delta::Piece { block: 0, text: text.to_owned() });
    let end = [Delta::BlockEnd { block: 0 }, Delta::Stop { reason: StopReason::EndTurn }];
    start.into_iter().chain(pieces).chain(end).collect()
}

/// Gives the same answer to every request.
struct Recited(Vec<Delta>);

struct Stream(std::vec::IntoIter<Delta>);

impl Model for Recited {
    fn provider(&self) -> &str {
        "recording"
    }

    fn name(&self) -> &str {
        "bench"
    }

    fn start<'a>(&'a self, _prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let stream = Stream(self.0.clone().into_iter());
        Box::pin(async { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for Stream {
    fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
