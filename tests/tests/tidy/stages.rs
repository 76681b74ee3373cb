//! No stage of a turn calls back upstream: a stage may hand on to a later one, and names none that comes before it.

use crate::imports::{is_within, paths};
use crate::tree::{File, files};
use crate::{bites, hold};

/// The stages, in reading order.
const STAGES: [&str; 6] = ["input", "prompt", "stream", "segments", "output", "tools"];

/// The stage that a file belongs to: `host/turn/src/NAME.rs` or `host/turn/src/NAME/…`.
fn stage_of(path: &str) -> Option<&'static str> {
    let inside = path.strip_prefix("host/turn/src/")?;
    let name = inside.split_once('/').map_or(inside.strip_suffix(".rs")?, |(folder, _)| folder);
    STAGES.into_iter().find(|stage| *stage == name)
}

fn stages(files: &[File]) -> (Vec<&'static str>, Vec<String>) {
    let mut seen = Vec::new();
    let mut findings = Vec::new();
    for file in files {
        let Some(own) = stage_of(&file.path).filter(|_| file.is_rust()) else { continue };
        seen.push(own);
        for path in paths(&file.path, &file.text) {
            let names = |stage: &&str| {
                // A file directly in `src` reaches its siblings by `super`, one in a stage's folder by `super::super`.
                let roots = [format!("crate::{stage}"), format!("super::super::{stage}")];
                let sibling = format!("super::{stage}");
                let flat =
                    file.path == format!("host/turn/src/{own}.rs") || file.path.ends_with(&format!("/{own}/mod.rs"));
                roots.iter().any(|root| is_within(&path, root)) || (flat && is_within(&path, &sibling))
            };
            let earlier = STAGES.iter().take_while(|stage| **stage != own).find(|stage| names(stage));
            findings.extend(earlier.map(|stage| format!("{} (stage {own}) names stage {stage}: {path}", file.path)));
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
    let file = |path: &str, text: &str| [File::sample(&format!("host/turn/src/{path}"), text)];
    bites(&stages(&file("output.rs", "use crate::stream::Gate;")).1, "output.rs (stage output) names stage stream");
    bites(&stages(&file("tools.rs", "fn f() { super::input::run(); }")).1, "names stage input");
    bites(&stages(&file("segments/tags.rs", "use crate::{ports, prompt::Prompt};")).1, "names stage prompt");
    bites(&stages(&file("segments/tags.rs", "use super::super::input::x;")).1, "names stage input");
    assert_eq!(
        stages(&file("segments/tags.rs", "use super::text::Unit; use super::stream;")),
        (vec!["segments"], vec![])
    );
    assert_eq!(stages(&file("stream.rs", "use crate::segments::Segments;")), (vec!["stream"], vec![]));
    assert_eq!(stages(&file("run.rs", "use crate::{input, output};")), (vec![], vec![]));
}
