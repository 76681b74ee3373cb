//! Rule sets of secret scanners as rule files: what a scanner looks for in files becomes what an agent must not write.
//!
//! [`import`] reads a rule set that is data, in one of the [`Format`]s, and returns the text of a rule file for each of its rules. It
//! reads and writes no file.
//!
//! text ─► `source` (which format) ─► `gitleaks`, `trufflehog`, `detect_secrets`, `engine` (spelling) ─► `set::Detector`s ─► `rule`, `draft`: the
//! group `hide` (`hide`), keywords and allow lists (`filters`, `excluded`), files (`files`), an example (`sample`) ─► `text`, loaded and tried as
//! any rule file (`trial`)
//!
//! **A feature that cannot be carried over is left out and named**, in the report and in the file ([`Feature`]). A guard without a filter of
//! its scanner matches more. It matches less only where [`Feature::Nearby`], [`Feature::Streams`], [`Feature::Engine`] or
//! [`Feature::Detector`] says so. Nothing is approximated: `unless` is not used for allow lists, because it holds for the rest of the
//! stream, so that a real secret behind an allowed one would pass.
#![forbid(unsafe_code)]

mod detect_secrets;
mod draft;
mod engine;
mod excluded;
mod files;
mod filters;
mod gitleaks;
mod hide;
mod json;
mod language;
mod left_out;
mod names;
mod rule;
mod sample;
mod set;
mod source;
mod table;
mod text;
mod trial;
mod trufflehog;

use std::path::Path;
use std::sync::Arc;

use config::Diagnostics;
use flow::SourceFile;

pub use left_out::{Feature, LeftOut};
use names::Names;
use rule::Context;
pub use rule::{Hidden, RuleText};
use set::{AllowList, Target};
pub use set::{Format, Skipped};

/// A rule set as rule files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The format of the file.
    pub format: Format,
    /// How many rules it has, with those that are skipped.
    pub read: usize,
    /// The rule files, in the order of the rule set.
    pub rules: Vec<RuleText>,
    /// Rules without a file.
    pub skipped: Vec<Skipped>,
    /// The features of the rule set, in addition to those of its rules, that no file has.
    pub left_out: Vec<LeftOut>,
}

/// Reads a rule set. Each rule has been loaded as a rule file, can fire, and fires on its example.
///
/// # Errors
/// The file is in none of the formats, or is not valid in its own; the places of what is wrong.
pub fn import(source: &Arc<SourceFile>) -> Result<Imported, Diagnostics> {
    let set = source::read(source)?;
    let context = Context { format: set.format, allowed: &set.allowed, source };
    let mut names = Names::default();
    let (mut rules, mut skipped) = (Vec::new(), set.skipped);
    let read = set.detectors.len() + skipped.len();
    for detector in &set.detectors {
        match rule::write(detector, &context, &mut names) {
            Ok(rule) => rules.push(rule),
            Err(why) => skipped.push(Skipped { id: detector.id.clone(), why: *why }),
        }
    }
    let mut left_out = set.left_out;
    left_out.extend(set.allowed.iter().flat_map(of_files));
    Ok(Imported { format: set.format, read, rules, skipped, left_out })
}

/// The entries of an allow list of the set that are not about the text of a match.
fn of_files(list: &AllowList) -> Vec<LeftOut> {
    let entries = |number: usize| format!("{number} {}", if number == 1 { "entry" } else { "entries" });
    let lines = if list.target == Target::Line { list.expressions.len() } else { 0 };
    let all = [
        (Feature::AllowedFiles, list.paths.len(), ""),
        (Feature::Commits, list.commits, ""),
        (Feature::SetAllowList, lines, " about the line"),
    ];
    let some = all.into_iter().filter(|(_, number, _)| *number > 0);
    some.map(|(feature, number, of)| LeftOut::new(feature, format!("{}{of}", entries(number)))).collect()
}

/// The name of the rule set in a file: that of the file, without dots before it and without its extension.
pub fn set_name(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().trim_start_matches('.');
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("imported")
}
