//! The engine: one per process, its settings, its ticker, and compiling with or without the cache on disk.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use wasmtime::component::Component;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmFeatures};

use crate::cache::Cache;
use crate::error::LoadProblem;
use crate::instances::Instances;
use crate::limits::TABLE_ELEMENTS;
use crate::options::{EngineCounts, EngineError, EngineOptions, EngineReport};
use crate::ticker::{Ticker, Ticking};
use crate::wasm::Wasm;

/// The most bytes one memory may have in the pool; a plugin's own limit is usually far below.
const POOL_MEMORY_BYTES: usize = 4 << 30;

/// What no guest needs: less that can go wrong.
const UNUSED: WasmFeatures = WasmFeatures::MEMORY64
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::GC)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::CM_ASYNC);

/// The engine and what belongs to it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) id: u64,
    pub(crate) engine: Engine,
    pub(crate) report: EngineReport,
    ticker: Ticker,
    pub(crate) instances: Instances,
    pub(crate) cache: Option<Cache>,
    compiled: AtomicU64,
    loaded: AtomicU64,
    shared: AtomicU64,
    /// The components of this engine by digest, the most recent last.
    recent: Mutex<Vec<([u8; 32], Component)>>,
}

/// How many components an engine keeps for hosts that load the same file. One that was dropped is taken from the cache again.
const MAX_RECENT: usize = 32;

impl Machine {
    pub(crate) fn new(options: &EngineOptions) -> Result<Arc<Self>, EngineError> {
        let mut report = EngineReport::default();
        let engine = match Engine::new(&config(Some(pooled(options.max_instances)))) {
            Ok(engine) => engine,
            Err(error) => {
                report.pooling = Some(format!("{error:#}"));
                Engine::new(&config(None)).map_err(EngineError::Settings)?
            }
        };
        let cache = options.cache_dir.as_deref().and_then(|dir| match Cache::open(dir, &engine) {
            Ok(cache) => Some(cache),
            Err(reason) => {
                report.cache = Some(reason);
                None
            }
        });
        let weak = engine.weak();
        let ticker = Ticker::start(move || {
            weak.upgrade().is_some_and(|engine| {
                engine.increment_epoch();
                true
            })
        })
        .map_err(EngineError::Ticker)?;
        static MADE: AtomicU64 = AtomicU64::new(0);
        Ok(Arc::new(Self {
            id: MADE.fetch_add(1, Ordering::Relaxed),
            engine,
            report,
            ticker,
            instances: Instances::new(options.max_instances, options.instance_wait),
            cache,
            compiled: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            recent: Mutex::default(),
        }))
    }

    /// Compiles `wasm`, or takes it from the cache; a component that another host has loaded is shared with it.
    pub(crate) fn component(&self, wasm: &Wasm<'_>) -> Result<Component, LoadProblem> {
        let digest = wasm.digest;
        let known = self.recent().iter().find(|(known, _)| *known == digest).map(|(_, component)| component.clone());
        if let Some(component) = known {
            self.shared.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        // Not under the lock: two hosts that start at once compile at once.
        let component = self.cached(wasm)?;
        let mut recent = self.recent();
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push((digest, component.clone()));
        Ok(component)
    }

    fn recent(&self) -> MutexGuard<'_, Vec<([u8; 32], Component)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, wasm: &Wasm<'_>) -> Result<Component, LoadProblem> {
        let entry = self.cache.as_ref().map(|cache| cache.entry(&wasm.digest));
        if let Some(component) = entry.as_ref().and_then(|entry| entry.load(&self.engine)) {
            self.loaded.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        let component = Component::new(&self.engine, wasm.bytes()?);
        let component = component.map_err(|error| LoadProblem::Invalid(format!("{error:#}")))?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = entry {
            entry.store(&component);
        }
        Ok(component)
    }

    /// A guest runs: time-outs are watched until the value is dropped.
    pub(crate) fn ticking(&self) -> Ticking<'_> {
        self.ticker.enter()
    }

    pub(crate) fn counts(&self) -> EngineCounts {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        EngineCounts { compiled: now(&self.compiled), loaded: now(&self.loaded), shared: now(&self.shared) }
    }
}

/// The innermost frames of a trap, as many as are reported.
pub(crate) const MAX_FRAMES: usize = 20;

/// The one place that decides what guests may be made of and how they are run. `pool`: how many instances to set
/// address space aside for; `None` = take memory as it is needed.
fn config(pool: Option<u32>) -> Config {
    let mut config = Config::new();
    config.concurrency_support(false);
    config.epoch_interruption(true);
    // What Rust, JavaScript and Python guests are made of stays on: simd, bulk memory, reference types, several values.
    config.wasm_component_model(true);
    config.wasm_features(UNUSED, false);
    // A name for each frame of a trap; files and lines would need debug information, which is not shipped.
    config.wasm_backtrace_max_frames(NonZeroUsize::new(MAX_FRAMES));
    config.memory_init_cow(true);
    if let Some(instances) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(instances)));
    }
    config
}

fn pooling(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    // Components made by `wit-component` have up to three core instances and two tables, one memory.
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(memories(instances))
        .total_tables(instances.saturating_mul(3))
        // A store keeps the stack that its first call on one was given.
        .total_stacks(instances)
        .max_core_instances_per_component(64)
        .max_memories_per_component(16)
        .max_tables_per_component(64)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(POOL_MEMORY_BYTES);
    // The memory of an instance that ends goes back to the system. Kept for the next one, it would have been cleared, and so be resident, to
    // its last page: 64 KB that were kept more than doubled what an instance takes, and a new one was no faster.
    pool
}

/// The instances of sessions, and those in which plugins register: hosts load theirs on all cores.
fn pooled(instances: u32) -> u32 {
    let registering = available_parallelism().map_or(1, usize::from).saturating_mul(2);
    instances.max(1).saturating_add(u32::try_from(registering).unwrap_or(u32::MAX))
}

/// One for each instance, and some for components with more than one.
fn memories(instances: u32) -> u32 {
    instances.saturating_add(instances / 4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use wasmtime::WasmFeatures;

    use super::{EngineOptions, Machine, UNUSED};

    #[test]
    fn some_instances_may_have_a_second_memory() {
        assert_eq!((super::memories(8), super::memories(u32::MAX)), (10, u32::MAX));
    }

    #[test]
    fn what_guests_may_be_made_of_is_pinned() {
        let machine = Machine::new(&EngineOptions { max_instances: 8, ..EngineOptions::default() }).unwrap();
        let on = machine.engine.get_wasm_features();
        for (name, off) in UNUSED.iter_names() {
            assert!(!on.intersects(off), "{name} is on");
        }
        for needed in [WasmFeatures::SIMD, WasmFeatures::BULK_MEMORY, WasmFeatures::REFERENCE_TYPES] {
            assert!(on.contains(needed), "{needed:?} is off");
        }
    }
}
