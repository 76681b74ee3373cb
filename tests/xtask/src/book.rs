//! `cargo xtask book`: the pages of the repository as a searchable site, with a link checker that accepts no dead link.
//!
//! The site has every Markdown page that people read; `host/README.md` is its table of contents. Pages keep their places, so that their
//! links lead from one to the other here as they do in the repository. A link to a file that is no page, such as source code, becomes its text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tidegate_servers::say;

use crate::run;

/// The page that lists the others, with a heading for each kind of reader.
const CONTENTS: &str = "host/README.md";

/// Folders whose pages are data of tests or belong to tools.
const LEFT_OUT: [&str; 4] = [".", "tests/corpus/", "tests/demo/workspace/", "rules/builtin/"];

pub(crate) fn book() -> Result<()> {
    let folder = run::target().join("book");
    let pages = pages()?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    for page in &pages {
        let text = read(page)?;
        let text = if page.ends_with(".md") { linked(page, &text, &pages) } else { text };
        let target = folder.join("pages").join(page);
        fs::create_dir_all(target.parent().unwrap_or(&folder))?;
        fs::write(&target, text).with_context(|| format!("cannot write {}", target.display()))?;
    }
    fs::write(folder.join("zensical.toml"), settings(&read(CONTENTS)?, &pages))?;
    let mut generator = Command::new(tidegate_servers::ensure_book()?);
    run::step("the book", generator.args(["build", "--strict"]).current_dir(&folder))?;
    say(&format!("{} pages: open {}", pages.len(), folder.join("site/index.html").display()));
    Ok(())
}

/// The pages and the pictures on them, from the top folder.
fn pages() -> Result<BTreeSet<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md", "*.svg"];
    let listed = Command::new("git").args(arguments).current_dir(run::root()).output().context("cannot start git")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_page =
        |path: &&str| run::root().join(path).is_file() && !LEFT_OUT.iter().any(|folder| path.starts_with(folder));
    Ok(listed.split('\0').filter(is_page).map(str::to_owned).collect())
}

fn read(page: &str) -> Result<String> {
    fs::read_to_string(run::root().join(page)).with_context(|| format!("cannot read {page}"))
}

/// The generator's settings: the groups and pages of the table of contents.
fn settings(contents: &str, pages: &BTreeSet<String>) -> String {
    let mut nav = String::from("  { \"Tidegate\" = \"README.md\" },\n");
    for group in contents.split("\n## ").skip(1) {
        let title = group.lines().next().unwrap_or_default();
        writeln!(nav, "  {{ {title:?} = [").expect("writes to a string");
        for (text, target) in links(group) {
            let target = resolved(CONTENTS, target);
            if pages.contains(&target) {
                writeln!(nav, "    {{ {:?} = {target:?} }},", text.replace('`', "")).expect("writes to a string");
            }
        }
        nav.push_str("  ] },\n");
    }
    format!(
        "[project]\nsite_name = \"Tidegate\"\ndocs_dir = \"pages\"\nsite_dir = \"site\"\nuse_directory_urls = false\nnav = [\n{nav}]\n\n\
         [project.theme]\nfeatures = [\"navigation.sections\", \"navigation.top\", \"search.highlight\", \"content.code.copy\"]\n"
    )
}

/// Every `[text](target)` of a text.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, _)| {
        let label = &text[text[..at].rfind('[')? + 1..at];
        let target = text[at + 2..].split_once(')')?.0;
        Some((label, target))
    })
}

/// A page whose links to what is no page have become their text.
fn linked(page: &str, text: &str, pages: &BTreeSet<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        fenced ^= line.trim_start().starts_with("```");
        let mut line = line.to_owned();
        let dead: Vec<String> = links(&line)
            .filter(|(_, target)| !fenced && !target.contains("://") && !target.starts_with('#'))
            .filter(|(_, target)| !pages.contains(&resolved(page, target)))
            // What is nowhere stays a link, for the checker to find.
            .filter(|(_, target)| run::root().join(resolved(page, target)).exists())
            .map(|(label, target)| format!("[{label}]({target})"))
            .collect();
        for link in dead {
            let label = &link[1..link.find("](").unwrap_or(link.len())];
            line = line.replace(&link, label);
        }
        result.push_str(&line);
    }
    result
}

/// The file of a link, from the top folder.
fn resolved(page: &str, target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = Path::new(page).parent().and_then(Path::to_str).unwrap_or_default().split('/').collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::{linked, settings};

    #[test]
    fn links_to_files_that_are_no_pages_become_text() {
        let pages = ["README.md", "host/CHAT.md"].map(str::to_owned).into();
        let text = "[a](CHAT.md#keys) [`b`](turn/src/run.rs), [x](x.md), [c](../README.md) [d](https://d.example) [e](#e)\n```\n[f](f)\n```\n";
        let wanted =
            "[a](CHAT.md#keys) `b`, [x](x.md), [c](../README.md) [d](https://d.example) [e](#e)\n```\n[f](f)\n```\n";
        assert_eq!(linked("host/X.md", text, &pages), wanted);
    }

    #[test]
    fn the_contents_are_groups_of_pages() {
        let pages = ["host/CHAT.md"].map(str::to_owned).into();
        let text = settings("# All\n\n## Users\n\n| [`chat`](CHAT.md) | [code](src/x.rs) |\n", &pages);
        assert!(text.contains("  { \"Users\" = [\n    { \"chat\" = \"host/CHAT.md\" },\n  ] },\n"), "{text}");
    }
}
