//! `tidegate plugin new`, `plugin build` (from a folder with Rust source to a component) and `plugin show`.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use tidegate::plugin::{LimitRequests, Manifest, PluginEntry};
use tidegate::prompt::PromptText;
use tidegate::rule::Bucket;

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, print, say, screen, style};

/// Creates a plugin from the template, and prints its files and what to do next.
pub(crate) fn new(folder: &Path, sdk: Option<&Path>) -> Result<Exit, Failure> {
    tidegate_build::create_plugin(folder, sdk).map_err(Failure::setup)?;
    let (name, mut out) = (print::tidy_path(&folder.display().to_string()), screen::out());
    let recording = tidegate_build::RECORDING;
    writeln!(out, "created {name}: Cargo.toml, plugin.toml, src/lib.rs, .gitignore, {recording}\n")?;
    writeln!(out, "next:")?;
    writeln!(out, "    (cd {name} && cargo test)       # runs its callbacks without a host")?;
    writeln!(out, "    tidegate plugin build {name}    # makes the component")?;
    writeln!(out, "    tidegate run \"Say hello\" --plugin {name} --recording {name}/{recording}    # needs no key")?;
    out.flush()?;
    Ok(Exit::Completed)
}

/// Builds the plugin in `folder` and prints the path of the component.
pub(crate) fn build(common: &Common, folder: &Path) -> Result<Exit, Failure> {
    let options = tidegate_build::Options::default();
    let built = tidegate_build::build(folder, &options, &mut |line| say::note(line)).map_err(Failure::setup)?;
    let place = built.place_beside_manifest(folder).map_err(Failure::setup)?;
    let mut out = screen::out();
    writeln!(out, "{}", flat(&place.display().to_string()))?;
    out.flush()?;
    note_pin(common, folder, &place);
    Ok(Exit::Completed)
}

/// Says where an operator's file pins another component than the one that was built: hosts do not load it until that is changed.
fn note_pin(common: &Common, folder: &Path, built: &Path) {
    // Files that cannot be read are reported by whoever uses them.
    let operator = open::files(common).read(&common.workspace).and_then(|found| found.operator());
    let (Ok(operator), Ok(digest)) = (operator, tidegate::plugin::file_digest(built)) else { return };
    let is_here = |entry: &&PluginEntry| {
        let real = |path: &Path| path.canonicalize().ok();
        real(&entry.folder) == real(folder) && entry.sha256.as_ref().is_some_and(|pinned| *pinned != digest)
    };
    for entry in operator.plugins.iter().chain(&operator.disabled).filter(is_here) {
        let file = entry.place.as_ref().map(|at| format!("{}:{}", at.file.shown(), at.line())).unwrap_or_default();
        let file = print::tidy_path(&file);
        say::note(format_args!(
            "note: {file} pins another component, so this one is not loaded; to use it, set sha256 = \"{digest}\" there"
        ));
    }
}

/// Prints what the plugin in `folder` asks for, and what is wrong with its rules. Nothing of it is run.
pub(crate) fn show(folder: &Path) -> Result<Exit, Failure> {
    let manifest = Manifest::load(folder)?;
    for finding in &manifest.findings {
        screen::block(screen::diagnostic(finding));
        screen::note("");
    }
    let mut out = screen::out();
    let (id, version) = (style::out(style::STRONG, manifest.id.as_str()), flat(&manifest.version));
    writeln!(out, "{id} {version}  {}", flat(&manifest.description))?;
    if let Some(path) = &manifest.component {
        writeln!(out, "  component: {}", component(&manifest, path))?;
    }
    for (power, why) in &manifest.capabilities {
        writeln!(out, "  power {}: {}", power.as_str(), flat(why))?;
    }
    if manifest.capabilities.is_empty() {
        writeln!(out, "  powers: none")?;
    }
    if let Some(closed) = manifest.fails_closed {
        writeln!(out, "  on failure: {}", if closed { "withhold" } else { "skip" })?;
    }
    if let Some(keep) = manifest.keep {
        writeln!(out, "  keep: {keep}")?;
    }
    let limits = limits(&manifest.limits);
    if !limits.is_empty() {
        writeln!(out, "  limits: {}, where the operator's are not smaller", limits.join(", "))?;
    }
    for (name, setting) in &manifest.settings {
        let needed = if setting.default.is_none() { ", has no default" } else { "" };
        writeln!(out, "  setting {name} ({}{needed}): {}", setting.kind.as_str(), flat(&setting.description))?;
    }
    for (name, event) in &manifest.events {
        writeln!(out, "  event {id}.{name}: {}", flat(&event.description), id = manifest.id)?;
    }
    for rule in manifest.rules.iter().filter(|rule| rule.bucket == Bucket::Stream) {
        writeln!(out, "  stream rule {}", flat(&rule.name))?;
    }
    let texts: Vec<PromptText> = manifest.prompt_texts().into_iter().chain(manifest.guidance_text()).collect();
    if !texts.is_empty() {
        writeln!(out, "  the model reads:")?;
    }
    for line in print::prompt_lines(&texts, screen::out_columns(), style::out) {
        writeln!(out, "  {line}")?;
    }
    let grants: Vec<String> = manifest.capabilities.keys().map(|power| format!("{:?}", power.as_str())).collect();
    let path = print::tidy_path(&manifest.folder.display().to_string());
    writeln!(
        out,
        "\nTo load it, add to tidegate.toml:\n\n[[plugin]]\npath = {path:?}\ngrants = [{}]",
        grants.join(", ")
    )?;
    for (name, _) in manifest.settings.iter().filter(|(_, setting)| setting.default.is_none()) {
        writeln!(out, "settings.{name} = …")?;
    }
    out.flush()?;
    let broken = manifest.findings.iter().any(tidegate::diagnostic::Diagnostic::is_error);
    Ok(if broken { Exit::Failed } else { Exit::Completed })
}

/// The component, with the digest that pins it, or why there is none.
fn component(manifest: &Manifest, path: &Path) -> String {
    let shown = |path: &Path| print::tidy_path(&path.display().to_string());
    match tidegate::plugin::file_digest(path) {
        Ok(digest) => format!("sha256 = \"{digest}\" under `[[plugin]]` pins it"),
        Err(error) if error.kind() == ErrorKind::NotFound && manifest.build.is_some() => {
            format!("{} is not built: `tidegate plugin build {}`", shown(path), shown(&manifest.folder))
        }
        Err(error) => format!("{} cannot be read: {error}", shown(path)),
    }
}

/// What the plugin asks for, as its manifest spells it.
fn limits(asked: &LimitRequests) -> Vec<String> {
    let LimitRequests {
        callback,
        text,
        turn,
        tool,
        memory_bytes,
        output_bytes,
        tool_output_bytes,
        state_ttl,
        state_bytes,
    } = *asked;
    let ms = |time: Option<Duration>| time.map(|time| time.as_millis());
    let shifted = |bytes: Option<u64>, by: u32| bytes.map(|bytes| u128::from(bytes >> by));
    [
        ("callback_ms", ms(callback)),
        ("text_ms", ms(text)),
        ("turn_ms", ms(turn)),
        ("tool_ms", ms(tool)),
        ("memory_mib", shifted(memory_bytes, 20)),
        ("output_kib", shifted(output_bytes, 10)),
        ("tool_output_kib", shifted(tool_output_bytes, 10)),
        ("state_ttl_s", state_ttl.map(|time| u128::from(time.as_secs()))),
        ("state_mib", shifted(state_bytes, 20)),
    ]
    .into_iter()
    .filter_map(|(key, value)| value.map(|value| format!("{key} = {value}")))
    .collect()
}
