//! Lets a person edit the arguments of a call in their editor.

use std::io::Write as _;
use std::process::Command;

/// Opens the editor with the arguments. `None`: they were not changed.
///
/// # Errors
/// The editor cannot be started, or reports a failure: the sentence for the person.
pub(crate) fn edited(arguments: &str) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("the arguments cannot be edited: {error}");
    let mut file = tempfile::Builder::new().prefix("arguments-").suffix(".json").tempfile().map_err(failed)?;
    let shown = readable(arguments);
    writeln!(file, "{shown}").map_err(failed)?;
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|one| !one.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // Editors are commonly set with options: `code --wait`.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file.path()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("the arguments were not edited: `{editor}` ended with {status}")),
        Err(error) => return Err(format!("`{editor}` cannot be started: {error}; set EDITOR to another editor")),
    }
    // Editors replace the file, so it is opened again.
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    let text = text.trim();
    Ok((text != shown.trim()).then(|| text.to_owned()))
}

/// Arguments over several lines, where that changes nothing but white space.
fn readable(arguments: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(arguments).ok();
    let value = value.filter(|value| serde_json::to_string(value).is_ok_and(|text| text == arguments));
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| arguments.to_owned())
}
