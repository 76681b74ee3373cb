//! `tidegate rules import`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::Path;

use ::import::{Feature, Hidden, Imported, RuleText, Skipped, import, set_name};
use serde_json::{Value, json};
use tidegate::diagnostic::SourceFile;

use super::rule_files::{self, file_of};
use super::{count, json as shapes};
use crate::args::RulesImport;
use crate::exit::{Exit, Failure};
use crate::print::tidy_path;
use crate::{say, screen, style};

/// A rule set has at most this many bytes.
const MAX_INPUT: u64 = 16 << 20;

/// The columns of a list of names.
const COLUMNS: usize = 100;

/// With more rules than these, what most of them have is listed by those that do not.
const FEW: usize = 20;

/// Imports a rule set.
///
/// JSON is one object; without `--dry-run` the files of `rules` were written into `folder`:
/// ```json
/// {"format": "gitleaks rules", "read": 3, "folder": ".tidegate/rules/gitleaks", "written": true,
///  "rules": [{"name": "acme-key", "id": "acme-key", "line": 4, "file": "acme-key.md", "enabled": true, "disabled": null,
///    "hidden": "secret", "left_out": [{"feature": "entropy", "about": "…", "what": "more than 3.5"}]}],
///  "skipped": [{"id": "broken", "finding": {"code": "rule-invalid-condition", "message": "…", "line": 12}}],
///  "left_out": [{"feature": "extended", "about": "…", "what": "the default of gitleaks"}],
///  "others": ["old.md"], "in_the_way": []}
/// ```
/// `hidden` is `secret` where only the secret is hidden and not the full match; `others` are rule files that were in the folder and are
/// none of this rule set; `in_the_way` are those that have the name of a rule, which `--replace` overwrites.
pub(super) fn run(workspace: &Path, args: &RulesImport) -> Result<Exit, Failure> {
    let imported = import(&SourceFile::new(&args.file, read(&args.file)?))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => rule_files::own_folder(workspace, set_name(&args.file))?,
    };
    let others = rule_files::others(&folder, &imported.rules)?;
    let in_the_way = rule_files::in_the_way(&folder, &imported.rules);
    let refused = rule_files::refused(&folder, &in_the_way).filter(|_| !args.replace);
    let done = Done { args, folder: &folder, imported: &imported, others: &others, in_the_way: &in_the_way };
    match (refused, args.dry_run) {
        (Some(failure), false) => Err(failure),
        // The report first: it is what was asked for.
        (Some(failure), true) => report(&done).and(Err(failure)),
        (None, true) => report(&done),
        (None, false) => {
            rule_files::write(&folder, &imported.rules, args.replace)?;
            report(&done)
        }
    }
}

fn report(done: &Done<'_>) -> Result<Exit, Failure> {
    let Done { args, imported, .. } = done;
    if args.json {
        screen::json(&done.as_json())?;
    } else {
        done.text(&mut screen::out())?;
    }
    Ok(if imported.rules.is_empty() { Exit::Failed } else { Exit::Completed })
}

fn read(file: &Path) -> Result<String, Failure> {
    let failed =
        |cause: &dyn std::fmt::Display| Failure::setup(format_args!("cannot read `{}`: {cause}", file.display()));
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| failed(&error))?;
    let bytes = opened.take(MAX_INPUT + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if bytes as u64 > MAX_INPUT {
        return Err(failed(&format_args!("it has more than {MAX_INPUT} bytes")));
    }
    Ok(text)
}

/// The result of the command, to be reported.
struct Done<'a> {
    args: &'a RulesImport,
    folder: &'a Path,
    imported: &'a Imported,
    others: &'a [String],
    in_the_way: &'a [String],
}

impl Done<'_> {
    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Imported { format, read, rules, skipped, .. } = self.imported;
        let all = count(*read as u64, "rule", "rules");
        writeln!(out, "{}: {format}, {all} read", self.args.file.display())?;
        for Skipped { id, why } in skipped {
            let line = why.location().map(|at| format!(" (line {})", at.line())).unwrap_or_default();
            let help = why.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            writeln!(out, "{} {id}{line}: {}{help}", style::out(style::BAD, "skipped"), why.message)?;
        }
        let disabled: Vec<_> = rules.iter().filter_map(|rule| Some((&rule.name, rule.disabled.as_ref()?))).collect();
        if !disabled.is_empty() {
            let why = "they fire on ordinary code, and would stop most answers";
            writeln!(out, "\nWritten with `enabled = false` ({}): {why}:", disabled.len())?;
            disabled.iter().try_for_each(|(name, code)| writeln!(out, "  {name} fires on: {code}"))?;
        }
        self.left_out(out)?;
        self.summary(out)
    }

    fn left_out(&self, out: &mut impl Write) -> std::io::Result<()> {
        let features = |rule: &RuleText| {
            let mut all: Vec<Feature> = rule.left_out.iter().map(|one| one.feature).collect();
            all.sort();
            all.dedup();
            all
        };
        let by_rule = grouped(&self.imported.rules, features);
        if by_rule.is_empty() && self.imported.left_out.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nNot carried over (the files have the details):")?;
        for one in &self.imported.left_out {
            writeln!(out, "  of the rule set: {one}")?;
        }
        for (feature, names) in &by_rule {
            let all = self.imported.rules.len();
            let others: Vec<&str> = rest(&self.imported.rules, names);
            let of = count(names.len() as u64, "rule", "rules");
            match others.len() {
                0 if all > 1 => writeln!(out, "  {} (all {of})", feature.about())?,
                few if few < names.len() && few > 0 && all > FEW => {
                    writeln!(out, "  {} ({of}, all except:)", feature.about())?;
                    list(out, &others)?;
                }
                _ => {
                    writeln!(out, "  {} ({of})", feature.about())?;
                    list(out, names)?;
                }
            }
        }
        Ok(())
    }

    fn summary(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Imported { rules, skipped, left_out, .. } = self.imported;
        let written = count(rules.len() as u64, "rule file", "rule files");
        let done = if self.args.dry_run { "to write" } else { "written" };
        let disabled = rules.iter().filter(|rule| rule.disabled.is_some()).count();
        let features = left_out.len() + rules.iter().map(|rule| rule.left_out.len()).sum::<usize>();
        let folder = tidy_path(&self.folder.display().to_string());
        writeln!(
            out,
            "\n{written} {done} in {folder} ({disabled} disabled), {} skipped; not carried over: {}",
            count(skipped.len() as u64, "rule", "rules"),
            count(features as u64, "feature", "features")
        )?;
        if !self.others.is_empty() {
            let others = count(self.others.len() as u64, "other rule file is", "other rule files are");
            say::note(format_args!("{others} in {folder}: {}", self.others.join(", ")));
        }
        let Some(first) = rules.first() else { return Ok(()) };
        writeln!(out, "\nNext:\n    tidegate rules check {folder}")?;
        writeln!(out, "    tidegate rules test {folder}/{} --text 'the text of an answer'", file_of(first))
    }

    fn as_json(&self) -> Value {
        let left_out = |all: &[::import::LeftOut]| -> Vec<Value> {
            let one = |one: &::import::LeftOut| json!({"feature": one.feature.as_str(), "about": one.feature.about(), "what": one.what});
            all.iter().map(one).collect()
        };
        let rule = |rule: &RuleText| {
            json!({
                "name": rule.name, "id": rule.id, "line": rule.line, "file": file_of(rule),
                "enabled": rule.disabled.is_none(), "disabled": rule.disabled,
                "hidden": match rule.hidden { Hidden::Secret => "secret", Hidden::Match => "match" },
                "left_out": left_out(&rule.left_out),
            })
        };
        let Imported { format, read, rules, skipped, left_out: of_set } = self.imported;
        json!({
            "format": format.to_string(), "read": read, "folder": self.folder.display().to_string(),
            "written": !self.args.dry_run,
            "rules": rules.iter().map(rule).collect::<Vec<_>>(),
            "skipped": skipped.iter().map(|one| json!({"id": one.id, "finding": shapes::finding(&one.why)})).collect::<Vec<_>>(),
            "left_out": left_out(of_set), "others": self.others, "in_the_way": self.in_the_way,
        })
    }
}

/// The names of rules by what they have.
fn grouped<K: Ord>(rules: &[RuleText], keys: impl Fn(&RuleText) -> Vec<K>) -> BTreeMap<K, Vec<&str>> {
    let mut out: BTreeMap<K, Vec<&str>> = BTreeMap::new();
    for rule in rules {
        keys(rule).into_iter().for_each(|key| out.entry(key).or_default().push(&rule.name));
    }
    out
}

/// The names of the other rules.
fn rest<'r>(rules: &'r [RuleText], names: &[&str]) -> Vec<&'r str> {
    rules.iter().map(|rule| rule.name.as_str()).filter(|name| !names.contains(name)).collect()
}

/// Names with commas, on as many lines as they need.
fn list(out: &mut impl Write, names: &[&str]) -> std::io::Result<()> {
    let mut line = String::new();
    for name in names {
        if !line.is_empty() && line.len() + name.len() > COLUMNS {
            writeln!(out, "    {line},")?;
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { ", " });
        line.push_str(name);
    }
    writeln!(out, "    {line}")
}
