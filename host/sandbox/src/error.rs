//! Why a plugin is not loaded: what was expected, what was found, and what to write.

use std::path::PathBuf;

use flow::{CallbackKind, FailureCause, PluginId, Power};

/// A plugin was refused.
#[derive(Debug, thiserror::Error)]
#[error("plugin `{plugin}` {problem}")]
#[non_exhaustive]
pub struct LoadError {
    /// The plugin that could not be loaded.
    pub plugin: PluginId,
    /// What kept it from being loaded.
    pub problem: LoadProblem,
}

/// Why a plugin was refused. The message continues "plugin `id` …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadProblem {
    /// The program has no engine.
    #[error(
        "cannot be loaded: this program was built without WebAssembly; build it with the feature `wasm` of the crate `tidegate`, or leave the \
         plugin out"
    )]
    NoEngine,
    /// Its component cannot be read.
    #[error("cannot be loaded: {path}: {error}", path = .path.display())]
    Read {
        /// The path of the component.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// Its component is not the one that is pinned.
    #[error("cannot be loaded: its component has the SHA-256 {found}, and {expected} is pinned")]
    OtherDigest {
        /// The digest that the component must have, in hexadecimal digits.
        expected: String,
        /// The digest that it has.
        found: String,
    },
    /// Its component is too large to be read.
    #[error("cannot be loaded: its component has {bytes} bytes, at most {max} are read")]
    TooLarge {
        /// The component's size in bytes.
        bytes: u64,
        /// The most that is read.
        max: u64,
    },
    /// The file is not WebAssembly.
    #[error("cannot be loaded: its component is not WebAssembly (it begins with {found:?}, not with \"\\0asm\")")]
    NotWasm {
        /// The first bytes, as text.
        found: String,
    },
    /// The file is a core module.
    #[error(
        "cannot be loaded: its file is a core module, not a component; build it with `tidegate plugin build`, or wrap it with \
         `wasm-tools component new`"
    )]
    CoreModule,
    /// The file is WebAssembly that the engine refuses.
    #[error("cannot be loaded: its component is not valid: {0}")]
    Invalid(String),
    /// It was built for another version of the contract.
    #[error(
        "was built for version {found} of the contract (it names `{name}`), this host implements {spoken}; {}",
        if *.newer { "update the host, or build the plugin with an SDK of at most that version" } else { "build the plugin again with an SDK of that version" }
    )]
    WrongContract {
        /// The version it names.
        found: String,
        /// The interface that names another version, as the component spells it.
        name: String,
        /// The version this host implements.
        spoken: &'static str,
        /// A newer host could run it.
        newer: bool,
    },
    /// It exports `migration`, which nothing would call.
    #[error(
        "exports `migration`, but no older state can exist: `state_version` in plugin.toml is 1; raise it when the format of \
         what the plugin keeps in `state` changes, or leave the export out"
    )]
    Migration,
    /// It is a component, but no extension.
    #[error(
        "is not a Tidegate extension: its component does not export `{expected}`; a plugin in Rust exports it with the macro \
         `tidegate_sdk::export!`"
    )]
    NoRegistration {
        /// The interface that every extension exports.
        expected: String,
    },
    /// It imports what there is not.
    #[error("imports `{name}`, which this host does not have; {hint}")]
    UnknownImport {
        /// The import that the contract does not have.
        name: String,
        /// What may help.
        hint: &'static str,
    },
    /// It exports an interface of the contract that there is not.
    #[error(
        "exports `{name}`, which is neither a callback nor `tool-provider` of contract {spoken}; it would never be called"
    )]
    UnknownExport {
        /// The export that the contract does not have.
        name: String,
        /// The version that this host implements.
        spoken: &'static str,
    },
    /// It imports a power, or exports what needs one, that its manifest does not ask for.
    #[error(
        "{how} `{power}`, which its manifest does not request; its author must write in plugin.toml:\n\
         [capabilities]\n{power} = \"why it is needed\""
    )]
    PowerNotAsked {
        /// The power that the component needs.
        power: Power,
        /// What of the component needs it.
        how: &'static str,
    },
    /// It asks for a power that the operator does not grant.
    #[error(
        "requests the power `{power}`, which is not granted; to grant it, write in tidegate.toml at this plugin:\n\
         [[plugin]]\ngrants = [\"{power}\"]"
    )]
    PowerNotGranted {
        /// The power that the component needs.
        power: Power,
    },
    /// An import or export has other types than the contract.
    #[error("does not conform to the contract: {0}")]
    Types(String),
    /// `register` trapped, returned an error, or took too long.
    #[error("could not register ({}): {message}{}", .cause.as_str(), lines(.frames))]
    Register {
        /// What kind of failure.
        cause: FailureCause,
        /// The error or trap in one sentence.
        message: String,
        /// Guest frames, innermost first.
        frames: Vec<String>,
    },
    /// What `register` returned makes no sense.
    #[error("registers an impossible callback: {0}")]
    BadRegistration(String),
    /// It registers a callback that it does not export.
    #[error("registers {}, but its component does not export `{interface}`: the callback could not be called", .callback.as_str())]
    NotExported {
        /// The callback that the error is about.
        callback: CallbackKind,
        /// The interface that is missing.
        interface: String,
    },
    /// It exports a callback that it does not register.
    #[error("exports `{interface}`, but `register` does not return {}: the callback would never be called", .callback.as_str())]
    NotRegistered {
        /// The callback that the error is about.
        callback: CallbackKind,
        /// The interface that is exported for it.
        interface: String,
    },
    /// Its manifest declares a callback that it does not register.
    #[error("declares {} in its manifest, but `register` does not return it: the callback would never be called", .callback.as_str())]
    OnlyDeclared {
        /// The callback that the error is about.
        callback: CallbackKind,
    },
    /// It registers a callback that its manifest does not declare.
    #[error("registers {}, which its manifest does not declare; add it there, or do not register it", .callback.as_str())]
    NotDeclared {
        /// The callback that the error is about.
        callback: CallbackKind,
    },
    /// `tools` of its `tool-provider` trapped or took too long.
    #[error("could not list its tools ({}): {message}{}", .cause.as_str(), lines(.frames))]
    ListTools {
        /// What kind of failure.
        cause: FailureCause,
        /// The trap in one sentence.
        message: String,
        /// Guest frames, innermost first.
        frames: Vec<String>,
    },
    /// It provides no tool, or more than a plugin is allowed to.
    #[error("provides {count} tools; a plugin that exports `tool-provider` provides 1 to {max}")]
    ToolCount {
        /// The number of its tools.
        count: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// A tool that it provides is not valid.
    #[error("provides the invalid tool `{}`: {why}", .tool.escape_debug())]
    Tool {
        /// The tool's name, as far as it can be shown.
        tool: String,
        /// What is wrong, and what to do about it.
        why: String,
    },
    /// The operator gives a priority for what it does not register, or one that cannot be.
    #[error("cannot have priority {priority} for {}: {why}", .callback.as_str())]
    Priority {
        /// The callback that the error is about.
        callback: CallbackKind,
        /// What the operator wrote.
        priority: u8,
        /// The reason why the priority is invalid.
        why: String,
    },
}

fn lines(frames: &[String]) -> String {
    frames.iter().map(|frame| format!("\n  in {frame}")).collect()
}

/// Two plugins have the same id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two plugins have the id `{0}`; an id names one plugin")]
pub struct DuplicatePlugin(pub PluginId);
