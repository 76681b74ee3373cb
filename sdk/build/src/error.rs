//! Why a build fails: what, where, and what to do.

use std::path::PathBuf;

/// A build failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The folder contains no Rust package.
    #[error("{} contains no `Cargo.toml`: an extension is built from the folder of its package", .dir.display())]
    NoPackage {
        /// The folder that has no package.
        dir: PathBuf,
    },
    /// There is no such folder.
    #[error("there is no folder {}: name the folder of an extension's package, which contains its `Cargo.toml`", .dir.display())]
    NoFolder {
        /// The folder that does not exist.
        dir: PathBuf,
    },
    /// The package's manifest is not valid TOML.
    #[error("{}: {problem}", .path.display())]
    BadManifest {
        /// The path of the `Cargo.toml`.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// No way to compile to wasm was found.
    #[error("no Rust toolchain here can compile for wasm32-unknown-unknown. Tried:\n{}", list(.tried))]
    NoToolchain {
        /// Each way, with why it did not work and what would make it work.
        tried: Vec<String>,
    },
    /// A program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Start {
        /// The program that could not be started.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The package does not compile.
    #[error("{} does not build ({status}):\n{stderr}", .dir.display())]
    Cargo {
        /// The package's folder.
        dir: PathBuf,
        /// How cargo ended.
        status: String,
        /// The output of cargo and the compiler.
        stderr: String,
    },
    /// The package does not compile into a module. Found before anything is compiled.
    #[error("{} builds no module: add to its Cargo.toml\n\n[lib]\ncrate-type = [\"cdylib\"]", .dir.display())]
    NoModule {
        /// The package's folder.
        dir: PathBuf,
    },
    /// The module is not an extension.
    #[error("{} is not an extension: nothing in it calls `tidegate_sdk::export!`", .dir.display())]
    NoExport {
        /// The package's folder.
        dir: PathBuf,
    },
    /// The module cannot be made a component.
    #[error("{} cannot be made a component: {problem}", .dir.display())]
    Encode {
        /// The package's folder.
        dir: PathBuf,
        /// What the encoder refused.
        problem: String,
    },
    /// A file could not be read, written or locked.
    #[error("cannot {doing} {}: {source}", .path.display())]
    File {
        /// What was being done: `read`, `write`, `lock`.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

fn list(tried: &[String]) -> String {
    tried.iter().map(|line| format!("  - {line}")).collect::<Vec<_>>().join("\n")
}
