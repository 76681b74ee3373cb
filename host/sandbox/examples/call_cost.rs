//! What a call of `on_plain_text` costs through the whole host path, beside the bare engine.
//!
//! `cargo run --release -p tidegate-sandbox --example call_cost`. Medians of many batches, all kinds taken in turn, so that
//! a busy machine slows them alike; the ratio is what counts.
#![allow(clippy::unwrap_used, clippy::print_stdout, unused_qualifications, reason = "an example, with generated code")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use flow::TextPlace;
use support::{Guest, Stage, echo, open, source};
use tidegate_sandbox::{EngineOptions, Plugin, Sandbox, SandboxHost};
use turn::ports::Extensions;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

// All callbacks: with fewer, wasmtime 48 generates borrowed types that do not compile.
wasmtime::component::bindgen!({
    inline: "
        package tidegate:measured;
        world all {
            include tidegate:extension/extension@0.1.0;
            include tidegate:extension/with-on-input-messages@0.1.0;
            include tidegate:extension/with-on-plain-text@0.1.0;
            include tidegate:extension/with-on-tag@0.1.0;
            include tidegate:extension/with-on-llm-output@0.1.0;
            include tidegate:extension/with-ttsr-triggered@0.1.0;
        }
    ",
    path: "../../sdk/wit/0.1.0",
    world: "tidegate:measured/all",
    ownership: Borrowing { duplicate_if_necessary: true },
});

use exports::tidegate::extension::on_plain_text::{Guest as Bare, GuestIndices, TextPlace as BarePlace};

const TEXT: &str = "twenty bytes of text";
const BATCH: u32 = 2_000;
const BATCHES: usize = 200;

fn main() {
    let sandbox = Sandbox::new(&EngineOptions { max_instances: 64, ..EngineOptions::default() }).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/pass-through");
    let rust = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes;
    println!("on_plain_text, 20 bytes; median ns of {BATCHES} batches of {BATCH} calls");
    for (name, component) in [("text guest, echo", Guest::text(&echo(1)).component()), ("Rust guest, pass", rust)] {
        let plugin = sandbox.load(source("guest", component.clone())).unwrap();
        measure(name, &plugin, &component);
    }
}

fn measure(name: &str, plugin: &Plugin, component: &[u8]) {
    let host = SandboxHost::new(vec![plugin.clone()]).unwrap();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    let mut other = open(&host, "s2", &Arc::new(Stage::default()));
    let (mut store, func) = bare(component);
    let (mut async_store, async_func) = bare(component);
    let place = || BarePlace { unit: 1, inside: &[], attributes: &[] };
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..BATCHES {
        times[0].push(timed(|| {
            store.set_epoch_deadline(1000);
            black_box(func.call_on_plain_text(&mut store, TEXT, place()).unwrap().unwrap());
        }));
        times[1].push(timed(|| {
            async_store.set_epoch_deadline(1000);
            let call = async_func.func_on_plain_text();
            black_box(ready(call.call_async(&mut async_store, (TEXT, place()))).unwrap().0.unwrap());
        }));
        times[2].push(timed(|| whole_path(&extensions)));
        times[3].push(timed(|| skip(&mut other)));
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_nanos() as f64 / f64::from(BATCH)
    };
    let [bare, fiber, whole, skip] = times.map(median);
    println!("{name}: bare {bare:.0}, bare on a stack of its own {fiber:.0} ({:.2}x)", fiber / bare);
    println!("  the whole path {whole:.0} ({:.2}x of bare); asking for a skip reason {skip:.0}", whole / bare);
}

fn whole_path(extensions: &Arc<dyn Extensions>) {
    let place = TextPlace { unit: 1, inside: Vec::new() };
    black_box(ready(extensions.plain_text(0, TEXT, &place)).unwrap());
}

fn skip(extensions: &mut Arc<dyn Extensions>) {
    black_box(extensions.skip_reason(0, flow::CallbackKind::PlainText));
}

fn timed(mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..BATCH {
        call();
    }
    start.elapsed()
}

/// Drives a future on this thread.
fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

/// The engine alone, with the settings that matter to a call.
fn bare(component: &[u8]) -> (Store<()>, Bare) {
    let mut config = Config::new();
    config.concurrency_support(false).epoch_interruption(true);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(8).total_core_instances(32).total_memories(8).total_tables(24).total_stacks(8);
    pool.max_memory_size(1 << 30);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config).unwrap();
    let component = Component::new(&engine, component).unwrap();
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let ready = linker.instantiate_pre(&component).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(1 << 40);
    let instance = ready.instantiate(&mut store).unwrap();
    let func = GuestIndices::new(&ready).unwrap().load(&mut store, &instance).unwrap();
    (store, func)
}
