//! What is redacted, what is not, and what is kept about it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_sdk::Content;
use tidegate_sdk::testing::{Answer, Harness};

use super::*;

#[path = "../../../sdk/secrets/tests/corpus/mod.rs"]
mod corpus;

/// The corpus that the list of shapes is tested with, too.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/secrets")
}

fn plugin() -> Harness<RedactSecrets> {
    Harness::of_plugin(include_str!("../plugin.toml"))
}

/// The user sees `expected` of an answer, and of the same answer after an attempt that was stopped anywhere in it; the same of
/// reasoning.
fn check(text: &str, expected: &str) {
    assert_eq!(plugin().retried(text).text, expected, "for {text:?}");
    assert_eq!(plugin().retried(Answer::new().thinking(text)).thinking, expected, "for {text:?} as reasoning");
}

/// A run of letters and digits that is nobody's key.
fn letters(count: usize) -> String {
    "a1B2c3D4e5F6g7H8i9J0".chars().cycle().take(count).collect()
}

#[test]
fn keys_that_tell_themselves_are_redacted() {
    check(&format!("key sk-ant-{} end\n", letters(40)), "key [redacted Anthropic key] end\n");
    check(&format!("`ghp_{}`", letters(36)), "`[redacted GitHub token]`");
    check(&format!("id=AKIA{}", "ABCDEFGH12345678"), "id=[redacted AWS key]");
    check(&format!("xoxb-{}.", letters(20)), "[redacted Slack token].");
    let token = format!("eyJ{}.eyJ{}.{}", letters(20), letters(20), letters(20));
    check(&format!("jwt {token}, next"), "jwt [redacted web token], next");
}

#[test]
fn passwords_are_redacted_where_their_name_says_so() {
    check("postgres://app:s3cr3tpw@db:5432/x\n", "postgres://app:[redacted password]@db:5432/x\n");
    check("password = \"correct-horse\"\n", "password = \"[redacted password]\"\n");
    check("{\"client_secret\": \"q9w8e7r6\"}", "{\"client_secret\": \"[redacted password]\"}");
    check("export DB_PASSWORD=Tr0ub4dor3xyz", "export DB_PASSWORD=[redacted password]");
    check(&format!("Authorization: Bearer {}", letters(32)), "Authorization: Bearer [redacted token]");
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    for text in [
        "",
        "Write a password field: `password: String`, and a token: u32.\n",
        "password = \"your-password-here\"\n",
        "let token = lexer.next_token();\n",
        "API_KEY=$OPENAI_API_KEY\n",
        "see https://example.org:8080/a@b and mailto:a@b.c\n",
        "the prefix sk- is short, and ghp_ too; AKIAXXXXXXXXXXXXXXXX is an example\n",
        "Basic understanding of Bearer tokens\n",
        "a line that begins -----BEGIN PRIVATE KEY----- is followed by the key\n",
        "task-force-of-very-long-words-with-dashes\n",
        "grüße, 世界: password is a wörd\n",
    ] {
        check(text, text);
    }
}

#[test]
fn a_private_key_is_redacted_over_its_lines() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----\n";
    check(&format!("Here:\n{key}done\n"), "Here:\n[redacted private key]\ndone\n");
    check("> -----BEGIN PRIVATE KEY-----\n> MIIE\nWords end it.\n", "> [redacted private key]\nWords end it.\n");
    check(
        "k: \"-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----\\n\"",
        "k: \"[redacted private key]\\n\"",
    );
}

#[test]
fn an_open_key_outlives_the_instance_and_not_the_message() {
    let mut harness = plugin();
    let at = |unit| TextPlace::new(unit, &[]);
    harness.plain_text_at("-----BEGIN PRIVATE KEY-----\n", &at(0)).expect("begins");
    harness.restart();
    assert_eq!(harness.plain_text_at("MIIEpAIB\n", &at(1)).expect("inside"), TextAnswer::replace(""));
    let inside_tag = TextPlace::new(2, &["note"]);
    assert_eq!(harness.plain_text_at("word\n", &inside_tag).expect("elsewhere"), TextAnswer::Pass);
    assert_eq!(harness.plain_text_at("word\n", &at(0)).expect("next message"), TextAnswer::Pass);
}

#[test]
fn reasoning_is_searched_and_does_not_mix_with_the_answer() {
    let mut harness = plugin();
    let at = |unit| TextPlace::new(unit, &[]);
    let thought = |unit| at(unit).in_stream(TextStream::Thinking);
    harness.plain_text_at("-----BEGIN PRIVATE KEY-----\n", &thought(0)).expect("begins");
    assert_eq!(harness.plain_text_at("word\n", &at(0)).expect("the answer"), TextAnswer::Pass);
    harness.restart();
    assert_eq!(harness.plain_text_at("MIIEpAIB\n", &thought(1)).expect("inside"), TextAnswer::replace(""));
    let key = format!("ghp_{}", letters(36));
    harness.plain_text_at("-----END PRIVATE KEY-----\n", &thought(2)).expect("ends");
    let shown = harness.plain_text_at(&format!("so {key}\n"), &thought(3)).expect("a token");
    assert_eq!(shown, TextAnswer::replace("so [redacted GitHub token]\n"));
}

#[test]
fn a_key_whose_beginning_was_missed_is_redacted_from_where_it_is_seen() {
    let body = letters(64) + "\n";
    let at = |unit| TextPlace::new(unit, &[]);
    let marker = TextAnswer::replace("[redacted private key]\n");
    // The line that begins the key failed, so the next one is the first of a new instance; or it was skipped.
    let mut new = plugin();
    let mut skipped = plugin();
    skipped.plain_text_at("Here it is:\n", &at(0)).expect("before the key");
    for (harness, first) in [(&mut new, 1), (&mut skipped, 2)] {
        assert_eq!(harness.plain_text_at(&body, &at(first)).expect("the middle"), marker);
        assert_eq!(harness.plain_text_at("abc=\n", &at(first + 1)).expect("the last line"), TextAnswer::replace(""));
        let end = harness.plain_text_at("-----END PRIVATE KEY-----\n", &at(first + 2)).expect("the end");
        assert_eq!(end, TextAnswer::replace(""));
        assert_eq!(harness.plain_text_at(&body, &at(first + 3)).expect("another text"), TextAnswer::Pass);
    }
    // Words after a gap end the doubt.
    assert_eq!(new.plain_text_at("some words\n", &at(9)).expect("words"), TextAnswer::Pass);
    assert_eq!(new.plain_text_at(&body, &at(10)).expect("no key"), TextAnswer::Pass);
}

#[test]
fn headers_of_a_key_whose_beginning_was_missed_keep_the_doubt() {
    let body = letters(64) + "\n";
    let at = |unit| TextPlace::new(unit, &[]);
    let marker = TextAnswer::replace("[redacted private key]\n");
    for (headers, shown) in [
        (&["Proc-Type: 4,ENCRYPTED\n", "DEK-Info: AES-128-CBC,0011223344556677\n", "\n"][..], 0),
        (&["Version: GnuPG v2\n", "\n"], 2),
        (&["Version: 1\n", "Comment: a build\n", "Charset: UTF-8\n", "X-Kind: old\n", "\n"], 5),
        (&["MIIE\n"], 1),
    ] {
        let mut harness = plugin();
        harness.plain_text_at("Here it is:\n", &at(0)).expect("before the key");
        // The line that begins the key was withheld.
        let lines = headers.iter().copied().chain([body.as_str(), "abc=\n", "-----END PRIVATE KEY-----\n"]);
        let answers: Vec<TextAnswer> =
            lines.zip(2..).map(|(line, unit)| harness.plain_text_at(line, &at(unit)).expect("a line")).collect();
        let (before, key) = answers.split_at(shown);
        assert!(before.iter().all(|answer| *answer == TextAnswer::Pass), "{headers:?}: {answers:?}");
        assert_eq!(key[0], marker, "{headers:?}");
        assert!(key[1..].iter().all(|answer| *answer == TextAnswer::replace("")), "{headers:?}: {answers:?}");
    }
    // The doubt has an end, and does not reach the next message.
    let mut harness = plugin();
    for unit in 1..40 {
        assert_eq!(harness.plain_text_at("word\n", &at(unit)).expect("a word"), TextAnswer::Pass);
    }
    assert_eq!(harness.plain_text_at(&body, &at(40)).expect("no key"), TextAnswer::Pass);
    harness.plain_text_at("word\n", &at(42)).expect("after a gap");
    assert_eq!(harness.plain_text_at(&body, &at(0)).expect("next message"), TextAnswer::Pass);
}

#[test]
fn the_end_of_a_key_that_was_missed_opens_none() {
    let mut harness = plugin();
    let at = |unit| TextPlace::new(unit, &[]);
    let end = harness.plain_text_at("-----END PRIVATE KEY-----\n", &at(3)).expect("the end");
    assert_eq!(end, TextAnswer::replace("[redacted private key]\n"));
    assert_eq!(harness.plain_text_at("word\n", &at(4)).expect("words"), TextAnswer::Pass);
}

#[test]
fn counts_are_kept_by_kind_and_no_secret_is_logged() {
    let mut harness = plugin();
    let key = format!("ghp_{}", letters(36));
    harness.answer(format!("{key} {key}\npassword=\"hunter2x\"\n"));
    let counts: BTreeMap<String, u64> = harness.state(COUNTS).expect("counted");
    assert_eq!(counts, BTreeMap::from([("GitHub token".into(), 2), ("password".into(), 1)]));
    let log = harness.log();
    assert_eq!(log.len(), 2, "once for each line: what the harness tries at other chunkings is not kept");
    assert!(log.iter().all(|line| !line.message.contains("ghp_") && !line.message.contains("hunter2x")), "{log:?}");
}

#[test]
fn settings_decide_what_is_shown_and_what_else_is_secret() {
    let mut harness = plugin()
        .with_setting("replacement", "***")
        .with_setting("extra_patterns", ["PROJ-[0-9]+", "J-1[0-9]"])
        .with_setting("ignore", ["AKIATEST"]);
    assert_eq!(harness.answer("see PROJ-123 now\n").text, "see *** now\n");
    assert_eq!(harness.answer("AKIATEST12345678ABCD stays\n").text, "AKIATEST12345678ABCD stays\n");
    let error = plugin().with_setting("extra_patterns", ["("]).plain_text("x").unwrap_err();
    assert!(error.message().contains("`(` is not a valid pattern"), "{error}");
    let error = plugin().with_setting("extra_patterns", ["a*"]).plain_text("x").unwrap_err();
    assert!(error.message().contains("matches nothing at all"), "{error}");
}

/// Every case of the corpus, line by line; half of them with an instance that is replaced before each line.
#[test]
fn the_corpus_is_redacted_line_by_line() {
    let mut counts = corpus::Counts::default();
    for (number, case) in corpus::cases(&folder()).iter().enumerate() {
        let mut harness = plugin();
        let mut shown = String::new();
        for (unit, line) in (0..).zip(case.text.split_inclusive('\n')) {
            if number % 2 == 0 {
                harness.restart();
            }
            match harness.plain_text_at(line, &TextPlace::new(unit, &[])).expect("a line") {
                TextAnswer::Replace(text) => shown.push_str(&text),
                _ => shown.push_str(line),
            }
        }
        counts.add(case, &unmarked(&shown));
    }
    let figures = counts.check();
    assert!(include_str!("../README.md").contains(&figures), "README.md does not say `{figures}`");
}

/// The text with `§` for each marker.
fn unmarked(shown: &str) -> String {
    let mut parts = shown.split("[redacted ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "§" + part.split_once(']').map_or("", |(_, rest)| rest))
}

/// A sample of the corpus at every chunking, as an answer and as reasoning, and again after an attempt that was stopped anywhere.
#[test]
fn the_corpus_is_redacted_at_every_chunking() {
    for case in corpus::cases(&folder()).iter().step_by(97) {
        let text = &case.text;
        let shown = plugin().answer(text.as_str()).text;
        let thought = plugin().answer(Answer::new().thinking(text.as_str())).thinking;
        for shown in [shown, thought] {
            assert!(!case.secrets.iter().any(|secret| shown.contains(secret.as_str())), "{}: {shown:?}", case.name);
        }
    }
}

#[test]
fn texts_without_a_secret_are_left_alone() {
    for (name, text) in corpus::harmless(&folder()) {
        let mut harness = plugin();
        for (unit, line) in (0..).zip(text.split_inclusive('\n')) {
            let answer = harness.plain_text_at(line, &TextPlace::new(unit, &[])).expect("a line");
            assert_eq!(answer, TextAnswer::Pass, "{name}: {line:?}");
        }
    }
}

/// A unit also ends where a tag opens or closes: a key that is cut there is hidden on both sides, and so is a value that is in the tag of its name.
#[test]
fn a_secret_that_a_tag_cuts_is_redacted_on_both_sides() {
    let key = format!("ghp_{}", letters(36));
    let shown = |pieces: &[&str]| {
        let mut harness = plugin();
        let answers = (0..).zip(pieces).map(|(unit, piece)| {
            let inside: &[&str] = if unit % 2 == 1 { &["b"] } else { &[] };
            match harness.plain_text_at(piece, &TextPlace::new(unit, inside)).expect("a piece") {
                TextAnswer::Replace(text) => text,
                _ => (*piece).to_owned(),
            }
        });
        answers.collect::<Vec<_>>().join("|")
    };
    assert_eq!(
        shown(&[&format!("key {}", &key[..20]), &key[20..], " and more\n"]),
        "key [redacted GitHub token]|| and more\n"
    );
    assert_eq!(shown(&["**Password:** ", "hunter2", " it is\n"]), "**Password:** |[redacted password]| it is\n");
}

#[test]
fn a_call_with_a_secret_does_not_run_and_is_shown_without_it() {
    let key = format!("ghp_{}", letters(36));
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", letters(64));
    for (arguments, shown) in [
        (
            json!({"command": format!("curl -H 'X: {key}' x")}),
            json!({"command": "curl -H 'X: [redacted GitHub token]' x"}),
        ),
        (
            json!({"command": "curl -u bob:hunter2 https://example.org"}),
            json!({"command": "curl -u bob:[redacted password] https://example.org"}),
        ),
        // What the name of a member tells, and what is in a member of a member.
        (json!({"path": "a", "password": "hunter2"}), json!({"path": "a", "password": "[redacted password]"})),
        (
            json!({"edits": [{"new": "API_KEY=a1B2c3D4e5F6g7\nx\n"}]}),
            json!({"edits": [{"new": "API_KEY=[redacted key]\nx\n"}]}),
        ),
        (json!({"content": format!("Here:\n{pem}end\n")}), json!({"content": "Here:\n[redacted private key]\nend\n"})),
        (json!({ key.as_str(): 1 }), json!({"[redacted GitHub token]": 1})),
        (json!({"pin": 1, "password": 12345678}), json!({"pin": 1, "password": "[redacted password]"})),
        (json!({"args": ["--password", "hunter2x"]}), json!({"args": ["--password", "[redacted password]"]})),
    ] {
        let answer = plugin().tool_call(&AskedCall::new("shell", &arguments)).expect("searched");
        let CallAnswer::Deny { reason, shown: Some(own) } = answer else { panic!("{arguments}: {answer:?}") };
        assert_eq!(serde_json::from_str::<Value>(&own).expect("JSON"), shown, "{arguments}");
        assert!(reason.starts_with("the arguments contain a secret (") && !reason.contains("hunter2"), "{reason}");
    }
    for arguments in [
        json!({"command": "cargo test --workspace"}),
        json!({"path": "src/login.rs", "old_text": "password: String", "new_text": "password: Password"}),
        json!({"pattern": "api_key|token", "path": "."}),
        json!({"command": "curl -u \"$USER:$PASSWORD\" https://example.org"}),
    ] {
        let answer = plugin().tool_call(&AskedCall::new("shell", &arguments)).expect("searched");
        assert_eq!(answer, CallAnswer::Pass, "{arguments}");
    }
}

#[test]
fn a_marker_that_is_no_json_takes_the_place_of_the_value() {
    let mut harness = plugin().with_setting("replacement", "\"{kind}\"");
    for (arguments, shown) in [
        (json!({"a": {"password": "hunter2"}}), json!({"a": {"password": "\"password\""}})),
        (json!({"a": ["--password", "hunter2x"]}), json!({"a": ["\"password\""]})),
    ] {
        let answer = harness.tool_call(&AskedCall::new("shell", &arguments)).expect("searched");
        let CallAnswer::Deny { shown: Some(own), .. } = answer else { panic!("{answer:?}") };
        assert_eq!(own, shown.to_string());
    }
}

#[test]
fn results_and_what_a_person_is_shown_have_no_secret() {
    let mut harness = plugin();
    let mut result = GivenResult::new("read_file", "1\tuser = bob\n2\tpassword = \"hunter2\"\n");
    result.diff = Some("@@ -1 +1 @@\n-password = \"hunter2\"\n+password = \"Tr0ub4dor\"\n".into());
    for stage in [ResultStage::Preview, ResultStage::Done] {
        let is_done = stage == ResultStage::Done;
        result.stage = stage;
        let new = harness.tool_result(&result).expect("searched").replace.expect("redacted");
        assert_eq!(new.content, [Content::Text("1\tuser = bob\n2\tpassword = \"[redacted password]\"\n".into())]);
        let diff = "@@ -1 +1 @@\n-password = \"[redacted password]\"\n+password = \"[redacted password]\"\n";
        assert_eq!(new.diff.as_deref(), Some(diff));
        // What a person is asked about is not counted: it is in the result.
        let counts: Option<BTreeMap<String, u64>> = harness.state(COUNTS);
        assert_eq!(counts.and_then(|counts| counts.get("password").copied()), is_done.then_some(3));
    }
    let clean = GivenResult::new("shell", "test result: ok. 12 passed; token: none\n");
    assert_eq!(plugin().tool_result(&clean).expect("searched"), ResultAnswer::pass());
}

#[test]
fn the_corpus_is_redacted_in_results() {
    let mut counts = corpus::Counts::default();
    for case in corpus::cases(&folder()) {
        let answer = plugin().tool_result(&GivenResult::new("shell", case.text.as_str())).expect("searched");
        let new = answer.replace.map_or_else(Vec::new, |new| new.content);
        let [Content::Text(shown)] = &new[..] else { panic!("{}: {new:?}", case.name) };
        counts.add(&case, &unmarked(shown));
    }
    counts.check();
}
