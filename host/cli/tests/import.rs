//! `tidegate rules import`: rule files for the rules of a secret scanner, and what they do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crate::support::{Place, Say, code, err, out, plain, recording};

/// A rule set of which one rule cannot be used.
const SET: &str = "[[rules]]\nid = \"acme-key\"\ndescription = \"An Acme key\"\nentropy = 3.5\n\
    regex = '''(?i)\\bacme[ \\w]{0,20}[:=] ?([a-f0-9]{32})(?:\\s|$)'''\nkeywords = [\"acme\"]\n\
    [[rules]]\nid = \"acme-unread\"\nregex = '''(acme)\\1'''\n";

/// The folder that rules of `acme.toml` are written into.
const FOLDER: &str = ".tidegate/rules/acme";

fn place() -> Place {
    let place = Place::new();
    place.write("acme.toml", SET);
    place
}

/// A key as the rule finds it.
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn files_are_written_once_and_are_good_rules() {
    let place = place();
    let dry = place.run(&["rules", "import", "acme.toml", "--dry-run"]);
    assert_eq!((code(&dry), place.path(FOLDER).exists()), (0, false), "{}", err(&dry));
    assert!(out(&dry).contains("1 rule file to write in .tidegate/rules/acme (0 disabled)"), "{}", out(&dry));

    let first = place.run(&["rules", "import", "acme.toml"]);
    assert_eq!(code(&first), 0, "{}", err(&first));
    let printed = out(&first);
    for part in [
        "acme.toml: gitleaks rules, 2 rules read",
        "skipped acme-unread (line 9): condition `(acme)\\1` is not valid: backreferences are not supported",
        "the entropy of the secret: values that are not random match, too (1 rule)\n    acme-key\n",
        "1 rule file written in .tidegate/rules/acme (0 disabled), 1 rule skipped; not carried over: 1 feature",
        "tidegate rules check .tidegate/rules/acme",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    let checked = place.run(&["rules", "check", "--deny-warnings"]);
    assert_eq!(code(&checked), 0, "{}", out(&checked));
    assert!(out(&checked).contains("1 file with 1 rule and 2 examples checked"), "{}", out(&checked));

    // What a person changed is not lost.
    place.write(&format!("{FOLDER}/acme-key.md"), "mine");
    place.write(&format!("{FOLDER}/old.md"), "---\nalwaysApply: true\n---\nB.\n");
    let again = place.run(&["rules", "import", "acme.toml"]);
    assert_eq!(code(&again), 2);
    assert!(
        err(&again)
            .contains("1 rule file is in the way, the first: `./.tidegate/rules/acme/acme-key.md`. Give --replace"),
        "{}",
        err(&again)
    );
    assert_eq!(std::fs::read_to_string(place.path(FOLDER).join("acme-key.md")).unwrap(), "mine");
    // A dry run reports, and ends as the real one.
    let dry = place.run(&["rules", "import", "acme.toml", "--dry-run", "--json"]);
    assert_eq!((code(&dry), err(&dry)), (2, err(&again)));
    assert!(out(&dry).contains("\"in_the_way\":[\"acme-key.md\"]"), "{}", out(&dry));
    let dry = place.run(&["rules", "import", "acme.toml", "--dry-run", "--replace"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    let replaced = place.run(&["rules", "import", "acme.toml", "--replace"]);
    assert_eq!(code(&replaced), 0, "{}", err(&replaced));
    assert!(err(&replaced).contains("1 other rule file is in .tidegate/rules/acme: old.md"), "{}", err(&replaced));
    assert!(std::fs::read_to_string(place.path(FOLDER).join("acme-key.md")).unwrap().contains("secret = true"));
}

#[test]
fn json_has_what_the_text_has() {
    let place = place();
    let found = place.json(&["rules", "import", "acme.toml", "--json", "--out", "mine"]);
    assert_eq!(
        (&found["format"], &found["read"], &found["written"]),
        (&"gitleaks rules".into(), &2.into(), &true.into())
    );
    let rule = &found["rules"][0];
    assert_eq!(
        (&rule["file"], &rule["hidden"], &rule["enabled"]),
        (&"acme-key.md".into(), &"secret".into(), &true.into())
    );
    assert_eq!(rule["left_out"][0]["feature"], "entropy");
    assert_eq!(found["skipped"][0]["finding"]["code"], "rule-invalid-condition");
    assert_eq!(found["skipped"][0]["finding"]["line"], 9);
    assert!(place.path("mine/acme-key.md").exists());
}

#[test]
fn what_is_no_rule_set_is_an_error_that_says_what_is() {
    let place = place();
    place.write("other.toml", "[package]\nname = \"a\"\n");
    place.write("broken.toml", "[[rules]]\nid = \"a\n");
    place.write("none.json", "{\"a\": \"(a)\\\\1\"}");
    for (file, wanted, parts) in [
        ("other.toml", 2, &["error[rule-set-format]: this is no rule set", "these are read: gitleaks (TOML"][..]),
        ("broken.toml", 2, &["error[config-syntax]: invalid basic string", "broken.toml:2:8", "^"]),
        ("gone.toml", 2, &["cannot read `gone.toml`: No such file"]),
        (".", 2, &["cannot read `.`"]),
        ("none.json", 1, &[]),
    ] {
        let done = place.run(&["rules", "import", file]);
        assert_eq!(code(&done), wanted, "{file}: {}{}", out(&done), err(&done));
        for part in parts {
            assert!(err(&done).contains(part), "{part:?} is not in {}", err(&done));
        }
    }
    assert!(!place.path(".tidegate").exists());
}

#[test]
fn the_set_is_imported_where_the_settings_of_the_host_are_broken() {
    let place = place();
    place.write("tidegate.toml", "[provider");
    let done = place.run(&["rules", "import", "acme.toml"]);
    assert_eq!(code(&done), 0, "{}", err(&done));
}

#[cfg(unix)]
#[test]
fn a_link_is_replaced_and_not_followed() {
    let place = place();
    place.write("mine.txt", "mine");
    std::fs::create_dir_all(place.path(FOLDER)).unwrap();
    let link = place.path(FOLDER).join("acme-key.md");
    std::os::unix::fs::symlink(place.path("mine.txt"), &link).unwrap();
    assert_eq!(code(&place.run(&["rules", "import", "acme.toml"])), 2);
    assert_eq!(code(&place.run(&["rules", "import", "acme.toml", "--replace"])), 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(std::fs::read_to_string(place.path("mine.txt")).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn no_file_is_written_behind_a_link_in_the_place_of_the_default_folder() {
    for part in [".tidegate", ".tidegate/rules", FOLDER] {
        let place = place();
        std::fs::create_dir_all(place.path("elsewhere/rules/acme")).unwrap();
        place.write("elsewhere/rules/acme/acme-key.md", "mine");
        place.write("elsewhere/acme/acme-key.md", "mine");
        place.write("elsewhere/acme-key.md", "mine");
        let link = place.path(part);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(place.path("elsewhere"), &link).unwrap();
        for option in ["--replace", "--dry-run"] {
            let done = place.run(&["rules", "import", "acme.toml", option]);
            assert_eq!(code(&done), 2, "{part} {option}: {}", out(&done));
            assert!(err(&done).contains(&format!("{part}` is a link")), "{part}: {}", err(&done));
        }
        assert!(!files(&place.path("elsewhere")).contains("Imported"), "{part}");
        // A folder that the user names is where they want the files.
        let named = place.run(&["rules", "import", "acme.toml", "--replace", "--out", FOLDER]);
        assert_eq!(code(&named), 0, "{part}: {}", err(&named));
    }
}

/// All files below a folder, as one text.
fn files(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.push_str(&files(&entry.path())),
            false => all.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap())),
        }
    }
    all
}

#[test]
fn the_secret_is_shown_nowhere_and_the_words_before_it_are() {
    let place = place();
    assert_eq!(code(&place.run(&["rules", "import", "acme.toml"])), 0);
    let (text, call) =
        (format!("Set acme key: {KEY}\nand restart."), format!("{{\"command\": \"echo acme={KEY} > x\"}}"));
    let answers: &[&[Say<'_>]] = &[
        &[Say::Text(&text)],
        &[Say::Call("shell", &call)],
        &[Say::Text("Set acme key from `ACME_KEY`, and restart.")],
    ];
    place.write("model/answers.jsonl", &recording(answers));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"model/answers.jsonl\"\n[tools.permission]\nshell = \"allow\"\n\
         [transcript]\nenabled = true\nfolder = \"sessions\"\n[rules]\nretry_delay_ms = 0\n",
    );
    let done = place.run(&["run", "Which key?", "--output", "stream-json"]);
    assert_eq!(code(&done), 0, "{}", err(&done));
    let shown = plain(&out(&done)) + &plain(&err(&done));
    // What precedes the secret did not wait, and the call did not run.
    for part in ["Set acme key: ", "acme/acme-key", "Set acme key from `ACME_KEY`"] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    assert!(!place.path("x").exists());
    let kept = files(&place.path("sessions"));
    assert!(kept.contains("Set acme key: "), "{kept}");
    for start in [0, 8, 20] {
        let part = &KEY[start..start + 6];
        assert!(!shown.contains(part) && !kept.contains(part), "{part} is in {shown}{kept}");
    }
}

/// Rules in the shapes of those of gitleaks, by its names.
const SHAPES: &str = r"
[[rules]]
id = 'adafruit-api-key'
regex = '(?i)adafruit[ \w]{0,20}[:=] ?([a-z0-9_-]{32})(?:\s|$)'
[[rules]]
id = 'github-pat'
regex = 'ghp_[0-9a-zA-Z]{36}'
[[rules]]
id = 'aws-access-token'
regex = '\b(A(?:KI|SI)A[A-Z2-7]{16})\b'
[[rules]]
id = 'stripe-access-token'
regex = '\b([rs]k_(?:test|live)_[a-zA-Z0-9]{10,99})(?:\s|$)'
[[rules]]
id = 'slack-bot-token'
regex = 'xoxb-[0-9]{10,13}-[0-9]{10,13}[a-zA-Z0-9-]*'
[[rules]]
id = 'gcp-api-key'
regex = '\b(AIza[\w-]{35})(?:\s|$)'
";

/// The rule set of gitleaks is not a part of this repository: `TIDEGATE_GITLEAKS` names its file, and it then takes the place of the shapes.
#[test]
fn the_rules_of_a_scanner_are_imported_and_hold() {
    let place = Place::new();
    place.write("shapes.toml", SHAPES);
    let (file, least) = std::env::var("TIDEGATE_GITLEAKS").map_or(("shapes.toml".to_owned(), 6), |file| (file, 100));
    let found = place.json(&["rules", "import", &file, "--json"]);
    let (read, rules) = (found["read"].as_u64().unwrap(), found["rules"].as_array().unwrap());
    assert!(read >= least && rules.len() as u64 == read, "{}", found["skipped"]);
    let checked = place.run(&["rules", "check"]);
    assert_eq!(code(&checked), 0, "{}", out(&checked));
    assert!(rules.iter().filter(|rule| rule["enabled"] == false).count() < 5);
    // Ordinary text passes.
    place.write("model/answers.jsonl", &recording(&[&[Say::Text(ORDINARY)]]));
    place.write("tidegate.toml", "[provider]\nkind = \"recording\"\nrecording = \"model/answers.jsonl\"\n");
    let done = place.run(&["run", "How do I configure it?"]);
    assert_eq!(code(&done), 0, "{}", err(&done));
    assert!(out(&done).contains(ORDINARY), "{}{}", out(&done), err(&done));
    // What fires, holds back nothing before the secret.
    // No key is whole in this file, so that scanners find none.
    let body = "0a1B2c3D".repeat(5);
    let lower = body.to_lowercase();
    for (rule, text, begin, secret) in [
        ("adafruit-api-key", "the adafruit_key = ", "", &lower[..32]),
        ("github-pat", "use ", "ghp_", &body[..36]),
        ("aws-access-token", "use ", "AKIA", "2345ABCD2345WXYZ"),
        ("stripe-access-token", "use ", "sk_test_", &body[..16]),
        ("slack-bot-token", "use ", "xoxb-", "0123456789-0123456789-0a1B"),
        ("gcp-api-key", "use ", "AIza", &body[..35]),
    ] {
        let answer = format!("Please {text}{begin}{secret} now");
        place.write("model/answers.jsonl", &recording(&[&[Say::Text(&answer)], &[Say::Text("Done.")]]));
        let done = place.run(&["run", "Which key?", "--output", "stream-json"]);
        let shown = plain(&out(&done)) + &plain(&err(&done));
        assert!(shown.contains(rule) && shown.contains(&format!("Please {}", text.trim_end())), "{rule}: {shown}");
        assert!(!shown.contains(&secret[secret.len() - 12..secret.len() - 2]), "{rule}: {shown}");
    }
}

const ORDINARY: &str = "Set `API_KEY` in the environment: `api_key = os.environ[\"API_KEY\"]`. The access token is read from a file, and \
                        the commit 3f2504e04f8911d39a0c0305e82c3301a1b2c3d4 has the details.";
