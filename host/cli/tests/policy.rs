//! The policy of the machine, `/etc/tidegate/policy.toml`, in front of the program as it is shipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Output, Stdio};

use crate::support::machine::under;
use crate::support::{Place, Say, code, err, out, recording};

const FILE: &str = "/etc/tidegate/policy.toml";

/// A workspace whose settings allow everything, and whose model writes a file.
fn place() -> Place {
    let place = Place::new();
    let arguments = serde_json::json!({"path": "made.txt", "content": "x"}).to_string();
    let answers: [&[Say<'_>]; 2] = [&[Say::Call("write_file", &arguments)], &[Say::Text("Done.")]];
    place.write("answers.jsonl", &recording(&answers));
    let provider = "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n";
    place.write("tidegate.toml", &format!("{provider}[tools.permission]\n\"*\" = \"allow\"\n"));
    place.write(
        "other/tidegate.toml",
        &format!("{}[tools.permission]\nwrite_file = \"allow\"\n", provider.replace("answers", "../answers")),
    );
    place
}

fn run(place: &Place, policy: &str, arguments: &[&str]) -> Output {
    let mut command = under(policy, &place.command(arguments));
    // Variables of the user name other places for other files, and none for this one.
    command.env("TIDEGATE_POLICY", "none").env("HOME", place.path("home")).env("XDG_CONFIG_DIRS", place.path("home"));
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn nothing_that_the_user_or_a_workspace_says_permits_more() {
    let ways: [&[&str]; 6] = [
        &["run", "Go."],
        &["run", "Go.", "--permission", "write_file=allow"],
        &["run", "Go.", "--permission", "*=allow", "--permission", "write_file(**)=allow"],
        &["--config", "other/tidegate.toml", "run", "Go."],
        &["run", "Go.", "--output", "stream-json"],
        &["run", "Go.", "--no-transcript"],
    ];
    for arguments in ways {
        let place = place();
        let ran = run(&place, "[tools.permission]\nwrite_file = \"deny\"\n", arguments);
        let said = format!("{}{}", out(&ran), err(&ran));
        assert!(!place.path("made.txt").exists(), "{arguments:?}: {said}");
        assert!(
            said.contains("policy of this machine") && said.contains(&format!("{FILE}:2")),
            "{arguments:?}: {said}"
        );
    }
    // Without an entry about the tool it is the operator's decision.
    let place = place();
    let ran = run(&place, "[tools.permission]\nshell = \"deny\"\n", ways[0]);
    assert!(code(&ran) == 0 && place.path("made.txt").exists(), "{}", err(&ran));
}

#[test]
fn flags_for_addresses_and_keys_are_under_the_policy_and_doctor_says_so() {
    let place = place();
    place.write("tidegate.toml", "");
    let policy = "addresses = [\"https://api.anthropic.com\"]\nkey_env = [\"ANTHROPIC_API_KEY\"]\n";
    let to = |url: &'static str, key: &'static str| {
        ["--provider", "openai-chat", "--model", "m", "--base-url", url, "--api-key-env", key]
    };
    for (flags, refused) in [
        (to("http://127.0.0.1:9", ""), "http://127.0.0.1:9 for the provider"),
        (to("https://api.anthropic.com", "HOME"), "the variable HOME for `api_key_env`"),
    ] {
        for command in [&["run", "Go."][..], &["doctor"]] {
            let ran = run(&place, policy, &[command, &flags].concat());
            let said = format!("{}{}", out(&ran), err(&ran));
            assert!(code(&ran) != 0 && said.contains(refused) && said.contains(FILE), "{command:?} {flags:?}: {said}");
        }
    }
    let checked = run(&place, policy, &["doctor"]);
    let line = format!("policy: {FILE}: addresses: https://api.anthropic.com; variables of keys: ANTHROPIC_API_KEY");
    assert!(out(&checked).contains(&line), "{}", out(&checked));
}

#[test]
fn nothing_runs_under_a_policy_that_is_wrong() {
    let place = place();
    let commands: [&[&str]; 5] =
        [&["run", "Go."], &["doctor"], &["plugin", "list"], &["rules", "list"], &["explain", "--prompt", "Go."]];
    for arguments in commands {
        let ran = run(&place, "[permission]\nwrite_file = \"deny\"\n", arguments);
        let said = format!("{}{}", out(&ran), err(&ran));
        assert!(
            code(&ran) != 0 && said.contains("unknown key `permission`") && said.contains(FILE),
            "{arguments:?}: {said}"
        );
        assert!(!place.path("made.txt").exists(), "{arguments:?}");
    }
}

/// Servers of a gateway, and the variables of its keys and tokens.
#[test]
fn routes_of_a_gateway_are_under_the_policy() {
    let policy = "addresses = [\"https://api.anthropic.com\"]\nkey_env = [\"ANTHROPIC_API_KEY\", \"A_TOKEN\"]\n";
    let with = |upstream: &str, key: &str, token: &str| {
        format!(
            "[[gateway.route]]\npath = \"/a\"\nupstream = \"{upstream}\"\nkey = \"env:{key}\"\n\
             [[gateway.token]]\nname = \"a\"\nvalue = \"env:{token}\"\n"
        )
    };
    let own = "https://api.anthropic.com/v1";
    for (settings, refused) in [
        (
            with("http://127.0.0.1:9", "ANTHROPIC_API_KEY", "A_TOKEN"),
            "http://127.0.0.1:9 for the route `/a` of the gateway",
        ),
        (with(own, "HOME", "A_TOKEN"), "the variable HOME for `gateway.route.key`"),
        (with(own, "ANTHROPIC_API_KEY", "HOME"), "the variable HOME for `gateway.token.value`"),
        // A permitted configuration is only invalid because the variable is not set.
        (with(own, "ANTHROPIC_API_KEY", "A_TOKEN"), "the variable A_TOKEN, which contains the token `a`, is not set"),
    ] {
        let place = Place::new();
        place.write("tidegate.toml", &settings);
        let mut command = under(policy, &place.command(&["gateway"]));
        command.env("ANTHROPIC_API_KEY", "k").env_remove("A_TOKEN");
        let ran = command.stdin(Stdio::null()).output().unwrap();
        assert!(code(&ran) == 2 && err(&ran).contains(refused), "{settings}: {}", err(&ran));
    }
}

/// A policy, flags, variables, the exit code, and words that are printed.
type Guarded<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], i32, &'a str);

/// Servers that `guard` sends requests to: those of its flags and of the command's own variables.
#[test]
fn addresses_of_a_guarded_command_are_under_the_policy() {
    let policy = "addresses = [\"https://api.anthropic.com\", \"http://127.0.0.1:9\"]\n";
    let (other, own) = ("http://127.0.0.1:8", "http://127.0.0.1:9");
    let openai = "does not permit https://api.openai.com for `tidegate guard`";
    let [by_flag, by_variable] =
        ["--anthropic-url", "OPENAI_BASE_URL"].map(|by| format!("does not permit {other} for `{by}`"));
    let cases: [Guarded<'_>; 5] = [
        (policy, &[], &[("ANTHROPIC_BASE_URL", own)], 0, openai),
        (policy, &["--anthropic-url", other], &[], 2, &by_flag),
        (policy, &[], &[("OPENAI_BASE_URL", other)], 2, &by_variable),
        (policy, &["--openai-url", own], &[("OPENAI_BASE_URL", other), ("ANTHROPIC_BASE_URL", own)], 0, ""),
        ("addresses = []\n", &[], &[], 2, openai),
    ];
    for (policy, flags, variables, expected, told) in cases {
        let place = Place::new();
        let command = [&["guard"], flags, &["--", "touch", "ran"]].concat();
        let mut command = under(policy, &place.command(&command));
        command.env_remove("ANTHROPIC_BASE_URL").env_remove("OPENAI_BASE_URL");
        let ran = command.envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
        let said = err(&ran);
        assert_eq!(
            (code(&ran), place.path("ran").exists()),
            (expected, expected == 0),
            "{flags:?} {variables:?}: {said}"
        );
        assert!(
            said.contains(told) && (!told.is_empty() || !said.contains("policy")),
            "{flags:?} {variables:?}: {said}"
        );
    }
}
