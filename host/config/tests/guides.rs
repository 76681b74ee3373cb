//! `AGENTS.md` of a workspace and of the folders in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use rules::{Rule, RuleSet, RuleSettings};
use tempfile::TempDir;
use tidegate_config::{Demands, RuleFiles, rule_sources};

#[test]
fn guides_of_a_workspace_are_entries_of_the_rulebook() {
    let workspace = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = workspace.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("AGENTS.md", "# Build\n\nUse the script.\n");
    write("packages/api/AGENTS.md", "Errors have codes.\n");
    write("app/[slug]/AGENTS.md", "A route.\n");
    write("empty/AGENTS.md", " \n");
    for not_read in ["node_modules/x/AGENTS.md", ".cache/AGENTS.md", "docs/agents.md", "docs/README.md"] {
        write(not_read, "No.\n");
    }
    let operator = tidegate_config::Operator::default();
    let folders = rule_sources::folders(&operator, workspace.path(), workspace.path(), None);
    let mut files = RuleFiles::new(folders, Demands { all: true, ..Demands::default() });
    files.look();
    assert_eq!(files.findings().count(), 0);
    assert_eq!(files.unmet().count(), 0);
    let all: Vec<Rule> = files.rules().cloned().collect();
    let (set, found) = RuleSet::build(all, RuleSettings::default(), "/work");
    assert_eq!(found, []);
    let block = set.system_blocks("main").pop().unwrap();
    let listed = [
        "- `AGENTS.md`: Instructions for work in this project",
        "- `app/[slug]/AGENTS.md` (files `/app/[slug]/`): Instructions for work in `app/[slug]/`",
        "- `packages/api/AGENTS.md` (files `/packages/api/`): Instructions for work in `packages/api/`",
    ];
    assert!(block.text.ends_with(&listed.join("\n")), "{}", block.text);
    assert_eq!(set.read("packages/api/AGENTS.md", "main").unwrap(), "Errors have codes.");
    // Folders that are too deep are reported, since the project has guides.
    let deep = format!("{}AGENTS.md", "f/".repeat(9));
    write(&deep, "Deep.\n");
    // One that comes later is found at the next look.
    write("web/AGENTS.md", "Later.\n");
    assert_eq!(files.look().changes.len(), 1);
    assert_eq!(files.rules().count(), 4);
    let reported: Vec<String> = files.findings().map(ToString::to_string).collect();
    let deep =
        "warning[rule-folder-too-large]: `AGENTS.md` is not looked for in `f/f/f/f/f/f/f/f/f` and further folders";
    assert!(reported.len() == 1 && reported[0].starts_with(deep), "{reported:?}");
}
