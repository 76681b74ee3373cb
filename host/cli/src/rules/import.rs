//! `tidegate rules import`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use ::import::{Feature, Hidden, Imported, RuleText, Skipped, import, set_name};
use serde_json::{Value, json};
use tidegate::SourceFile;

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
///  "others": ["old.md"]}
/// ```
/// `hidden` is `secret` where only the secret is hidden and not the whole match; `others` are rule files that were in the folder and are
/// none of this rule set.
pub(super) fn run(workspace: &Path, args: &RulesImport) -> Result<Exit, Failure> {
    let imported = import(&SourceFile::new(&args.file, read(&args.file)?))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => workspace.join(".tidegate").join("rules").join(set_name(&args.file)),
    };
    let others = others(&folder, &imported.rules)?;
    if !args.dry_run {
        write(&folder, &imported.rules, args.replace)?;
    }
    let done = Done { args, folder: &folder, imported: &imported, others: &others };
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

fn file_of(rule: &RuleText) -> String {
    format!("{}.md", rule.name)
}

/// The rule files of the folder that are none of these rules.
fn others(folder: &Path, rules: &[RuleText]) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::setup(format_args!("cannot read the folder `{}`: {error}", folder.display())));
        }
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut others: Vec<String> = names
        .filter(|name| [".md", ".mdc"].iter().any(|end| name.ends_with(end)))
        .filter(|name| !rules.iter().any(|rule| file_of(rule) == *name))
        .collect();
    others.sort();
    Ok(others)
}

/// Writes all files, or none where one is in the way.
fn write(folder: &Path, rules: &[RuleText], replace: bool) -> Result<(), Failure> {
    let there = |rule: &&RuleText| fs::symlink_metadata(folder.join(file_of(rule))).is_ok();
    let there: Vec<&RuleText> = rules.iter().filter(there).collect();
    if let (Some(first), false) = (there.first(), replace) {
        return Err(Failure::setup(format_args!(
            "{} in the way, the first: `{}`. Give --replace to overwrite, or --out for another folder",
            count(there.len() as u64, "rule file is", "rule files are"),
            folder.join(file_of(first)).display(),
        )));
    }
    let failed = |path: PathBuf| {
        move |error: std::io::Error| Failure::setup(format_args!("cannot write `{}`: {error}", path.display()))
    };
    if rules.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(failed(folder.to_owned()))?;
    for rule in rules {
        let path = folder.join(file_of(rule));
        create(&path, &rule.text).map_err(failed(path))?;
    }
    Ok(())
}

/// Writes a new file in the place of what has the name. A link is replaced and not followed: a project can come with links out of it.
fn create(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(text.as_bytes())
}

/// What was done, to be reported.
struct Done<'a> {
    args: &'a RulesImport,
    folder: &'a Path,
    imported: &'a Imported,
    others: &'a [String],
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
        writeln!(out, "\nNot carried over (the files say what it was):")?;
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
                    writeln!(out, "  {} ({of}: all but)", feature.about())?;
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
            count(features as u64, "filter or other feature", "filters and other features")
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
            "left_out": left_out(of_set), "others": self.others,
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
