//! The operator's files of a workspace: which of them are read, and what they say together.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flow::{KeySource, SourceFile};
use tidegate_config::{Layer, LayerKind, Operator, OperatorFiles, PermissionRule, StatePlace};

/// The user's file, in `user`, and on top of it that of the workspace, in `work`.
fn layered(user: &str, workspace: &str) -> Result<Operator, String> {
    let layer = |kind, path: &str, text: &str| Layer { kind, source: SourceFile::new(path, text) };
    let user = layer(LayerKind::User, "user/tidegate.toml", user);
    let workspace = layer(LayerKind::Workspace, "work/tidegate.toml", workspace);
    Operator::of_layers(&[user, workspace]).map_err(|found| found.render(false))
}

/// What one file says, with all its keys.
fn alone(text: &str) -> Operator {
    Operator::of_source(&SourceFile::new("work/tidegate.toml", text)).unwrap_or_else(|found| panic!("{found}"))
}

/// Everything but where it is written.
fn plain(mut operator: Operator) -> Operator {
    operator.layers.clear();
    for rule in &mut operator.tools.permissions {
        *rule = PermissionRule { place: None, ..rule.clone() };
    }
    for entry in operator.plugins.iter_mut().chain(&mut operator.disabled) {
        entry.place = None;
        entry.settings.values_mut().for_each(|(_, place)| *place = None);
    }
    operator.rule_folders.more.iter_mut().for_each(|folder| folder.place = None);
    operator.rule_folders.required.clear();
    operator.rule_folders.disabled.clear();
    operator
}

/// The user's file, that of the workspace, and one file that says the same.
const MERGED: [(&str, &str, &str); 13] = [
    // Tables are merged by key, at any depth.
    ("[turn]\nmax_steps = 5\nmax_retries = 1", "[turn]\nmax_steps = 7", "[turn]\nmax_steps = 7\nmax_retries = 1"),
    ("[tools.shell]\ntimeout_ms = 5", "[tools.shell]\noutput_kib = 1", "[tools.shell]\ntimeout_ms = 5\noutput_kib = 1"),
    (
        "[tools.permission]\nshell = \"ask\"\nread_file = \"deny\"",
        "[tools.permission]\nshell = \"allow\"",
        "[tools.permission]\nshell = \"allow\"\nread_file = \"deny\"",
    ),
    // Lists are replaced, but for those that guard: these add up.
    ("[provider]\nmodels = [\"a\", \"b\"]", "[provider]\nmodels = [\"c\"]", "[provider]\nmodels = [\"c\"]"),
    ("[provider]\nmodels = [\"a\"]", "[provider]\nmodels = []", "[provider]\nmodels = []"),
    (
        "[rules]\nrequired = [\"a\", \"b\"]\ndisabled_rules = [\"x\"]",
        "[rules]\nrequired = [\"b\", \"c\"]\ndisabled_rules = [\"y\"]",
        "[rules]\nrequired = [\"a\", \"b\", \"c\"]\ndisabled_rules = [\"x\", \"y\"]",
    ),
    // What goes with an address goes with it.
    (
        "[provider]\nkind = \"anthropic\"\nbase_url = \"https://a\"\nallow_plaintext_key = true\napi_key_env = \"A\"\nheaders = { x = \"y\" }\nmax_tokens = 9",
        "[provider]\nbase_url = \"https://b\"",
        "[provider]\nkind = \"anthropic\"\nbase_url = \"https://b\"\nmax_tokens = 9",
    ),
    (
        "[provider]\nkind = \"anthropic\"\napi_key_env = \"A\"",
        "[provider]\nbase_url = \"https://b\"",
        "[provider]\nkind = \"anthropic\"\nbase_url = \"https://b\"",
    ),
    (
        "[provider]\nbase_url = \"https://a\"\napi_key_env = \"A\"\nheaders = { x = \"y\" }",
        "[provider]\nbase_url = \"https://a\"\nheaders = { z = \"w\" }",
        "[provider]\nbase_url = \"https://a\"\napi_key_env = \"A\"\nheaders = { x = \"y\", z = \"w\" }",
    ),
    (
        "[provider]\nkind = \"anthropic\"\nmodel = \"m\"\napi_key_env = \"A\"\nmax_tokens = 9",
        "[provider]\nkind = \"recording\"\nrecording = \"r\"",
        "[provider]\nkind = \"recording\"\nrecording = \"r\"",
    ),
    ("[state]\nbackend = \"disk\"\nfolder = \"s\"", "[state]\nbackend = \"memory\"", "[state]\nbackend = \"memory\""),
    ("[prompt]\nsystem_file = \"gone\"", "[prompt]\nsystem = \"Be brief.\"", "[prompt]\nsystem = \"Be brief.\""),
    ("", "[limits]\ncallback_ms = 7", "[limits]\ncallback_ms = 7"),
];

#[test]
fn a_layer_is_put_on_top_of_another() {
    for (user, workspace, both) in MERGED {
        let merged = layered(user, workspace).unwrap_or_else(|found| panic!("{user}\n{workspace}\n{found}"));
        assert_eq!(plain(merged), plain(alone(both)), "{user}\n--\n{workspace}");
    }
    assert_eq!(Operator::of_layers(&[]).unwrap(), Operator::default());
}

#[test]
fn paths_are_relative_to_the_file_that_names_them() {
    let user =
        "[rules]\nfolders = [\"rules\"]\n[state]\nbackend = \"disk\"\nfolder = \"s\"\n[[plugin]]\npath = \"p\"\n";
    let workspace = "[rules]\nfolders = [\"rules\"]\n[transcript]\nfolder = \"t\"\n[[plugin]]\npath = \"p\"\n\
                     [provider]\nkind = \"recording\"\nrecording = \"r\"\n";
    let operator = layered(user, workspace).unwrap();
    let folders: Vec<&Path> = operator.rule_folders.more.iter().map(|one| one.path.as_path()).collect();
    assert_eq!(folders, [Path::new("user/rules"), Path::new("work/rules")]);
    let plugins: Vec<&Path> = operator.plugins.iter().map(|one| one.folder.as_path()).collect();
    assert_eq!(plugins, [Path::new("user/p"), Path::new("work/p")]);
    assert_eq!(operator.state.place, StatePlace::Disk(Some("user/s".into())));
    assert_eq!(operator.transcript.folder, Some("work/t".into()));
    assert_eq!(operator.provider.recording, Some("work/r".into()));
}

#[test]
fn diagnostics_show_the_file_that_a_value_is_in() {
    // Neither file is wrong alone.
    let found = layered("[provider]\nrecording = \"r\"\n", "[turn]\nmax_steps = 7\n").unwrap_err();
    assert!(found.contains("user/tidegate.toml:2:13"), "{found}");
    let workspace = "# Long enough that the place is not in the other file.\n[provider]\nbase_url = \"no\"\n";
    let found = layered("[turn]\nmax_steps = 7\n", workspace).unwrap_err();
    assert!(found.contains("work/tidegate.toml:3:12"), "{found}");
    // Each file is reported with all of its problems.
    let found = layered("turns = 1\n", "[turn]\nmax_step = 7\n").unwrap_err();
    assert!(found.contains("user/tidegate.toml:1:1") && found.contains("work/tidegate.toml:2:1"), "{found}");
    let operator = layered("[tools.permission]\nshell = \"ask\"\n", "[tools.permission]\ngrep = \"ask\"\n").unwrap();
    let places = operator.tools.permissions.iter().map(|rule| rule.place.clone().unwrap().file.path.clone());
    assert_eq!(places.collect::<Vec<_>>(), [Path::new("work/tidegate.toml"), Path::new("user/tidegate.toml")]);
}

/// Two folders, `user` and `work`, with plugins and an operator's file in each.
struct Place(tempfile::TempDir);

impl Place {
    fn new(user: &str, workspace: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("user/tidegate.toml", user);
        place.write("work/tidegate.toml", workspace);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn plugin(&self, folder: &str, id: &str) {
        let text =
            format!("id = {id:?}\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\nbuild.kind = \"rust\"\n");
        self.write(&format!("{folder}/plugin.toml"), &text);
    }

    fn files(&self) -> OperatorFiles {
        OperatorFiles::new().user_folder(Some(self.path("user")))
    }

    fn operator(&self) -> Operator {
        self.files().read(&self.path("work")).unwrap().operator().unwrap_or_else(|found| panic!("{found}"))
    }
}

#[test]
fn entries_about_one_plugin_are_merged() {
    let user = "[[plugin]]\npath = \"a\"\ngrants = [\"state\"]\nrequired = true\n[plugin.settings]\nx = 1\ny = 1\n\
                [[plugin]]\npath = \"b\"\ngrants = [\"history\"]\nrequired = true\n[[plugin]]\npath = \"c\"\n";
    let workspace = "[[plugin]]\npath = \"own\"\n[[plugin]]\npath = \"../user/a\"\n[plugin.settings]\ny = 2\n\
                     [[plugin]]\npath = \"other-b\"\n[[plugin]]\npath = \"../user/./c\"\nenabled = false\n";
    let place = Place::new(user, workspace);
    for (folder, id) in [("user/a", "a"), ("user/b", "b"), ("user/c", "c"), ("work/own", "own"), ("work/other-b", "b")]
    {
        place.plugin(folder, id);
    }
    let operator = place.operator();
    let names: Vec<_> = operator.plugins.iter().map(|entry| entry.folder.file_name().unwrap().to_owned()).collect();
    // Those below keep their places; new ones follow.
    assert_eq!(names, ["a", "other-b", "own"]);
    let [a, b, _] = operator.plugins.as_slice() else { panic!("{names:?}") };
    assert_eq!((a.grants.len(), a.required, a.settings.len()), (1, true, 2));
    assert_eq!(a.settings["y"].0, flow::SettingValue::Number(2.0));
    // Grants do not pass to other code.
    assert_eq!((b.grants.len(), b.required), (0, false));
    assert_eq!(operator.disabled.len(), 1);
}

#[test]
fn only_a_file_that_is_absent_is_none() {
    let place = Place::new("[turn]\nmax_steps = 5\n", "[turn]\nmax_retries = 5\n");
    let found = place.files().read(&place.path("work")).unwrap();
    assert_eq!(
        found.layers.iter().map(|layer| layer.kind).collect::<Vec<_>>(),
        [LayerKind::User, LayerKind::Workspace]
    );
    std::fs::remove_file(place.path("work/tidegate.toml")).unwrap();
    let found = place.files().read(&place.path("work")).unwrap();
    assert_eq!(found.absent, [place.path("work/tidegate.toml")]);
    assert_eq!(found.operator().unwrap().turn.max_steps, 5);
    let none = OperatorFiles::new().user_folder(None).read(&place.path("work")).unwrap();
    let operator = none.operator().unwrap();
    assert_eq!(operator, Operator { absent: none.absent, ..Operator::default() });
    let named = place.files().named(Some(place.path("user/tidegate.toml"))).read(&place.path("work")).unwrap();
    assert_eq!(named.layers.last().unwrap().kind, LayerKind::Named);
    assert!(place.files().named(Some(place.path("gone.toml"))).read(&place.path("work")).is_err());
}

#[test]
fn the_environment_is_above_the_files() {
    let place = Place::new("[turn]\nmax_steps = 5\nmax_retries = 1\n", "[turn]\nmax_steps = 6\n");
    let read = |text: &OsStr| place.files().environment(Some(text)).read(&place.path("work"));
    let found = read(OsStr::new("turn.max_steps = 7")).unwrap();
    assert_eq!(found.layers.last().unwrap().kind, LayerKind::Environment);
    let turn = found.operator().unwrap().turn;
    assert_eq!((turn.max_steps, turn.max_retries), (7, Some(1)));
    let (set, _) = found.operator().unwrap().in_force(Some(&place.path("user")), &place.path("work")).unwrap();
    let steps = set.iter().find(|one| one.name == "turn.max_steps").unwrap().origin.last().unwrap().clone();
    assert_eq!(
        (steps.layer.as_str(), steps.file.as_path(), steps.line),
        ("environment", Path::new("TIDEGATE_SETTINGS"), 1)
    );
    // What is wrong is named with its place, as in a file.
    let wrong = read(OsStr::new("turn.max_steps = 7\nturn.max_stepz = 8")).unwrap().operator().unwrap_err().to_string();
    assert!(wrong.contains("TIDEGATE_SETTINGS:2:6") && wrong.contains("max_steps"), "{wrong}");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let wrong = read(OsStr::from_bytes(b"a = '\xff'")).unwrap_err().to_string();
        assert!(wrong.contains("`TIDEGATE_SETTINGS`") && wrong.contains("UTF-8"), "{wrong}");
    }
}

fn pipe(file: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
}

/// What makes a file unreadable.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    use std::os::unix::fs::symlink;
    type Spoil = fn(&Path);
    let cases: [(&str, Spoil, &str); 6] = [
        ("a dangling link", |file| symlink("gone", file).unwrap(), "No such file"),
        ("a link in a circle", |file| symlink("tidegate.toml", file).unwrap(), "symbolic link"),
        ("a folder", |file| std::fs::create_dir(file).unwrap(), "directory"),
        ("not UTF-8", |file| std::fs::write(file, b"# \xff\n").unwrap(), "UTF-8"),
        ("too large", |file| std::fs::write(file, vec![b'\n'; (4 << 20) + 1]).unwrap(), "exceeds the limit"),
        ("a pipe", pipe, "not a file"),
    ];
    for folder in ["user", "work"] {
        for (what, spoil, expected) in &cases {
            let place = Place::new("", "");
            let file = place.path(folder).join("tidegate.toml");
            std::fs::remove_file(&file).unwrap();
            spoil(&file);
            let found = place.files().read(&place.path("work")).unwrap_err().render(false);
            assert!(found.contains(expected) && found.contains("config-unreadable"), "{folder}, {what}: {found}");
        }
    }
    // A link out of the workspace shows files of this machine.
    let place = Place::new("", "");
    std::fs::remove_file(place.path("work/tidegate.toml")).unwrap();
    symlink("../user/tidegate.toml", place.path("work/tidegate.toml")).unwrap();
    let found = place.files().read(&place.path("work")).unwrap_err().render(false);
    assert!(found.contains("leads out of the workspace"), "{found}");
    // One inside of it does not, and paths are relative to the link.
    std::fs::remove_file(place.path("work/tidegate.toml")).unwrap();
    place.write("work/deeper/real.toml", "[transcript]\nfolder = \"t\"\n");
    symlink("deeper/real.toml", place.path("work/tidegate.toml")).unwrap();
    assert_eq!(place.operator().transcript.folder, Some(place.path("work/t")));
    // A folder of configuration that is a link to nowhere is none that is absent.
    std::fs::remove_dir_all(place.path("user")).unwrap();
    symlink("nowhere", place.path("user")).unwrap();
    let found = place.files().read(&place.path("work")).unwrap_err().render(false);
    assert!(found.contains("leads nowhere"), "{found}");
}

#[test]
fn the_key_of_the_user_does_not_go_to_the_address_of_another() {
    let user = "[provider]\nkind = \"openai-chat\"\nbase_url = \"https://corp\"\napi_key_env = \"CORP_KEY\"\n";
    let operator = layered(user, "[provider]\nbase_url = \"https://other\"\n").unwrap();
    assert_eq!(
        (operator.provider.key, operator.provider.base_url.as_deref()),
        (KeySource::Usual, Some("https://other"))
    );
}
