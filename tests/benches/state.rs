//! The state of plugins: reads and writes inside of a callback, and settling ten keys on each backend, next to the backend's own
//! single durable write.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::ports::{ExtensionHost as _, Extensions, StateStore};
use flow::{SessionId, TextPlace};
use sandbox::{Plugin, SandboxHost};
use store::{DiskStore, MemoryStore, RedisOptions, RedisStore, StoreOptions};
use system::SystemClock;
use tidegate_servers::RedisServer;
use tokio::runtime::Runtime;

use crate::support::guests::{EmptyStage, build, load, sandbox};
use crate::support::{Aim, Lane, Table, cpu_time, criterion, race, ready, scratch};

/// Operations of one call, so that the call itself counts little.
const OPERATIONS: f64 = 1_000.0;
/// A write is durable in the time of a disk, so that fewer rounds are run.
const ROUNDS: usize = 31;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn bench() {
    let mut table = Table::new("state");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = sandbox(16);
    let plugin = load(&sandbox, "stateful", build("tests/guests/stateful"));
    let folder = scratch().join("bench-state");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let (options, clock) = (StoreOptions::default, Arc::new(SystemClock));
    let memory: Arc<dyn StateStore> = Arc::new(MemoryStore::new(options(), Arc::<SystemClock>::clone(&clock)));
    backend(&mut table, &runtime, &plugin, "memory", &memory, Vec::new());
    let disk = DiskStore::new(folder.join("ours"), options(), Arc::<SystemClock>::clone(&clock)).unwrap();
    // As the store opens its files: other processes can read meanwhile, for which each commit syncs twice.
    let shared = redb::ConcurrencyMode::SingleWriter;
    let alone = vec![
        ("a commit of one key", Aim::AtMost(1.2), redb_commit(&folder.join("shared.redb"), Some(shared))),
        (
            "a commit of one key that no other process can read",
            Aim::None,
            redb_commit(&folder.join("alone.redb"), None),
        ),
    ];
    backend(&mut table, &runtime, &plugin, "`redb`", &(Arc::new(disk) as _), alone);
    // The same durability as a commit: the answer comes after the write to the disk.
    match RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]) {
        Ok(server) => {
            let redis = RedisStore::new(RedisOptions::new(server.url()), clock).unwrap();
            let set = redis_set(&server);
            let alone = vec![("a `SET`", Aim::AtMost(1.2), set)];
            backend(&mut table, &runtime, &plugin, "Redis", &(Arc::new(redis) as _), alone);
        }
        Err(error) => table.missing("state in Redis", &format!("{error:#}")),
    }
    table.finish();
}

type Write = Box<dyn FnMut()>;

/// `redb` itself: one key in one durable transaction.
fn redb_commit(path: &Path, mode: Option<redb::ConcurrencyMode>) -> Write {
    const TABLE: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("values");
    let mut builder = redb::Database::builder();
    if let Some(mode) = mode {
        builder.set_concurrency_mode(mode);
    }
    let database = builder.create(path).unwrap();
    Box::new(move || {
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap().insert("key", [b'x'; 100].as_slice()).unwrap();
        transaction.commit().unwrap();
    })
}

/// Redis itself: one key.
fn redis_set(server: &RedisServer) -> Write {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    Box::new(move || redis::cmd("SET").arg("alone").arg([b'x'; 100].as_slice()).exec(&mut connection).unwrap())
}

fn backend(
    table: &mut Table,
    runtime: &Runtime,
    plugin: &Plugin,
    name: &str,
    store: &Arc<dyn StateStore>,
    alone: Vec<(&str, Aim, Write)>,
) {
    let host = SandboxHost::new(vec![plugin.clone()], Arc::clone(store)).unwrap();
    let session = SessionId::new("bench");
    let opened = runtime.block_on(host.open(&session, Arc::new(EmptyStage), Arc::new(EmptyStage)));
    let extensions = opened.unwrap();
    extensions.begin_turn();
    let call = |text: &str| runtime.block_on(extensions.plain_text(0, text, &TextPlace::default())).map(drop).unwrap();
    call("set 1");
    runtime.block_on(extensions.settle(PATIENCE)).unwrap();
    operations(table, name, &*extensions);
    let mut lanes = vec![Lane::timed(format!("settle, {name}"), |times| {
        let mut took = Duration::ZERO;
        for _ in 0..times {
            call("keys 10");
            let start = Instant::now();
            runtime.block_on(extensions.settle(PATIENCE)).unwrap();
            took += start.elapsed();
        }
        took
    })];
    let mut aims = Vec::new();
    for (what, aim, write) in alone {
        lanes.push(Lane::waiting(format!("{what}, {name}"), write));
        aims.push((what, aim));
    }
    let times = race(&mut criterion(), &format!("settle, {name}"), ROUNDS, lanes);
    table.row(&format!("settle of 10 keys, {name}"), Aim::None, times.of(0) / 1000.0, "µs");
    for (at, (what, aim)) in aims.into_iter().enumerate() {
        table.row(&format!("– {what} without us"), Aim::None, times.of(at + 1) / 1000.0, "µs");
        table.row(&format!("– settle ÷ {what}"), aim, times.ratio(0, at + 1), "×");
    }
    runtime.block_on(extensions.close(PATIENCE)).unwrap();
}

/// The instance's area answers, whatever the backend is.
fn operations(table: &mut Table, name: &str, extensions: &dyn Extensions) {
    let place = TextPlace::default();
    let call = |text: &str| {
        let start = cpu_time();
        ready(extensions.plain_text(0, text, &place)).map(drop).unwrap();
        cpu_time() - start
    };
    let lane =
        |name: &'static str, text: &'static str| Lane::timed(name, move |times| (0..times).map(|_| call(text)).sum());
    let lanes = vec![lane("nothing", "get 0"), lane("get", "get 1000"), lane("set", "set 1000")];
    let times = race(&mut criterion(), &format!("operations, {name}"), 101, lanes);
    let each = |lane| (times.of(lane) - times.of(0)) / OPERATIONS / 1000.0;
    table.row(&format!("`state.get` of 100 B in a callback, {name}"), Aim::AtMost(1.0), each(1), "µs");
    table.row(&format!("`state.set` of 100 B in a callback, {name}"), Aim::None, each(2), "µs");
}
