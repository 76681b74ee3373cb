//! What the rule files of a workspace cannot do before its user has named their folder: take the place of another rule.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_config::rule_sources::{self, BuiltRules, Sources};
use tidegate_config::{Operator, RuleFiles};

/// A workspace with `.tidegate/rules`, a folder of the user, and one that the user names.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["work/.tidegate/rules", "user", "team"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn rule(&self, path: &str, keys: &str) {
        fs::write(self.path(path), format!("+++\n{keys}\n+++\nDo not.\n")).unwrap();
    }

    fn build(&self, settings: &str) -> BuiltRules {
        let source = flow::SourceFile::new(self.path("user.toml"), settings);
        let operator = Operator::of_source(&source).unwrap_or_else(|found| panic!("{found}"));
        let (work, user) = (self.path("work").canonicalize().unwrap(), self.path("user"));
        let sources = Sources::new(&operator, &[], &work, Vec::new(), &[]);
        let mut files = RuleFiles::new(rule_sources::folders(&operator, &work, &work, Some(&user)), sources.demands());
        files.look();
        sources.build(&files)
    }
}

/// The folder of the rule of this name that is used.
fn used(built: &BuiltRules, name: &str) -> Option<String> {
    let path = built.set.active(name)?.source.path.clone();
    Path::new(&path).parent().map(|folder| folder.display().to_string())
}

fn warned(built: &BuiltRules, rule: &str) -> Vec<String> {
    let warnings = built.warnings();
    let about = warnings.iter().filter(|one| one.rule() == Some(rule) && one.code.as_str() == "rule-shadowed");
    about.map(ToString::to_string).collect()
}

#[test]
fn a_rule_of_a_workspace_replaces_none() {
    let place = Place::new();
    for name in ["guard", "key"] {
        place.rule(&format!("user/{name}.md"), "condition = 'KEY-\\d+'\naction = 'stop'\nsecret = true");
    }
    place.rule("team/shared.md", "condition = 'x'");
    for (name, claim) in [("guard", ""), ("key", "required = true"), ("shared", ""), ("ts-as-any", ""), ("own", "")] {
        place.rule(&format!("work/.tidegate/rules/{name}.md"), &format!("condition = 'never matches'\n{claim}"));
    }
    let built = place.build("[rules]\nfolders = [\"team\"]\n");
    assert!(built.unmet.is_empty(), "{:?}", built.unmet);
    for name in ["guard", "key"] {
        let rule = built.set.active(name).unwrap();
        assert!(rule.secret && rule.source.layer == rules::RuleLayer::User, "{name}: {}", rule.source);
    }
    assert_eq!(used(&built, "shared").as_deref(), Some("team"));
    assert_eq!(built.set.rule("ts-as-any").unwrap().source.layer, rules::RuleLayer::Builtin);
    assert_eq!(used(&built, "own").as_deref(), Some(".tidegate/rules"));
    for name in ["guard", "key", "shared", "ts-as-any"] {
        let said = warned(&built, name);
        assert_eq!(said.len(), 1, "{name}: {said:?}");
        for part in [&format!(".tidegate/rules/{name}.md"), "give it another name", "`tidegate trust`"] {
            assert!(said[0].contains(part), "{part} is not in {}", said[0]);
        }
    }
}

/// The operator's file, which a workspace's own is where it is trusted, names the folder: that is a decision.
#[test]
fn a_folder_that_is_named_counts_as_others_that_are() {
    let place = Place::new();
    place.rule("user/guard.md", "condition = 'x'");
    place.rule("work/.tidegate/rules/guard.md", "condition = 'y'");
    for keys in ["folders", "required_folders"] {
        let built = place.build(&format!("[rules]\n{keys} = [\"work/.tidegate/rules\"]\n"));
        assert_eq!(used(&built, "guard").as_deref(), Some(".tidegate/rules"), "{keys}");
        assert!(built.about_files.is_empty(), "{:?}", built.about_files);
        assert!(!warned(&built, "guard")[0].contains("tidegate trust"));
    }
}

/// A link in the place of the folder counts as no other folder.
#[cfg(unix)]
#[test]
fn a_folder_that_leads_to_the_users_does_not_hide_it() {
    let place = Place::new();
    place.rule("user/guard.md", "condition = 'x'");
    fs::remove_dir(place.path("work/.tidegate/rules")).unwrap();
    std::os::unix::fs::symlink(place.path("user"), place.path("work/.tidegate/rules")).unwrap();
    let built = place.build("");
    assert_eq!(built.set.active("guard").unwrap().source.layer, rules::RuleLayer::User);
    assert!(built.about_files.iter().any(|one| one.code.as_str() == "rule-file-outside"), "{:?}", built.about_files);
}

/// Nor does it take the place of one that the operator names.
#[cfg(unix)]
#[test]
fn a_folder_that_leads_to_a_named_one_does_not_hide_it() {
    let place = Place::new();
    fs::create_dir_all(place.path("named")).unwrap();
    place.rule("named/guard.md", "condition = 'x'");
    fs::remove_dir_all(place.path("work/.tidegate/rules")).unwrap();
    std::os::unix::fs::symlink(place.path("named"), place.path("work/.tidegate/rules")).unwrap();
    let built = place.build("[rules]\nfolders = [\"named\"]\n");
    assert!(built.set.active("guard").is_some(), "{:?}", built.about_files);
}
