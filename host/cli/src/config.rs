//! `tidegate config show`: the settings in force with where they come from, and defaults of tables.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tidegate::config::{SettingInForce, SettingOrigin};

use crate::args::{Common, ConfigCommand, DefaultTable};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, print, say, screen, style};

pub(crate) fn run(common: &Common, command: &ConfigCommand) -> Result<Exit, Failure> {
    let ConfigCommand::Show { origin, json, defaults, table } = command;
    if *defaults {
        return default(table.unwrap_or(DefaultTable::Events));
    }
    show(common, *origin, *json)
}

fn default(table: DefaultTable) -> Result<Exit, Failure> {
    let text = match table {
        DefaultTable::Events => tidegate::config::default_thread_events(),
        DefaultTable::Errors => tidegate::config::default_errors(),
        DefaultTable::Limits => tidegate::config::default_thread_limits(),
    };
    let mut out = screen::out();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Exit::Completed)
}

/// Prints the settings in force, one a line, as TOML has it.
///
/// JSON is an array; `origin` is empty for a default of the program:
/// ```json
/// [{"name": "provider.model", "value": "claude-sonnet-4-5", "origin": [{"layer": "user", "file": "…/tidegate.toml", "line": 3}]}]
/// ```
fn show(common: &Common, with_origin: bool, json: bool) -> Result<Exit, Failure> {
    let user = open::files(common).user_file();
    let user = user.as_deref().and_then(Path::parent);
    let (settings, found) = open::operator(common)?.in_force(user, &common.workspace)?;
    for one in found {
        screen::block(screen::diagnostic(&one));
        screen::note("");
    }
    note_what_is_above(common)?;
    if json {
        screen::json(&settings.iter().map(as_json).collect())?;
        return Ok(Exit::Completed);
    }
    let mut out = screen::out();
    for setting in &settings {
        let line = flat(&setting.toml());
        match with_origin {
            true => {
                let from = style::out(style::DIM, &format!("  # {}", origin(&setting.origin)));
                writeln!(out, "{line}{from}")?;
            }
            false => writeln!(out, "{line}")?,
        }
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Notes what overrides the files.
fn note_what_is_above(common: &Common) -> Result<(), Failure> {
    if !common.plugin.is_empty() || !common.set.is_empty() {
        say::note(format_args!(
            "note: --plugin, --grant and --set come on top of these settings, and are not in the list"
        ));
    }
    if tidegate::config::machine_policy()?.is_some() {
        say::note(format_args!(
            "note: the policy of this machine is above these settings; `tidegate doctor` prints it"
        ));
    }
    Ok(())
}

fn origin(origin: &[SettingOrigin]) -> String {
    let place = |one: &SettingOrigin| {
        format!("{}: {}:{}", one.layer.as_str(), print::tidy_path(&one.file.display().to_string()), one.line)
    };
    match origin {
        [] => "default".to_owned(),
        all => all.iter().map(place).collect::<Vec<_>>().join(", "),
    }
}

fn as_json(setting: &SettingInForce) -> Value {
    let place = |one: &SettingOrigin| json!({"layer": one.layer.as_str(), "file": one.file.display().to_string(), "line": one.line});
    json!({
        "name": setting.name,
        "value": setting.value,
        "origin": setting.origin.iter().map(place).collect::<Vec<_>>(),
    })
}
