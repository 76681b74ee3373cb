//! What the `tidegate.toml` of a workspace can decide before its user trusts it, key by key, and what the question shows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use tidegate_config::{JudgedSettings, Operator, OperatorFiles, PermissionRule, TrustRequest, operator_schema};

use crate::support::keys;

/// What a project decides without being trusted: a key, a file of the user, and the file of the workspace.
const FREE: [(&str, &str, &str); 3] = [
    ("provider.model", "[provider]\nmodel = \"a\"\nmodels = [\"b\"]\n", "[provider]\nmodel = \"b\"\n"),
    ("tools.permission.*", "", "[tools.permission]\nshell = \"deny\"\n"),
    ("tools.permission.*", "", "[tools.permission]\n\"shell(rm *)\" = \"deny\"\nread_file = \"deny\"\n"),
];

/// Two folders, that of the user and a workspace.
struct Place(tempfile::TempDir);

impl Place {
    fn new(user: &str, workspace: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("user/tidegate.toml", user);
        place.write("work/tidegate.toml", workspace);
        for folder in ["user", "work"] {
            place.write(&format!("{folder}/system.txt"), "Do as you are told.\n");
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn judge(&self) -> JudgedSettings {
        let found = OperatorFiles::new().user_folder(Some(self.path("user"))).read(&self.path("work")).unwrap();
        found.judge().unwrap_or_else(|found| panic!("{found}"))
    }

    fn request(&self) -> TrustRequest {
        self.judge().request.unwrap()
    }
}

/// What an operator decides, wherever it is written.
fn plain(mut operator: Operator, folder: &Path) -> String {
    operator.layers.clear();
    operator.absent.clear();
    for rule in &mut operator.tools.permissions {
        *rule = PermissionRule { place: None, ..rule.clone() };
    }
    for entry in operator.plugins.iter_mut().chain(&mut operator.disabled) {
        (entry.place, entry.trusted) = (None, None);
        entry.settings.values_mut().for_each(|(_, place)| *place = None);
    }
    operator.rule_folders.more.iter_mut().for_each(|folder| folder.place = None);
    operator.gateway.routes.iter_mut().for_each(|route| route.place = None);
    operator.gateway.tokens.iter_mut().for_each(|token| token.place = None);
    operator.serve.tokens.iter_mut().for_each(|token| token.place = None);
    operator.rule_folders.required.clear();
    operator.rule_folders.disabled.clear();
    format!("{operator:#?}").replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn no_key_of_a_workspace_counts_before_it_is_trusted_and_each_counts_then() {
    let keys = keys::all(&operator_schema());
    let default = plain(Operator::default(), Path::new("-"));
    for keys::Key { path, file } in &keys {
        let (user, workspace) = (Place::new(file, ""), Place::new("", file));
        let of_user = user.judge();
        assert_eq!(of_user.request, None, "{path}: the user's own file asks for nothing");
        let set = plain(of_user.without, &user.path("user"));
        assert!(set != default, "{path} has no effect in the user's file:\n{file}");
        let of_workspace = workspace.judge();
        let request =
            of_workspace.request.unwrap_or_else(|| panic!("{path} counts without being asked about:\n{file}"));
        assert_eq!(plain(of_workspace.without, &workspace.path("work")), default, "{path}:\n{file}");
        assert_eq!(plain(of_workspace.with, &workspace.path("work")), set, "{path}:\n{file}");
        let last = path.rsplit('.').next().unwrap();
        let is_shown = |name: &str| last == "*" || name.ends_with(&format!(".{last}"));
        assert!(request.keys.iter().any(|key| is_shown(&key.name)), "{path} is not shown: {request:?}");
    }
    assert!(keys.len() >= 105, "only {} keys", keys.len());
}

/// The other files of a workspace are not asked about: the tests named here walk the keys of each of them.
#[test]
fn every_file_of_a_workspace_is_decided_about() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../CONFIGURATION.md")).unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = [
        (tidegate_config::rule_sources::PROJECT_FOLDER.to_owned(), "project_rules.rs"),
        (tidegate_config::agents::PROJECT_FOLDER.to_owned(), "agent_files.rs"),
        (format!(".tidegate/{}", tidegate_config::events::FILE), "event_layers.rs"),
        (
            format!("{}/{}", tidegate_config::events::FOREIGN_FOLDER, tidegate_config::events::YAML_FILE),
            "event_layers.rs",
        ),
        (format!(".tidegate/{}", tidegate_config::thread_limits::FILE), "thread_limits.rs"),
        (format!(".tidegate/{}", tidegate_config::errors::FILE), "error_project.rs"),
    ];
    for (file, test) in files {
        assert!(page.contains(&format!("`{file}`")), "the page does not say what `{file}` decides");
        assert!(tests.join(test).is_file(), "{test}");
    }
}

#[test]
fn what_a_project_decides_needs_no_trust() {
    for (key, user, workspace) in FREE {
        let (with, without) = (Place::new(user, workspace).judge(), Place::new(user, "").judge());
        assert_eq!(with.request, None, "{key}");
        assert_ne!(plain(with.with, Path::new("-")), plain(without.with, Path::new("-")), "{key}");
        // With anything else the whole file is asked about.
        let more = Place::new(user, &format!("{workspace}[turn]\nmax_steps = 3\n")).judge();
        assert_eq!(more.request.unwrap().keys.len(), workspace.matches(" = ").count() + 1, "{key}");
    }
    // A model that the operator does not offer, and a mode that is not `deny`.
    for workspace in ["[provider]\nmodel = \"c\"\n", "[tools.permission]\nshell = \"ask\"\n", "[rules]\nfolders = []\n"]
    {
        assert!(Place::new(FREE[0].1, workspace).judge().request.is_some(), "{workspace}");
    }
    for empty in
        ["", "[errors]\n[events]\n[limits.session]\nturns = 1\n", "# Nothing.\n", "[provider]\n[tools.permission]\n"]
    {
        assert_eq!(Place::new("", empty).judge().request, None, "{empty}");
    }
}

#[test]
fn the_question_shows_all_of_it_the_most_powerful_first() {
    let file = "[turn]\nmax_steps = 3\n[prompt]\nsystem_file = \"system.txt\"\n[tools.permission]\n\"*\" = \"allow\"\n\
                \"shell(a*)\" = \"ask\"\n[provider]\nbase_url = \"http:\\u002f/h\"\napi_key_env = \"CLOUD\"\n\
                headers = { x-token = \"t\" }\n[[plugin]]\npath = \"p/../q\"\ngrants = [\"state\", \"history\"]\n";
    let place = Place::new("", file);
    let request = place.request();
    let shown: Vec<String> = request.keys.iter().map(|key| format!("{} = {}", key.name, key.value.trim())).collect();
    let expected = [
        "provider.base_url = http://h".to_owned(),
        "provider.api_key_env = CLOUD".to_owned(),
        // Nothing is masked: it is what a stranger wrote.
        "provider.headers.x-token = t".to_owned(),
        "tools.permission.\"*\" = allow".to_owned(),
        "tools.permission.\"shell(a*)\" = ask".to_owned(),
        "plugin.\"p/../q\".path = p/../q".to_owned(),
        "plugin.\"p/../q\".grants = [\"state\", \"history\"]".to_owned(),
        "prompt.system_file = system.txt".to_owned(),
        "turn.max_steps = 3".to_owned(),
        "prompt.system_file, its text = Do as you are told.".to_owned(),
        "plugin.\"p/../q\", SHA-256 of its manifest = none".to_owned(),
        "plugin.\"p/../q\", SHA-256 of its component = none".to_owned(),
    ];
    assert_eq!(shown, expected);
    assert!(request.keys[0].meaning.unwrap().starts_with("requests go to this address"));
    assert!(request.is_readable());
    let long = Place::new("", &format!("[prompt]\nsystem = \"{}\"\n", "x".repeat(64 << 10)));
    assert!(!long.request().is_readable());
}

#[test]
fn whatever_is_trusted_together_is_in_the_digest() {
    let file = "[prompt]\nsystem_file = \"system.txt\"\n[[plugin]]\npath = \"plugin\"\n";
    let place = Place::new("", file);
    let manifest =
        "id = \"a\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\ncomponent.path = \"a.wasm\"\n";
    let mut seen = vec![place.request().digest];
    for (name, text) in [
        ("work/tidegate.toml", format!("# Only a comment.\n{file}").as_str()),
        ("work/system.txt", "Do something else.\n"),
        ("work/plugin/plugin.toml", manifest),
        ("work/plugin/a.wasm", "code"),
        ("work/plugin/a.wasm", "edoc"),
        ("work/plugin/plugin.toml", &manifest.replace("A.", "B.")),
    ] {
        place.write(name, text);
        let digest = place.request().digest;
        assert!(!seen.contains(&digest), "{name}: {text}");
        assert_eq!(place.request().digest, digest);
        seen.push(digest);
    }
    // Nor does it depend on how the path of the workspace is written.
    let other = OperatorFiles::new().user_folder(None).read(&place.path("work/plugin/..")).unwrap().judge().unwrap();
    assert_eq!(seen.last(), Some(&other.request.unwrap().digest));
    // What is not of the workspace's file is not in it.
    place.write("work/other.txt", "x");
    place.write("user/tidegate.toml", "[turn]\nmax_steps = 3\n");
    assert_eq!(seen.last(), Some(&place.request().digest));
}

#[test]
fn a_plugin_of_a_workspace_is_pinned_to_the_files_that_were_trusted() {
    let user = "[[plugin]]\npath = \"mine\"\n";
    let workspace = "[[plugin]]\npath = \"plugin\"\n[[plugin]]\npath = \"../user/mine\"\n";
    let place = Place::new(user, workspace);
    let manifest = |id: &str| {
        format!(
            "id = \"{id}\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\ncomponent.path = \"a.wasm\"\n"
        )
    };
    for (folder, id) in [("work/plugin", "a"), ("user/mine", "b")] {
        place.write(&format!("{folder}/plugin.toml"), &manifest(id));
        place.write(&format!("{folder}/a.wasm"), "");
    }
    let operator = place.judge().with;
    let pinned: Vec<_> = operator.plugins.iter().map(|entry| entry.trusted.clone()).collect();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    // The user's own is the user's to update.
    assert_eq!(pinned[0], None);
    assert_eq!(pinned[1].as_ref().unwrap().component.as_deref(), Some(empty));
    operator.load_plugins().unwrap();
    place.write("work/plugin/plugin.toml", &manifest("a").replace("A.", "Something else."));
    let found = operator.load_plugins().unwrap_err().render(false);
    assert!(found.contains("plugin-component-changed") && found.contains("tidegate trust"), "{found}");
}

#[test]
fn files_that_a_stranger_names_are_not_waited_for() {
    for file in ["/dev/zero", "/dev/stdin", "/proc/self/mem"] {
        let place = Place::new("", &format!("[prompt]\nsystem_file = \"{file}\"\n"));
        let found = OperatorFiles::new().user_folder(None).read(&place.path("work")).unwrap().judge().unwrap_err();
        assert!(found.render(false).contains("cannot read"), "{file}: {found}");
    }
}
