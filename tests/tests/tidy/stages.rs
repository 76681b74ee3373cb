//! No stage of a turn calls back upstream: a stage may hand on to a later one, and names none that comes before it.

use crate::imports::{is_within, paths};
use crate::tree::{File, files};
use crate::{bites, hold};

/// The stages in reading order, each with its crate, and what of it the root of that crate exports.
const STAGES: [(&str, &str, &[&str]); 9] = [
    ("input", "guard", &[]),
    ("prompt", "turn", &[]),
    ("stream", "turn", &[]),
    ("relay", "guard", &["Relay", "RelayParts", "Watcher"]),
    ("segments", "guard", &["Segments"]),
    ("output", "guard", &[]),
    ("tools", "turn", &[]),
    ("calls", "guard", &[]),
    ("results", "guard", &[]),
];

/// The stage that a file belongs to: `host/CRATE/src/NAME.rs` or `host/CRATE/src/NAME/…`. Returns its place.
fn stage_of(path: &str) -> Option<usize> {
    let (home, inside) = path.strip_prefix("host/")?.split_once("/src/")?;
    let name = inside.split_once('/').map_or(inside.strip_suffix(".rs")?, |(folder, _)| folder);
    STAGES.iter().position(|(stage, of, _)| *stage == name && *of == home)
}

/// Whether a file of the crate `home` names a stage by this path. `flat`: the file is directly in `src`.
fn names((stage, of, exports): (&str, &str, &[&str]), home: &str, flat: bool, path: &str) -> bool {
    if of != home {
        let exported = exports.iter().any(|name| is_within(path, &format!("{of}::{name}")));
        return exported || is_within(path, &format!("{of}::{stage}"));
    }
    // A file directly in `src` reaches its siblings by `super`, one in a stage's folder by `super::super`.
    let roots = [format!("crate::{stage}"), format!("super::super::{stage}")];
    roots.iter().any(|root| is_within(path, root)) || (flat && is_within(path, &format!("super::{stage}")))
}

fn stages(files: &[File]) -> (Vec<&'static str>, Vec<String>) {
    let mut seen = Vec::new();
    let mut findings = Vec::new();
    for file in files {
        let Some(place) = stage_of(&file.path).filter(|_| file.is_rust()) else { continue };
        let (own, home, _) = STAGES[place];
        seen.push(own);
        let flat = file.path == format!("host/{home}/src/{own}.rs") || file.path.ends_with(&format!("/{own}/mod.rs"));
        for path in paths(&file.path, &file.text) {
            let earlier = STAGES[..place].iter().find(|stage| names(**stage, home, flat, &path));
            findings
                .extend(earlier.map(|(stage, ..)| format!("{} (stage {own}) names stage {stage}: {path}", file.path)));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    (seen, findings)
}

#[test]
fn no_stage_calls_upstream() {
    let (seen, findings) = stages(&files());
    hold("stages", seen.len(), STAGES.len(), &findings);
}

#[test]
fn a_call_upstream_is_found() {
    let file = |path: &str, text: &str| [File::sample(&format!("host/{path}"), text)];
    bites(&stages(&file("guard/src/output.rs", "use crate::relay::Relay;")).1, "(stage output) names stage relay");
    bites(&stages(&file("turn/src/tools.rs", "fn f() { super::prompt::run(); }")).1, "names stage prompt");
    bites(&stages(&file("turn/src/tools.rs", "fn f() { guard::input::run(); }")).1, "names stage input");
    bites(&stages(&file("turn/src/tools.rs", "use guard::{Caller, Relay};")).1, "names stage relay");
    bites(&stages(&file("guard/src/segments/tags.rs", "use crate::{ports, input::Input};")).1, "names stage input");
    bites(&stages(&file("guard/src/segments/tags.rs", "use super::super::input::x;")).1, "names stage input");
    assert_eq!(
        stages(&file("guard/src/segments/tags.rs", "use super::text::Unit; use super::relay;")),
        (vec!["segments"], vec![])
    );
    assert_eq!(stages(&file("turn/src/stream.rs", "use guard::{Relay, calls};")), (vec!["stream"], vec![]));
    assert_eq!(stages(&file("turn/src/run.rs", "use guard::input;")), (vec![], vec![]));
    assert_eq!(stages(&file("turn/src/input.rs", "use crate::x;")), (vec![], vec![]));
}
