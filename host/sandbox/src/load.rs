//! From a file to a plugin that can be called, or to the reason why not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow::{BreakerState, CallbackKind, DecidedBy, KeptText, OnFailure, PluginId, Registered, Registration};
use wasmtime::component::{Component, Linker};

use crate::breakers::HostBreakers;
use crate::engine::Machine;
use crate::error::{LoadError, LoadProblem};
use crate::failure::{Described, describe, describe_start};
use crate::guest::{Guest, Identity, Ready, Scene};
use crate::interface::Interface;
use crate::limits::GuestLimits;
use crate::options::{EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts};
use crate::schema::Tool;
use crate::source::PluginSource;
use crate::tools;
use crate::v0_1::{self, Exports, RegisterFault};
use crate::wasm::Wasm;
use crate::{cache, check};

/// The engine that plugins run in. One per process; a clone is the same engine.
#[derive(Clone, Debug)]
pub struct Sandbox {
    machine: Arc<Machine>,
}

/// A plugin that passed all checks. A clone is the same plugin.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub(crate) loaded: Arc<Loaded>,
}

/// What is shared by all instances of a plugin.
pub(crate) struct Loaded {
    pub(crate) machine: Arc<Machine>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) registration: Registration,
    tools: Vec<Tool>,
    pub(crate) ready: Ready,
    pub(crate) exports: Exports,
    digest: String,
    pub(crate) imports: BTreeSet<Interface>,
    /// For all sessions. Another version, and another host, has its own.
    pub(crate) breakers: Arc<HostBreakers>,
}

impl Sandbox {
    /// Starts the engine.
    ///
    /// # Errors
    /// The engine cannot run on this machine at all. What else of the options could not be had is in
    /// [`Sandbox::report`].
    pub fn new(options: &EngineOptions) -> Result<Self, EngineError> {
        Ok(Self { machine: Machine::new(options)? })
    }

    /// What of the options could not be had.
    pub fn report(&self) -> &EngineReport {
        &self.machine.report
    }

    /// How many components were compiled, and how many found compiled.
    pub fn counts(&self) -> EngineCounts {
        self.machine.counts()
    }

    /// How many instances there are, and how often that was too few.
    pub fn instances(&self) -> InstanceCounts {
        self.machine.instances.counts()
    }

    /// A number that no other engine of the process has.
    pub fn id(&self) -> u64 {
        self.machine.id
    }

    /// Returns what gives [`Sandbox::instances`], and `None` once the engine is gone. It takes no lock, and does not keep the engine.
    pub fn watch_instances(&self) -> impl Fn() -> Option<InstanceCounts> + Send + Sync + 'static {
        let machine = Arc::downgrade(&self.machine);
        move || machine.upgrade().map(|machine| machine.instances.counts())
    }

    /// Loads a plugin: checks its component against its manifest and what it was granted, compiles it (or takes it
    /// from the cache) and has it register.
    ///
    /// Blocks: compiling takes milliseconds to seconds. From async code call it with `spawn_blocking`.
    ///
    /// # Errors
    /// The first thing that is wrong, with what to do about it.
    pub fn load(&self, source: PluginSource) -> Result<Plugin, LoadError> {
        let id = source.id.clone();
        match self.try_load(source) {
            Ok(loaded) => Ok(Plugin { loaded: Arc::new(loaded) }),
            Err(problem) => Err(LoadError { plugin: id, problem }),
        }
    }

    fn try_load(&self, source: PluginSource) -> Result<Loaded, LoadProblem> {
        let wasm = Wasm::open(&source.component)?;
        let digest = cache::hex(&wasm.digest);
        if let Some(expected) = source.sha256.filter(|expected| *expected != digest) {
            return Err(LoadProblem::OtherDigest { expected, found: digest });
        }
        let component = self.machine.component(&wasm)?;
        let surface = check::surface(&component, &self.machine.engine)?;
        check::powers(&surface, &source.asked, &source.granted)?;
        if surface.migrates && source.state_version <= 1 {
            return Err(LoadProblem::Migration);
        }
        let ready = self.link(&component, &surface.imports)?;
        let types = |error: wasmtime::Error| LoadProblem::Types(format!("{error:#}"));
        let exports = Exports::find(&ready, &surface).map_err(types)?;
        let identity = Arc::new(Identity {
            id: source.id,
            settings: source.settings,
            limits: source.limits,
            state_version: source.state_version,
            discreet: false,
        });
        let (callbacks, tools) = self.register(&identity, &ready, &exports)?;
        let registered = callbacks.iter().map(Registered::kind).collect();
        check::callbacks(&surface.callbacks, &registered, source.declared.as_ref())?;
        let mut callbacks = with_priorities(callbacks, &source.priorities)?;
        decide_on_failure(&mut callbacks, source.fails_closed, source.operator_fails_closed);
        decide_keep(&mut callbacks, source.keep, source.operator_keep);
        let guards = source.required || callbacks.iter().any(Registered::guards);
        let identity = identity.discreet(guards && !source.full_diagnostics);
        let (plugin, version, required) = (identity.id.clone(), source.version, source.required);
        let provided = tools.iter().map(|tool| tool.provided.clone()).collect();
        let registration = Registration { plugin, version, callbacks, tools: provided, required };
        let machine = Arc::clone(&self.machine);
        let (imports, breakers) = (surface.imports, Arc::new(HostBreakers::new()));
        Ok(Loaded { machine, identity, registration, tools, ready, exports, digest, imports, breakers })
    }

    /// Links the component to the interfaces that it imports; the linker has no others.
    fn link(&self, component: &Component, imports: &BTreeSet<Interface>) -> Result<Ready, LoadProblem> {
        let types = |error: wasmtime::Error| LoadProblem::Types(format!("{error:#}"));
        let mut linker = Linker::new(&self.machine.engine);
        v0_1::link(&mut linker, imports).map_err(types)?;
        linker.instantiate_pre(component).map_err(types)
    }

    /// Calls `register`, and `tools` where the component has it, in a temporary instance, and checks the types of all exports on
    /// the way.
    fn register(
        &self,
        identity: &Arc<Identity>,
        ready: &Ready,
        exports: &Exports,
    ) -> Result<(Vec<Registered>, Vec<Tool>), LoadProblem> {
        let time = identity.limits.time;
        let millis = time.as_millis();
        let _ticking = self.machine.ticking();
        let mut store = Guest::store(&self.machine, Arc::clone(identity), Scene::Register);
        let meter = Arc::clone(&store.data().meter);
        Guest::begin(&mut store, time, true);
        let instance = meter
            .stretch(|| ready.instantiate(&mut store))
            .map_err(|error| refused(describe_start(&error, &mut store, millis)))?;
        exports.load(&mut store, &instance).map_err(|error| LoadProblem::Types(format!("{error:#}")))?;
        Guest::begin(&mut store, time, true);
        let registered = meter.stretch(|| v0_1::register(exports, &mut store, &instance));
        store.data_mut().end_log();
        let registered = registered.map_err(|fault| match fault {
            RegisterFault::Bad(why) => LoadProblem::BadRegistration(why),
            RegisterFault::Call(fault) => refused(describe(fault, &mut store, millis)),
        })?;
        if !exports.provide_tools() {
            return Ok((registered, Vec::new()));
        }
        Guest::begin(&mut store, time, true);
        let listed = meter.stretch(|| v0_1::tools(exports, &mut store, &instance));
        store.data_mut().end_log();
        let listed = listed.map_err(|fault| {
            let Described { cause, message, frames } = describe(fault, &mut store, millis);
            LoadProblem::ListTools { cause, message, frames }
        })?;
        Ok((registered, tools::check(listed, self.machine.cache.as_ref())?))
    }
}

fn refused(described: Described) -> LoadProblem {
    let Described { cause, message, frames } = described;
    LoadProblem::Register { cause, message, frames }
}

fn with_priorities(
    mut callbacks: Vec<Registered>,
    wanted: &BTreeMap<CallbackKind, u8>,
) -> Result<Vec<Registered>, LoadProblem> {
    for (&callback, &priority) in wanted {
        let refuse = |why| LoadProblem::Priority { callback, priority, why };
        if priority > 100 {
            return Err(refuse("priorities go from 0 to 100".to_owned()));
        }
        match callbacks.iter_mut().find(|registered| registered.kind() == callback) {
            Some(one) => one.priority = priority,
            None => return Err(refuse(not_registered(&callbacks))),
        }
    }
    Ok(callbacks)
}

fn not_registered(callbacks: &[Registered]) -> String {
    let names: Vec<&str> = callbacks.iter().map(|one| one.kind().as_str()).collect();
    let registers =
        if names.is_empty() { "it registers none".to_owned() } else { format!("it registers {}", names.join(", ")) };
    format!("the plugin does not register this callback; {registers}")
}

/// The operator decides, else the registration of the callback, else the manifest.
fn decide_on_failure(callbacks: &mut [Registered], manifest: Option<bool>, operator: Option<bool>) {
    for one in callbacks {
        let (closed, by) = match (operator, one.decided_by, manifest) {
            (Some(closed), _, _) => (closed, DecidedBy::Operator),
            (None, DecidedBy::Default, Some(closed)) => (closed, DecidedBy::Manifest),
            (None, _, _) => continue,
        };
        let policy = OnFailure::closed(&one.callback).filter(|_| closed);
        // A callback that cannot fail closed is always skipped.
        one.decided_by = if closed && policy.is_none() { DecidedBy::Default } else { by };
        one.on_failure = policy.unwrap_or(OnFailure::Skip);
    }
}

/// The operator decides, else the registration of the callback, else the manifest.
fn decide_keep(callbacks: &mut [Registered], manifest: Option<KeptText>, operator: Option<KeptText>) {
    for one in callbacks.iter_mut().filter(|one| KeptText::is_choice_of(&one.callback)) {
        let (keep, by) = match (operator, one.keep_by, manifest) {
            (Some(keep), _, _) => (keep, DecidedBy::Operator),
            (None, DecidedBy::Default, Some(keep)) => (keep, DecidedBy::Manifest),
            (None, _, _) => continue,
        };
        (one.keep, one.keep_by) = (keep, by);
    }
}

impl Plugin {
    /// Returns the plugin's id.
    pub fn id(&self) -> &PluginId {
        &self.loaded.identity.id
    }

    /// Its version, human-readable.
    pub fn version(&self) -> &str {
        &self.loaded.registration.version
    }

    /// SHA-256 of its component, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// What it registered, with the operator's priorities.
    pub fn registration(&self) -> &Registration {
        &self.loaded.registration
    }

    /// The tools that it provides, with their schemas.
    pub fn tools(&self) -> &[Tool] {
        &self.loaded.tools
    }

    /// Whether its component exports `migration`, which is called where an older version wrote the state of a session.
    pub fn migrates(&self) -> bool {
        self.loaded.exports.migrate()
    }

    /// The interfaces that its component imports; it is given these and no others.
    pub fn imports(&self) -> &BTreeSet<Interface> {
        &self.loaded.imports
    }

    /// Returns what gives the state of the circuit breaker that its callbacks have for all sessions, and `None` once neither this plugin
    /// nor a session that uses it is left. It takes no lock, and does not keep the plugin.
    pub fn breaker_state(&self) -> impl Fn() -> Option<BreakerState> + Send + Sync + 'static {
        let breakers = Arc::downgrade(&self.loaded.breakers);
        move || breakers.upgrade().map(|breakers| breakers.of_callbacks())
    }

    /// What it may use up.
    pub fn limits(&self) -> &GuestLimits {
        &self.loaded.identity.limits
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("registration", &self.registration)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}
