//! `tidegate plugin list`.

use std::io::Write;

use tidegate::{CallbackKind, Host, Loaded};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, print, screen, style};

/// Prints the plugins, and for each callback who is called in which order.
pub(crate) async fn plugins(common: &Common) -> Result<Exit, Failure> {
    let host = load(common).await?;
    let plugins = host.plugins();
    let mut out = screen::out();
    if plugins.is_empty() {
        writeln!(out, "no plugins: add `[[plugin]]` entries to tidegate.toml, or give --plugin DIR")?;
    }
    for plugin in &plugins {
        writeln!(
            out,
            "{} {}  {}",
            style::out(style::STRONG, plugin.id.as_str()),
            flat(&plugin.version),
            flat(&plugin.description)
        )?;
        let powers = if plugin.powers.is_empty() { "none".to_owned() } else { plugin.powers.join(", ") };
        writeln!(out, "  powers: {powers}; stream rules: {}; prompt additions: {}", plugin.rules, plugin.prompts)?;
        writeln!(out, "  from {}", print::tidy_path(&plugin.folder.display().to_string()))?;
    }
    let chains = CallbackKind::ALL.map(|callback| (callback, host.chain(callback)));
    if chains.iter().any(|(_, chain)| !chain.is_empty()) {
        writeln!(out, "\nOrder of calls (priority; the last one has the last word):")?;
    }
    for (callback, chain) in chains {
        if !chain.is_empty() {
            let names: Vec<String> = chain.iter().map(|(id, priority)| format!("{id} ({priority})")).collect();
            writeln!(out, "  {:<18} {}", callback.as_str(), names.join(" → "))?;
        }
    }
    print::warnings(&host);
    Ok(Exit::Completed)
}

async fn load(common: &Common) -> Result<Loaded, Failure> {
    let builder = Host::builder(open::operator(common)?, &common.workspace).max_instances(open::MAX_INSTANCES);
    Ok(builder.load().await?)
}
