//! The settings in force, each with the files and lines that set it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use flow::SourceFile;
use tidegate_config::{Layer, LayerKind, Operator};

/// `name = value  # origin`, of what the files set.
fn set(user: &str, workspace: &str) -> Vec<String> {
    let layer = |kind, path: &str, text: &str| Layer { kind, source: SourceFile::new(path, text) };
    let user = layer(LayerKind::User, "user.toml", user);
    let workspace = layer(LayerKind::Workspace, "work.toml", workspace);
    let operator = Operator::of_layers(&[user, workspace]).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let in_force = operator.in_force(None, Path::new("nowhere")).unwrap().0;
    let of_files = in_force.iter().filter(|setting| !setting.origin.is_empty());
    let line = |setting: &tidegate_config::SettingInForce| {
        let origin: Vec<String> =
            setting.origin.iter().map(|one| format!("{}:{}", one.file.display(), one.line)).collect();
        format!("{}  # {}", setting.toml(), origin.join(", "))
    };
    of_files.map(line).collect()
}

#[test]
fn each_setting_names_the_highest_file_that_sets_it() {
    let cases: [(&str, &str, &[&str]); 10] = [
        (
            "[turn]\nmax_steps = 5\nmax_retries = 1",
            "[turn]\nmax_steps = 7",
            &["turn.max_retries = 1  # user.toml:3", "turn.max_steps = 7  # work.toml:2"],
        ),
        (
            "[provider]\nmodels = [\"a\"]",
            "\n[provider]\nmodels = [\"b\"]",
            &["provider.models = [\"b\"]  # work.toml:3"],
        ),
        // Lists that add up come from several files.
        (
            "[rules]\nrequired = [\"a\"]",
            "[rules]\nrequired = [\"b\"]",
            &["rules.required = [\"a\", \"b\"]  # user.toml:2, work.toml:2"],
        ),
        // What goes with a replaced address is not in force.
        (
            "[provider]\nbase_url = \"https://a\"\napi_key_env = \"A\"",
            "[provider]\nbase_url = \"https://b\"",
            &["provider.base_url = \"https://b\"  # work.toml:2"],
        ),
        // Keys as TOML has them; secrets are not shown.
        (
            "[tools.permission]\n\"shell(git *)\" = \"allow\"\n[provider.headers]\nx-key = \"abc\"",
            "",
            &[
                "provider.headers.x-key = \"***\"  # user.toml:4",
                "tools.permission.\"shell(git *)\" = \"allow\"  # user.toml:2",
            ],
        ),
        // A pattern is no name of a secret, and a secret can be written in any way.
        (
            "[tools.permission]\n\"read_file(**/secrets/**)\" = \"deny\"\nmonkey = \"ask\"",
            "",
            &[
                "tools.permission.monkey = \"ask\"  # user.toml:3",
                "tools.permission.\"read_file(**/secrets/**)\" = \"deny\"  # user.toml:2",
            ],
        ),
        (
            "[provider.headers]\nx-meta = \"{\\\"a\\\": 1}\"",
            "",
            &["provider.headers.x-meta = \"********\"  # user.toml:2"],
        ),
        (
            "[tools.permission]\n\"shell(x ghp_0123456789abcdefghijABCDEFGHIJ012345)\" = \"ask\"",
            "",
            &["tools.permission.\"shell(x ***)\" = \"ask\"  # user.toml:2"],
        ),
        (
            "[prompt]\nsystem = \"\"\"\nOne \\\"line\\\"\nand another\"\"\"",
            "",
            &["prompt.system = \"One \\\"line\\\"\\nand another\"  # user.toml:2"],
        ),
        (
            "[[plugin]]\npath = \"plugins/a\"\ngrants = [\"state\"]\n[plugin.settings]\nlimit = 3",
            "",
            &[
                "plugin.\"plugins/a\".grants = [\"state\"]  # user.toml:3",
                "plugin.\"plugins/a\".path = \"plugins/a\"  # user.toml:2",
                "plugin.\"plugins/a\".settings.limit = 3  # user.toml:5",
            ],
        ),
    ];
    for (user, workspace, expected) in cases {
        assert_eq!(set(user, workspace), expected, "{user}\n---\n{workspace}");
    }
}

#[test]
fn every_other_key_with_a_default_has_it() {
    let source = SourceFile::new("a.toml", "[turn]\nmax_steps = 5");
    let operator = Operator::of_layers(&[Layer { kind: LayerKind::User, source }]).unwrap();
    let all = operator.in_force(None, Path::new("nowhere")).unwrap().0;
    let value = |name: &str| {
        let found: Vec<_> = all.iter().filter(|setting| setting.name == name).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        (found[0].value.to_string(), found[0].origin.len())
    };
    assert_eq!(value("turn.max_steps"), ("5".to_owned(), 1));
    assert_eq!(value("provider.connect_timeout_ms"), ("10000".to_owned(), 0));
    assert_eq!(value("rules.hold"), ("\"match\"".to_owned(), 0));
    // What is shown is a file that says the same: defaults are what the program uses.
    let text: String =
        all.iter().filter(|setting| setting.origin.is_empty()).map(|setting| setting.toml() + "\n").collect();
    let said = Operator::of_source(&SourceFile::new("a.toml", text)).unwrap_or_else(|found| panic!("{found}"));
    let plain = |operator: Operator| Operator { layers: Vec::new(), ..operator };
    assert_eq!(plain(said), plain(Operator::default()));
}
