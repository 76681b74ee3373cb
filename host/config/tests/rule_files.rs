//! Rule folders: what is read, in which words the rest is refused, and what an edit changes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use flow::Diagnostic;
use rules::RuleLayer;
use tempfile::TempDir;
use tidegate_config::{ChangeKind, Demands, FolderState, RuleFiles, RuleFolder};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config")
}

fn folder(path: impl Into<PathBuf>) -> RuleFolder {
    RuleFolder {
        layer: RuleLayer::Project,
        path: path.into(),
        shown: "rules".into(),
        fence: None,
        untrusted: false,
        asked: None,
        required: false,
        by_policy: false,
        guides: false,
    }
}

fn names(files: &RuleFiles) -> Vec<&str> {
    files.rules().map(|rule| rule.name.as_str()).collect()
}

fn said(files: &RuleFiles) -> String {
    files.findings().map(|one| tidegate_config::render(one, false)).collect::<Vec<_>>().join("\n\n")
}

/// The cases of `tests/corpus/config/rule-folders`: first the rules that are read, then the diagnostics.
#[test]
fn folders_are_read_and_refused_in_these_words() {
    let cases = fs::read_dir(corpus().join("rule-folders")).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = cases.filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() >= 3, "only {} cases read", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let mut files = RuleFiles::new(vec![folder(case.join("rules"))], Demands::default());
        files.look();
        let read = files.rules().map(|rule| format!("{}: {:?}, {}\n", rule.name, rule.bucket, rule.source.path));
        let text = format!("{}\n{}", read.collect::<String>(), said(&files));
        let text = text.replace(&format!("{}/", case.display()), "");
        let expected = case.join("expected.txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, format!("{}\n", text.trim_end())).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if wanted.trim_end() != text.trim_end() {
            wrong.push_str(&format!("== {}\n-- expected\n{wanted}\n-- found\n{text}\n", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A folder that a test writes to.
struct Desk {
    folder: TempDir,
    files: RuleFiles,
}

impl Desk {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let files = RuleFiles::new(vec![folder(dir.path())], Demands::default());
        Self { folder: dir, files }
    }

    /// A desk whose folder is required, or with what the operator demands of any.
    fn strict(required: bool, demands: Demands) -> Self {
        let dir = TempDir::new().unwrap();
        let files = RuleFiles::new(vec![RuleFolder { required, ..folder(dir.path()) }], demands);
        Self { folder: dir, files }
    }

    /// Why the host must not run: messages with their lines.
    fn unmet(&self) -> Vec<String> {
        let line = |one: &Diagnostic| one.location().map(|at| format!("{}: ", at.line())).unwrap_or_default();
        self.files.unmet().map(|one| format!("{}{}", line(&one), one.headline())).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    fn rule(&self, name: &str, condition: &str) {
        self.write(name, format!("+++\ncondition = '{condition}'\n+++\nDo not.\n"));
    }

    /// What changed since the last look: `added a.md`, `edited a.md (refused, kept)`.
    fn look(&mut self) -> Vec<String> {
        let word = |kind| match kind {
            ChangeKind::Added => "added",
            ChangeKind::Edited => "edited",
            ChangeKind::Removed => "removed",
        };
        let marks = |refused, kept| match (refused, kept) {
            (true, true) => " (refused, kept)",
            (true, false) => " (refused)",
            _ => "",
        };
        let look = self.files.look();
        look.changes
            .iter()
            .map(|one| format!("{} {}{}", word(one.kind), one.file, marks(one.refused, one.kept)))
            .collect()
    }

    fn condition(&self, rule: &str) -> Option<String> {
        let rule = self.files.rules().find(|one| one.name == rule)?;
        Some(rule.conditions[0].as_str().to_owned())
    }

    fn only_finding(&self) -> &Diagnostic {
        let found: Vec<&Diagnostic> = self.files.findings().collect();
        let [one] = found.as_slice() else { panic!("not one finding:\n{}", said(&self.files)) };
        one
    }
}

#[test]
fn an_edit_of_the_same_length_in_the_same_instant_is_seen() {
    let mut desk = Desk::new();
    desk.rule("a.md", "one");
    desk.rule("b.md", "bbb");
    assert_eq!(desk.look(), ["added rules/a.md", "added rules/b.md"]);
    assert_eq!(desk.look(), [""; 0]);
    let before = fs::metadata(desk.path("a.md")).unwrap().modified().unwrap();
    for condition in ["two", "six", "ten"] {
        desk.rule("a.md", condition);
        fs::File::options().write(true).open(desk.path("a.md")).unwrap().set_modified(before).unwrap();
        assert_eq!(desk.look(), ["edited rules/a.md"]);
        assert_eq!(desk.condition("a").as_deref(), Some(condition));
    }
}

#[test]
fn files_come_go_and_are_renamed() {
    let mut desk = Desk::new();
    desk.rule("b.md", "b");
    desk.look();
    desk.rule("a.mdc", "a");
    desk.write("README.md", "About the rules.\n");
    fs::rename(desk.path("b.md"), desk.path("c.MD")).unwrap();
    assert_eq!(desk.look(), ["removed rules/b.md", "added rules/a.mdc", "added rules/c.MD"]);
    assert_eq!(names(&desk.files), ["a", "c"]);
    let report = desk.files.folders().next().unwrap();
    assert_eq!((report.state, report.files, report.refused, report.passed_over), (FolderState::Read, 2, 0, 1));
    fs::remove_dir_all(desk.folder.path()).unwrap();
    assert_eq!(desk.look(), ["removed rules/a.mdc", "removed rules/c.MD"]);
    assert_eq!(said(&desk.files), "");
    fs::create_dir(desk.folder.path()).unwrap();
    desk.rule("d.md", "d");
    assert_eq!(desk.look(), ["added rules/d.md"]);
}

#[test]
fn a_broken_edit_keeps_the_last_good_rule_until_it_is_mended_deleted_or_switched_off() {
    let mut desk = Desk::new();
    desk.rule("a.md", "good");
    desk.look();
    desk.rule("a.md", "bro(ken");
    assert_eq!(desk.look(), ["edited rules/a.md (refused, kept)"]);
    assert_eq!(desk.condition("a").as_deref(), Some("good"));
    assert!(
        said(&desk.files)
            .contains("the previous version of the rule remains active until the file is fixed or deleted")
    );
    // An editor that empties the file before it writes.
    desk.write("a.md", "");
    assert_eq!(desk.look(), ["edited rules/a.md (refused, kept)"]);
    desk.rule("a.md", "better");
    assert_eq!(desk.look(), ["edited rules/a.md"]);
    assert_eq!((desk.condition("a").as_deref(), said(&desk.files).as_str()), (Some("better"), ""));
    desk.write("a.md", "+++\ncondition = 'x'\nenabled = false\n+++\nOff.\n");
    assert_eq!(desk.look(), ["edited rules/a.md"]);
    assert!(desk.files.rules().all(|rule| !rule.enabled));
    desk.write("a.md", [0xff, 0xfe, 0x00]);
    assert_eq!(desk.look(), ["edited rules/a.md (refused, kept)"]);
    // A guard does not become a text for the model because an edit lost its front matter.
    desk.write("a.md", "no front matter");
    assert_eq!(desk.look(), ["edited rules/a.md (refused, kept)"]);
    fs::remove_file(desk.path("a.md")).unwrap();
    assert_eq!(desk.look(), ["removed rules/a.md"]);
    assert_eq!(names(&desk.files), [""; 0]);
    // Nothing was good before.
    desk.write("a.md", "condition: x");
    assert_eq!(desk.look(), ["added rules/a.md (refused)"]);
}

#[test]
fn what_is_no_text_is_refused_where_it_stops_to_be_text() {
    let mut desk = Desk::new();
    desk.write("latin.md", b"+++\ncondition = 'caf\xe9'\n+++\nDo not.\n");
    desk.look();
    let shown =
        tidegate_config::render(desk.only_finding(), false).replace(&format!("{}/", desk.folder.path().display()), "");
    assert!(
        shown.starts_with(
            "error[rule-file-encoding]: this rule file is not UTF-8: invalid byte 0xe9 here\n --> latin.md:2:17\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("help: save it as UTF-8"), "{shown}");
    fs::remove_file(desk.path("latin.md")).unwrap();
    desk.write("wide.md", [0xff, 0xfe, b'+', 0, b'+', 0]);
    desk.look();
    assert_eq!(desk.only_finding().message, "this rule file is UTF-16, not UTF-8");
}

#[test]
fn what_is_too_large_or_no_file_is_refused_and_does_not_hang() {
    let mut desk = Desk::new();
    desk.write("large.md", vec![b' '; (1 << 20) + 1]);
    desk.look();
    let found = desk.only_finding();
    assert_eq!(found.code.as_str(), "rule-file-unreadable");
    assert!(found.message.ends_with("large.md`: its size exceeds the limit of 1048576 bytes"), "{found}");
    fs::remove_file(desk.path("large.md")).unwrap();
    fs::create_dir(desk.path("folder.md")).unwrap();
    desk.look();
    assert!(desk.only_finding().message.ends_with("folder.md`: it is not a file"));
}

#[test]
fn a_folder_of_too_many_files_is_read_up_to_the_limit() {
    let mut desk = Desk::new();
    for number in 0..4_097 {
        desk.write(&format!("{number:04}.md"), "+++\ncondition = 'x'\n+++\nDo not.\n");
    }
    desk.look();
    assert_eq!(desk.only_finding().code.as_str(), "rule-folder-too-large");
    assert!(desk.only_finding().help.as_ref().is_some_and(|help| help.contains("`4096.md`")));
    assert_eq!(desk.files.rules().count(), 4_096);
}

#[test]
#[cfg(unix)]
fn a_name_that_steers_a_terminal_is_written_out_and_not_read() {
    let mut desk = Desk::new();
    desk.rule("a\u{1b}[2J.md", "x");
    assert_eq!(desk.look(), [""; 0]);
    assert!(desk.only_finding().message.starts_with(r#""a\u{1b}[2J.md" in `"#), "{}", desk.only_finding());
    assert_eq!(desk.only_finding().code.as_str(), "rule-file-name");
}

#[test]
#[cfg(unix)]
fn a_link_out_of_the_fence_is_refused_and_one_within_is_read() {
    use std::os::unix::fs::symlink;
    let (outside, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let text = "+++\ncondition = 'x'\n+++\nDo not.\n";
    fs::write(outside.path().join("secret.md"), text).unwrap();
    fs::create_dir_all(workspace.path().join("rules")).unwrap();
    fs::write(workspace.path().join("shared.md"), text).unwrap();
    symlink(outside.path().join("secret.md"), workspace.path().join("rules/out.md")).unwrap();
    symlink("../shared.md", workspace.path().join("rules/in.md")).unwrap();
    symlink("nowhere", workspace.path().join("rules/nowhere.md")).unwrap();
    let fence = Some(workspace.path().canonicalize().unwrap());
    let of = |fence| {
        RuleFiles::new(vec![RuleFolder { fence, ..folder(workspace.path().join("rules")) }], Demands::default())
    };
    let mut files = of(fence);
    files.look();
    assert_eq!(names(&files), ["in"]);
    let all = said(&files);
    assert!(all.contains("error[rule-file-outside]: the rule file"), "{all}");
    assert!(all.contains("out.md` is a link that leaves the workspace and is not read"), "{all}");
    assert!(all.contains("nowhere.md`: No such file"), "{all}");
    let mut open = of(None);
    open.look();
    assert_eq!(names(&open), ["in", "out"]);
}

#[test]
fn folders_within_are_read_and_their_rules_are_named_by_their_paths() {
    let mut desk = Desk::new();
    for folder in ["api/v1", "web", ".hidden"] {
        fs::create_dir_all(desk.path(folder)).unwrap();
    }
    for file in ["style.md", "api/style.md", "api/v1/errors.mdc", "web/style.md", ".hidden/a.md"] {
        desk.rule(file, file);
    }
    desk.write("web/README.md", "About these rules.\n");
    assert_eq!(
        desk.look(),
        [
            "added rules/api/style.md",
            "added rules/api/v1/errors.mdc",
            "added rules/style.md",
            "added rules/web/style.md"
        ]
    );
    assert_eq!(names(&desk.files), ["api/style", "api/v1/errors", "style", "web/style"]);
    assert_eq!(said(&desk.files), "");
    // What comes, changes and goes within is seen at the next look.
    desk.rule("api/v1/more.md", "x");
    desk.rule("web/style.md", "edited");
    fs::remove_file(desk.path("api/style.md")).unwrap();
    let changes = desk.look();
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!(desk.condition("web/style").as_deref(), Some("edited"));
    assert_eq!(names(&desk.files), ["api/v1/errors", "api/v1/more", "style", "web/style"]);
}

#[test]
#[cfg(unix)]
fn links_to_folders_are_followed_once_and_not_out_of_the_fence() {
    use std::os::unix::fs::symlink;
    let (outside, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let text = "+++\ncondition = 'x'\n+++\nDo not.\n";
    let rules = workspace.path().join("rules");
    for (folder, name) in
        [(outside.path(), "secret.md"), (&workspace.path().join("shared"), "a.md"), (&rules, "own.md")]
    {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    symlink("../shared", rules.join("team")).unwrap();
    symlink("../shared", rules.join("team-too")).unwrap();
    symlink(".", rules.join("round")).unwrap();
    symlink(outside.path(), rules.join("out")).unwrap();
    let fence = Some(workspace.path().canonicalize().unwrap());
    let mut files = RuleFiles::new(vec![RuleFolder { fence, ..folder(&rules) }], Demands::default());
    files.look();
    assert_eq!(names(&files), ["own", "team/a"]);
    let all = said(&files);
    assert!(all.contains("out` is a link that leaves the workspace and is not read"), "{all}");
    assert_eq!(files.findings().count(), 1, "{all}");
}

#[test]
fn folders_within_are_read_down_to_a_limit() {
    let mut desk = Desk::new();
    let deep = "f/".repeat(9);
    fs::create_dir_all(desk.path(&deep)).unwrap();
    desk.rule("f/f/f/f/f/f/f/f/in.md", "x");
    desk.rule("f/f/f/f/f/f/f/f/f/out.md", "x");
    desk.look();
    assert_eq!(names(&desk.files), ["f/f/f/f/f/f/f/f/in"]);
    assert_eq!(desk.only_finding().code.as_str(), "rule-folder-too-large");
}

#[test]
fn a_folder_that_was_asked_for_has_to_be_there_and_is_read_once() {
    let here = TempDir::new().unwrap();
    fs::create_dir(here.path().join("team")).unwrap();
    fs::write(here.path().join("team/a.md"), "+++\ncondition = 'x'\n+++\nDo not.\n").unwrap();
    let source = flow::SourceFile::new(
        here.path().join("tidegate.toml"),
        "[rules]\nfolders = [\"team\", \"./team/\", \"~/rules\", \"tidegate.toml\"]\n",
    );
    fs::write(&source.path, &source.text).unwrap();
    let operator = tidegate_config::Operator::of_source(&source).unwrap();
    let named = operator.rule_folders.more.iter();
    let mut files = RuleFiles::new(
        named
            .map(|one| RuleFolder { asked: one.place.clone(), shown: one.typed.clone(), ..folder(&one.path) })
            .collect(),
        Demands::default(),
    );
    files.look();
    assert_eq!(names(&files), ["a"]);
    let all = said(&files).replace(&format!("{}/", here.path().display()), "");
    for part in [
        "warning[rule-folder-duplicate]: the rule folder `./team/` is listed twice\n --> tidegate.toml:2:20",
        "warning[rule-folder-missing]: the rule folder `~/rules` does not exist\n --> tidegate.toml:2:31",
        "error[rule-folder-unreadable]: cannot read the rule folder `tidegate.toml`: it is not a folder\n --> tidegate.toml:2:42",
    ] {
        assert!(all.contains(part), "{part}\n-- is not in\n{all}");
    }
    let states: Vec<FolderState> = files.folders().map(|one| one.state).collect();
    assert_eq!(states, [FolderState::Read, FolderState::Twice, FolderState::Absent, FolderState::Unreadable]);
}

#[test]
fn a_required_file_that_cannot_be_used_refuses_the_host_at_its_place() {
    let required = |front: &str| format!("+++\nrequired = true\n{front}\n+++\nDo not.\n");
    for (text, said) in [
        (required("condition = '('"), "3: rule `a`: condition `(` is not valid: unclosed group; the rule is disabled"),
        (required("condition = ['x', '(']"), "3: rule `a`: condition `(` is not valid: unclosed group"),
        (required("condition = ["), ": rule `a`: "),
        (required("condition = 'x'\nscope = 'tool:('"), "4: rule `a`: scope `tool:(`"),
        (required("condition = \"\\bx\""), "3: rule `a`: condition `\\u{8}x` contains the control character"),
        ("---\nrequired: true\ncondition: '('\n---\nDo not.\n".to_owned(), "3: rule `a`: condition `(`"),
    ] {
        let mut desk = Desk::new();
        desk.write("a.md", &text);
        desk.look();
        let unmet = desk.unmet();
        assert!(unmet.first().is_some_and(|one| one.contains(said)), "{text}\n{unmet:#?}");
        // The same file without the key is a problem, and no reason to refuse.
        desk.write("a.md", text.replace("true", "false"));
        desk.look();
        assert_eq!(desk.unmet(), [""; 0], "{text}");
        assert!(!said_of(&desk).is_empty(), "{text}");
    }
}

fn said_of(desk: &Desk) -> String {
    said(&desk.files)
}

#[test]
fn an_edit_takes_no_part_of_a_required_rule_away() {
    let required = |conditions: &str| format!("+++\nrequired = true\ncondition = {conditions}\n+++\nDo not.\n");
    let mut desk = Desk::new();
    desk.write("a.md", required("['one', 'two']"));
    assert_eq!(desk.look(), ["added rules/a.md"]);
    let in_force = |desk: &Desk| desk.files.rules().map(|rule| rule.conditions.len()).collect::<Vec<_>>();
    for broken in [required("['one', '(two']"), required("["), "no front matter".to_owned()] {
        desk.write("a.md", broken);
        assert_eq!(desk.look(), ["edited rules/a.md (refused, kept)"]);
        assert_eq!((in_force(&desk), desk.unmet()), (vec![2], vec![]));
        assert!(said(&desk.files).contains("the previous version of the rule remains active"), "{}", said(&desk.files));
    }
    desk.write("a.md", required("'three'"));
    assert_eq!(desk.look(), ["edited rules/a.md"]);
    assert_eq!((in_force(&desk), desk.condition("a").as_deref()), (vec![1], Some("three")));
    // A rule that is not required is used without its invalid parts.
    let mut desk = Desk::new();
    desk.write("a.md", required("['one', 'two']").replace("true", "false"));
    desk.look();
    desk.write("a.md", required("['one', '(two']").replace("true", "false"));
    assert_eq!(desk.look(), ["edited rules/a.md"]);
    assert_eq!(in_force(&desk), [1]);
}

#[test]
fn a_required_rule_that_is_deleted_while_the_host_runs_is_missed_until_it_is_back() {
    let mut desk = Desk::new();
    desk.write("a.md", "+++\nrequired = true\ncondition = 'x'\n+++\nDo not.\n");
    desk.rule("b.md", "y");
    desk.look();
    fs::remove_file(desk.path("a.md")).unwrap();
    fs::remove_file(desk.path("b.md")).unwrap();
    assert_eq!(desk.look(), ["removed rules/a.md", "removed rules/b.md"]);
    let missed = ["rule `a` (project, rules/a.md): the file of a required rule was deleted: `rules/a.md`"];
    assert_eq!(desk.unmet(), missed);
    let codes: Vec<&str> = desk.files.unmet().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["rule-file-deleted"]);
    assert_eq!((desk.look(), desk.unmet()), (vec![], missed.map(str::to_owned).to_vec()));
    desk.rule("a.md", "z");
    assert_eq!((desk.look(), desk.unmet()), (vec!["added rules/a.md".to_owned()], vec![]));
}

#[test]
fn a_rule_that_is_required_by_name_is_missed_although_another_file_has_its_name() {
    let (user, project) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let rule = |dir: &TempDir, name: &str| {
        fs::write(dir.path().join(name), "+++\ncondition = 'x'\n+++\nDo not.\n").unwrap();
    };
    for dir in [&user, &project] {
        rule(dir, "a.md");
        rule(dir, "b.md");
    }
    let folders = [(RuleLayer::User, &user), (RuleLayer::Project, &project)];
    let folders = folders.map(|(layer, dir)| RuleFolder { layer, ..folder(dir.path()) }).to_vec();
    let mut files = RuleFiles::new(folders, Demands { rules: vec!["a".to_owned()], all: false });
    files.look();
    let unmet = |files: &RuleFiles| files.unmet().map(|one| one.headline()).collect::<Vec<_>>();
    assert_eq!(unmet(&files), [""; 0]);
    fs::remove_file(user.path().join("a.md")).unwrap();
    fs::remove_file(user.path().join("b.md")).unwrap();
    files.look();
    assert_eq!(unmet(&files), ["rule `a` (user, rules/a.md): the file of a required rule was deleted: `rules/a.md`"]);
    rule(&user, "a.md");
    files.look();
    assert_eq!(unmet(&files), [""; 0]);
}

#[test]
fn a_required_folder_has_to_be_there_with_all_its_rules() {
    let mut desk = Desk::strict(true, Demands::default());
    desk.rule("a.md", "x");
    desk.write("README.md", "About the rules.\n");
    desk.look();
    assert_eq!((names(&desk.files), desk.unmet()), (vec!["a"], vec![]));
    desk.rule("b.md", "(");
    desk.look();
    assert_eq!(desk.unmet()[0], "2: rule `b`: condition `(` is not valid: unclosed group; the rule is disabled");
    fs::remove_file(desk.path("b.md")).unwrap();
    desk.look();
    assert_eq!(desk.unmet(), [""; 0]);
    fs::remove_dir_all(desk.folder.path()).unwrap();
    desk.look();
    let unmet = desk.unmet();
    assert!(unmet[0].ends_with("does not exist, and it is required"), "{unmet:?}");
    assert_eq!(unmet[1], "rule `a` (project, rules/a.md): the file of a required rule was deleted: `rules/a.md`");
}

#[test]
fn every_file_is_demanded_where_the_operator_refuses_problems() {
    let mut desk = Desk::strict(false, Demands { all: true, ..Demands::default() });
    desk.rule("a.md", "x");
    desk.rule("b.md", "(");
    desk.look();
    assert_eq!(desk.unmet()[0], "2: rule `b`: condition `(` is not valid: unclosed group; the rule is disabled");
    // Deleting is the operator's decision here.
    fs::remove_file(desk.path("a.md")).unwrap();
    fs::remove_file(desk.path("b.md")).unwrap();
    desk.look();
    assert_eq!(desk.unmet(), [""; 0]);
}

#[test]
fn the_file_of_a_rule_that_is_required_by_name_keeps_its_last_good_version() {
    let mut desk = Desk::strict(false, Demands { rules: vec!["a".to_owned()], all: false });
    for (name, kept) in [("a.md", true), ("b.md", false)] {
        desk.write(name, "+++\ncondition = ['x', 'y']\n+++\nDo not.\n");
        desk.look();
        desk.write(name, "+++\ncondition = ['x', '(']\n+++\nDo not.\n");
        desk.look();
        let rule = desk.files.rules().find(|rule| name.starts_with(&rule.name)).unwrap();
        assert_eq!(rule.conditions.len() == 2, kept, "{name}");
        assert_eq!(desk.files.about(&rule.name).count() == 0, kept);
    }
}
