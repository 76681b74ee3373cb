//! An independent linter (`tombi`) reads our sample files with our published JSON Schemas, as an author's editor does:
//! what we accept it accepts, what we refuse it refuses on a line that we name too.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tidegate_tests::servers::tombi;

/// What the reader refuses and no schema can: a file on disk, two keys together, the inside of a text.
const BEYOND_OPERATOR_SCHEMA: [&str; 56] = [
    "gateway.certificate_without-its-key",
    "gateway.conversation_header_taken",
    "gateway.hosts_with-a-port",
    "gateway.listen_no-address",
    "gateway.listen_nobody-is-admitted",
    "gateway.route.key_a-secret",
    "gateway.route.key_nobody-is-admitted",
    "gateway.route.path_twice",
    "gateway.route.path_unusable",
    "gateway.route.upstream_in-the-clear",
    "gateway.route.upstream_unusable",
    "gateway.token.routes_unknown",
    "gateway.token.twice",
    "gateway.token.value_a-secret",
    "limits.state_mib_more-than-a-session",
    "plugin.grants_twice",
    "plugin.limits_state-more-than-a-session",
    "plugin.sha256_not-a-digest",
    "prompt.system_file_not-there",
    "prompt.system_given-twice",
    "provider.api_key_env_a-secret",
    "provider.base_url_blank",
    "provider.base_url_no-host",
    "provider.base_url_no-http",
    "provider.base_url_port",
    "provider.base_url_query",
    "provider.base_url_user",
    "provider.headers_not-a-header",
    "provider.recording_missing",
    "provider.recording_not-read",
    "rules.folders_twice",
    "serve.address_with-a-path",
    "serve.certificate_key_alone",
    "serve.hosts_with-a-port",
    "serve.listen_no-address",
    "serve.listen_nobody-is-admitted",
    "serve.origins_with-a-path",
    "serve.token.name_no-user",
    "serve.token.twice",
    "serve.token.value_a-secret",
    "state.allow_plaintext_password_other-backend",
    "state.ca_other-backend",
    "state.certificate_key_without-certificate",
    "state.certificate_without-key",
    "state.folder_other-backend",
    "state.password_typed",
    "state.url_env_a-url",
    "state.user_without-password",
    "tools.permission_bad-glob",
    "tools.permission_empty-pattern",
    "tools.permission_no-closing",
    "tools.permission_no-name",
    "tools.permission_pattern-for-all",
    "tools.shell.env_an-assignment",
    "transcript.backend_state-elsewhere",
    "turn.max_repeats_once",
];
const BEYOND_POLICY_SCHEMA: [&str; 10] = [
    "addresses_a-path",
    "addresses_a-user",
    "addresses_no-scheme",
    "addresses_wildcard",
    "key_env_not-a-name",
    "plugin.enabled_false",
    "plugin.required_false",
    "plugin.sha256_not-a-digest",
    "rules.required_folders_twice",
    "tools.permission_bad-glob",
];
const BEYOND_MANIFEST_SCHEMA: [&str; 26] = [
    "api_unknown",
    "component.path_absolute",
    "component.path_outside",
    "events.payload_schema_not-a-schema",
    "events.payload_schema_patterns",
    "events_name",
    "id_of-the-host",
    "nothing_does-nothing",
    "prompt.when.context_match.model_bad-glob",
    "prompt.when.context_match.turn_ambiguous",
    "prompt.when.context_match.turn_backwards",
    "prompt.when.context_match_empty",
    "prompt.when.state_value_both",
    "prompt.when.state_value_no-component",
    "prompt.when.state_value_no-test",
    "prompt.when.state_value_not-asked-for",
    "prompt.when.tag_present_malformed",
    "prompt.when_empty",
    "prompt_not-asked-for",
    "rule.name_twice",
    "rule_speaks-without-capability",
    "settings_default-of-other-type",
    "tools.tool_order_twice",
    "tools_preferred-and-avoided",
    "version_leading-zero",
    "version_no-version",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A folder where the linter holds every file against one schema.
struct Linter {
    folder: TempDir,
    program: PathBuf,
}

impl Linter {
    fn new(schema: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::copy(root().join("host/config/schema").join(schema), folder.path().join("schema.json")).unwrap();
        let config = "[[schemas]]\npath = \"schema.json\"\ninclude = [\"*.toml\"]\n";
        fs::write(folder.path().join("tombi.toml"), config).unwrap();
        Self { folder, program: tombi().unwrap() }
    }

    /// The lines the linter complains about (from 1), and all it says; no lines = it is content.
    fn lint(&self, file: &Path) -> (BTreeSet<usize>, String) {
        let name = "checked.toml";
        fs::copy(file, self.folder.path().join(name)).unwrap();
        let run = Command::new(&self.program)
            .args(["lint", "--offline", name])
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .output();
        let run = run.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        let places = said.split("checked.toml:").skip(1);
        let lines: BTreeSet<usize> = places.filter_map(|rest| rest.split(':').next()?.parse().ok()).collect();
        assert_eq!(run.status.success(), lines.is_empty(), "{}: {said}", file.display());
        (lines, said)
    }
}

fn samples(folder: &str) -> Vec<PathBuf> {
    let folder = root().join("tests/corpus/config").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// The lines that our own diagnostics name: ` --> FILE:LINE:COLUMN`.
fn ours(file: &Path) -> BTreeSet<usize> {
    let said = fs::read_to_string(file.with_extension("stderr")).unwrap();
    let places = said.lines().filter(|line| line.contains("--> "));
    places.filter_map(|line| line.rsplit(':').nth(1)?.parse().ok()).collect()
}

fn check(kind: &str, schema: &str, beyond: &[&str], at_least: usize) {
    let linter = Linter::new(schema);
    let mut accepted = samples(&format!("{kind}/valid"));
    if kind == "manifest" {
        // A broken rule costs itself alone; what the linter says of one is reported as well.
        for file in samples("manifest/findings") {
            let (lines, said) = linter.lint(&file);
            assert!(lines.is_empty() || !ours(&file).is_empty(), "{} is not reported: {said}", file.display());
        }
        let plugins =
            fs::read_dir(root().join("plugins")).unwrap().map(|entry| entry.unwrap().path().join("plugin.toml"));
        accepted.extend(plugins.filter(|manifest| manifest.exists()));
    }
    assert!(accepted.len() >= 3, "only {} valid files", accepted.len());
    for file in accepted {
        let (lines, said) = linter.lint(&file);
        assert!(lines.is_empty(), "{} was refused: {said}", file.display());
    }
    let refused = samples(&format!("{kind}/invalid"));
    assert!(refused.len() >= at_least, "only {} invalid files", refused.len());
    let mut passed = Vec::new();
    for file in refused {
        let (lines, said) = linter.lint(&file);
        if lines.is_empty() {
            passed.push(file.file_stem().unwrap().to_string_lossy().into_owned());
        } else {
            assert!(!lines.is_disjoint(&ours(&file)), "{}: we name other lines than {said}", file.display());
        }
    }
    assert_eq!(passed, beyond, "the list of what no schema can say is out of date");
}

#[test]
fn operator_files_are_judged_alike_by_an_independent_linter() {
    check("operator", "tidegate.schema.json", &BEYOND_OPERATOR_SCHEMA, 35);
}

#[test]
fn policies_are_judged_alike_by_an_independent_linter() {
    check("policy", "policy.schema.json", &BEYOND_POLICY_SCHEMA, 20);
}

#[test]
fn manifests_are_judged_alike_by_an_independent_linter() {
    check("manifest", "plugin.schema.json", &BEYOND_MANIFEST_SCHEMA, 51);
}
