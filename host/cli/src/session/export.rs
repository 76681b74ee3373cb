//! `tidegate session export` and `tidegate explain TURN`: a recorded session as a page, and what changed in one of its turns.

use std::io::Write;
use std::path::Path;

use report::Report;
use tidegate::transcript::TranscriptStore;
use tidegate::{SessionId, record};

use super::{as_json, store};
use crate::args::{Common, ExplainArgs, ExportFormat};
use crate::exit::{Exit, Failure};
use crate::screen::clean::{self, flat};
use crate::{open, private, screen};

/// Writes a session to standard output, or to a file that only the user can read, as transcripts are.
pub(crate) fn export(
    store: &TranscriptStore,
    id: &SessionId,
    format: ExportFormat,
    file: Option<&Path>,
) -> Result<Exit, Failure> {
    let text = match format {
        ExportFormat::Markdown => report::markdown(&read(store, id)?),
        ExportFormat::Html => report::html(&read(store, id)?),
        ExportFormat::Jsonl => lines(store, id)?,
    };
    match file {
        Some(file) => private::write(file, &text).map_err(|error| {
            Failure::late(format_args!("cannot write `{}`: {error}", flat(&file.display().to_string())))
        })?,
        None => {
            let mut out = screen::out();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(Exit::Completed)
}

/// The format that the ending of a file's name stands for.
///
/// # Errors
/// It has none, or an unknown one: the endings that there are.
pub(crate) fn export_format(file: &Path) -> Result<ExportFormat, Failure> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    Ok(match ending.as_deref() {
        Some("md" | "markdown") => ExportFormat::Markdown,
        Some("html" | "htm") => ExportFormat::Html,
        Some("jsonl") => ExportFormat::Jsonl,
        _ => {
            let why = ending
                .map_or_else(|| "its name has no ending".to_owned(), |ending| format!("`.{ending}` is no format"));
            let (name, why) = (flat(&file.display().to_string()), flat(&why));
            return Err(Failure::setup(format_args!(
                "cannot export to `{name}`: {why}; end the name with `.md` (Markdown), `.html` (a page) or `.jsonl` (the records)"
            )));
        }
    })
}

/// Explains a turn of a recorded session, by default the last of the latest session of the workspace.
///
/// JSON is one object: `{"session", "turn", "status", "changes": [{"step", "attempt", "kind", "by", "reason", "evidence", "before", "after",
/// "diff": [{"op", "text"}]}], "notes": ["…"]}`; `op` is `same`, `removed` or `added`.
pub(crate) fn explain(common: &Common, args: &ExplainArgs) -> Result<Exit, Failure> {
    let store = store(open::operator(common)?)?;
    let id = match &args.session {
        Some(session) => store.find(session)?,
        None => store.latest(&common.workspace)?,
    };
    let report = read(&store, &id)?;
    let Some(explanation) = report::explain(&report, args.turn) else {
        return Err(Failure::setup(match args.turn {
            Some(turn) => format!("the session `{}` has no turn {turn}", flat(id.as_str())),
            None => format!("the session `{}` has no turn yet", flat(id.as_str())),
        }));
    };
    if args.json {
        screen::json(&serde_json::to_value(&explanation).map_err(Failure::late)?)?;
    } else {
        let mut out = screen::out();
        write!(out, "{}", explanation.text())?;
        out.flush()?;
    }
    Ok(Exit::Completed)
}

/// The report of a session.
fn read(store: &TranscriptStore, id: &SessionId) -> Result<Report, Failure> {
    let mut failed = None;
    let records = store.read(id)?.records::<record::Record>();
    let mut report = Report::of(records.map_while(|entry| match entry {
        Ok(entry) => Some(entry.record),
        Err(error) => {
            failed = Some(error);
            None
        }
    }));
    // A fork without records of its own has only its parent's.
    id.as_str().clone_into(&mut report.session);
    failed.map_or(Ok(report), |error| Err(error.into()))
}

/// The transcript with the records that a fork shares with its parent, as one that is no fork: the header, and the records as lines of JSON.
/// They are exact, and a terminal does not act on them.
fn lines(store: &TranscriptStore, id: &SessionId) -> Result<String, Failure> {
    let reader = store.read(id)?;
    let mut header = reader.header().clone();
    header.parent = None;
    let line = |value: &serde_json::Value| format!("{}\n", clean::json(&value.to_string()));
    let mut text = line(&serde_json::to_value(&header).map_err(Failure::late)?);
    for entry in reader.records::<record::Record>() {
        text.push_str(&line(&as_json(&entry?.record)?));
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_is_its_format() {
        for (name, format) in [
            ("a.md", Some(ExportFormat::Markdown)),
            ("a.b/c.HTML", Some(ExportFormat::Html)),
            ("a.htm", Some(ExportFormat::Html)),
            ("a.html.jsonl", Some(ExportFormat::Jsonl)),
            ("a.json", None),
            ("notes", None),
            (".md", None),
        ] {
            assert_eq!(export_format(Path::new(name)).ok(), format, "{name}");
        }
    }
}
