//! The crates of the workspace and the plugins, by the names that people call them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use crate::{guests, run, web};

/// What `cargo xtask test` runs the tests of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tested {
    /// A package of the workspace, by its full name.
    Crate(String),
    /// The folder of a plugin.
    Plugin(PathBuf),
    /// A folder of `sdk/js`: a package for web front ends, or their examples.
    Web(&'static str),
}

/// Finds each crate, plugin or package for web front ends by its name, with or without `tidegate-` or `@tidegate/`, or by its folder.
///
/// # Errors
/// There is none of that name: the message has the one that is most alike, or all.
pub(crate) fn named(names: &[String]) -> Result<Vec<Tested>> {
    let packages = packages()?;
    let plugins = guests::packages("plugins")?;
    names.iter().map(|name| find(name, &packages, &plugins)).collect()
}

/// The packages of the workspace: full name, and folder from the top.
fn packages() -> Result<Vec<(String, String)>> {
    let mut metadata = run::cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = metadata.output().context("cargo metadata cannot be started")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("the answer of cargo metadata")?;
    let packages = metadata["packages"].as_array().ok_or_else(|| anyhow!("cargo metadata names no packages"))?;
    let root = run::root();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(packages
        .iter()
        .map(|package| {
            let folder = PathBuf::from(text(&package["manifest_path"]));
            let folder = folder.parent().and_then(|folder| folder.strip_prefix(&root).ok()).unwrap_or(Path::new(""));
            (text(&package["name"]), folder.to_string_lossy().into_owned())
        })
        .collect())
}

fn find(name: &str, packages: &[(String, String)], plugins: &[PathBuf]) -> Result<Tested> {
    let wanted = name.trim_end_matches('/');
    let is_it =
        |(package, folder): &&(String, String)| package == wanted || short(package) == wanted || folder == wanted;
    if let Some((package, _)) = packages.iter().find(is_it) {
        return Ok(Tested::Crate(package.clone()));
    }
    let last = |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(folder) = plugins.iter().find(|folder| last(folder) == wanted.trim_start_matches("plugins/")) {
        return Ok(Tested::Plugin(folder.clone()));
    }
    let web = wanted.trim_start_matches("@tidegate/").trim_start_matches("sdk/js/");
    if let Some(folder) = web::TESTED.into_iter().find(|folder| *folder == web) {
        return Ok(Tested::Web(folder));
    }
    let mut known: Vec<String> = packages.iter().map(|(package, _)| short(package).to_owned()).collect();
    known.extend(plugins.iter().map(last).chain(web::TESTED.map(str::to_owned)));
    known.sort();
    let alike = known.iter().min_by_key(|known| strsim::damerau_levenshtein(known, wanted));
    let hint = match alike.filter(|alike| strsim::damerau_levenshtein(alike, wanted) <= 2) {
        Some(alike) => format!("did you mean `{alike}`?"),
        None => format!("there are {}.", known.join(", ")),
    };
    bail!("there is no crate or plugin `{name}`; {hint} Parts of the names of tests come after `--`")
}

/// The name without what all have in common.
fn short(package: &str) -> &str {
    package.strip_prefix("tidegate-").unwrap_or(package)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Tested, find, named};

    #[test]
    fn a_crate_has_several_names() {
        let words = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let cli = || Tested::Crate("tidegate-cli".to_owned());
        assert_eq!(named(&words("cli tidegate-cli host/cli host/cli/")).unwrap(), [cli(), cli(), cli(), cli()]);
        assert_eq!(named(&words("tidegate")).unwrap(), [Tested::Crate("tidegate".to_owned())]);
        let found = named(&words("redact-secrets plugins/team-guard")).unwrap();
        assert!(found.iter().all(|one| matches!(one, Tested::Plugin(folder) if folder.is_dir())), "{found:?}");
        let react = || Tested::Web("react");
        assert_eq!(named(&words("react @tidegate/react sdk/js/react/")).unwrap(), [react(), react(), react()]);
    }

    #[test]
    fn an_unknown_name_gets_the_known_ones() {
        let packages = [("tidegate-rules", "rules"), ("tidegate-cli", "host/cli")];
        let packages = packages.map(|(name, folder)| (name.to_owned(), folder.to_owned()));
        let wrong = |name: &str| find(name, &packages, &["plugins/redact-secrets".into()]).unwrap_err().to_string();
        assert_eq!(
            wrong("ruels"),
            "there is no crate or plugin `ruels`; did you mean `rules`? Parts of the names of tests come after `--`"
        );
        assert!(
            wrong("a_test_of_mine").contains("there are cli, client, examples, page, react, redact-secrets, rules"),
            "{}",
            wrong("a_test_of_mine")
        );
    }
}
