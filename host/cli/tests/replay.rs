//! `tidegate rules replay`: old sessions under the rules they had, and under others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use crate::support::{AN_AI, Place, Say, Server, UNWRAP, code, err, out, recording, repository};

/// What `replay` says of each rule: how many of now and then go together how.
fn agreement(report: &Value, rule: &str) -> Value {
    let rules = report["rules"].as_array().unwrap();
    rules.iter().find(|tally| tally["rule"] == rule).map_or(Value::Null, |tally| tally["agreement"].clone())
}

/// The records of answers as they are without a list of blocks.
fn without_blocks(transcript: &str) -> String {
    let records = transcript.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["payload"].as_object_mut().unwrap().remove("blocks");
        format!("{record}\n")
    });
    records.collect()
}

#[test]
fn a_transcript_agrees_with_the_rules_it_was_made_with() {
    let place = Place::with(&[("no-unwrap", UNWRAP), ("no-ai", AN_AI)]);
    let demo = repository().join("tests/demo");
    // The demo's answers, without what the requests must hold: its plugins are not loaded.
    let answers = std::fs::read_to_string(demo.join("recorded.jsonl")).unwrap();
    let answers = answers.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("expect");
        format!("{line}\n")
    });
    place.write("demo.jsonl", &answers.collect::<String>());
    place.write("src/main.rs", &std::fs::read_to_string(demo.join("workspace/src/main.rs")).unwrap());
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"demo.jsonl\"\n[tools.permission]\nedit_file = \"allow\"\n",
    );
    let run = place.run(&["run", "Take the port from PORT.", "What is left?", "--output", "stream-json"]);
    std::fs::write(place.path("t.jsonl"), &run.stdout).unwrap();

    let output = place.run(&["rules", "replay", "t.jsonl", "--fail-on", "disagreement"]);
    let text = out(&output);
    assert!(code(&output) == 0 && text.contains("now agrees with then"), "{text}{}", err(&output));
    assert!(text.contains("1 file, 2 turns, 6 attempts: 2 matches, 2 interrupts, ~"), "{text}");
    assert!(text.contains("turn 1 step 2 attempt 2  interrupt, same, ~"), "{text}");
    assert!(text.contains("tool:edit_file `new_text` line 1 byte 41: \".unwrap()\""), "{text}");
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-unwrap"), json!({"same": 1}));
    assert_eq!(agreement(&report, "no-ai"), json!({"same": 1}));

    // A transcript that does not list blocks: what a stopped call held is not known, and no difference.
    let text = std::fs::read_to_string(place.path("t.jsonl")).unwrap();
    place.write("old.jsonl", &without_blocks(&text));
    let output = place.run(&["rules", "replay", "old.jsonl", "--json", "--fail-on", "disagreement"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let both = (agreement(&report, "no-ai"), agreement(&report, "no-unwrap"));
    assert_eq!((code(&output), both), (0, (json!({"same": 1}), json!({"not_recorded": 1}))), "{report:#}");

    // A new rule over the old session, and what happens without the old ones.
    place.write("new/no-token.md", "+++\ncondition = 'ghp_\\w{36}'\nscope = \"text\"\n+++\nNo tokens.\n");
    let new = ["rules", "replay", "t.jsonl", "--rule", "new/no-token.md", "--json"];
    let report = place.json(&new);
    assert_eq!((agreement(&report, "no-token"), agreement(&report, "no-ai")), (json!({"only_now": 1}), Value::Null));
    let fire = &report["fires"][0];
    assert_eq!((&fire["turn"], &fire["step"], &fire["action"]), (&json!(1), &json!(3), &json!("interrupt")));
    // Of 227 bytes and 96 tokens.
    assert_eq!(
        (&fire["tokens_estimated"], fire["tokens_discarded"].as_u64().is_some_and(|tokens| tokens > 10)),
        (&json!(true), true)
    );
    for (what, expected) in [("never", 0), ("fire", 1), ("interrupt", 1), ("disagreement", 1)] {
        assert_eq!(code(&place.run(&[&new[..5], &["--fail-on", what]].concat())), expected, "{what}");
    }
    std::fs::remove_file(place.path(".tidegate/rules/no-ai.md")).unwrap();
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-ai"), json!({"only_then": 1}));
    assert_eq!(report["then"][0]["agreement"], "only_then");

    // The recording itself was written by hand: it does not record what fired.
    let report = place.json(&["rules", "replay", "demo.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-unwrap"), json!({"unknown": 1}));
}

#[test]
fn every_kind_of_action_agrees_with_its_own_transcript() {
    let rule = |keys: &str| format!("+++\n{keys}\n+++\nB.\n");
    let rules = [
        ("prose", rule("condition = 'PROSE'\nscope = \"text\"\ninterrupt = \"never\"")),
        ("think", rule("condition = 'THINK'\nscope = \"thinking\"")),
        ("tool", rule("condition = 'TOOL'\nscope = \"tool\"\naction = \"remind\"")),
        ("block", rule("condition = 'BLOCK'\nscope = \"tool\"\naction = \"block\"")),
        ("end", rule("condition = '(?m)END$'\nscope = \"text\"")),
        ("gap", rule("condition = 'GAP'\nscope = \"text\"\nrepeat = \"after-gap\"\ngap = 2")),
        ("always", rule("condition = 'AGAIN'\nscope = \"text\"\nrepeat = \"always\"")),
        ("stop", rule("condition = 'STOP'\nscope = \"text\"\naction = \"stop\"")),
    ];
    let place = Place::with(&rules.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    let answers: &[&[Say<'_>]] = &[
        // The first turn: reminders, a block, siblings, and a match at the end of a block.
        &[
            Say::Text("some PROSE here"),
            Say::Write("a", "a TOOL"),
            Say::Write("b", "b TOOL"),
            Say::Write("c", "a BLOCK"),
        ],
        &[Say::Thinking("I THINK so"), Say::Text("never seen")],
        &[Say::Text("one"), Say::Thinking("and"), Say::Text("to the END")],
        &[Say::Text("PROSE again, GAP")],
        &[Say::Text("all is well")],
        // The second: the gap has not passed; three interrupts spend the budget.
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        // The third: the gap has passed, and then it ends.
        &[Say::Text("GAP once more")],
        &[Say::Text("and STOP it")],
    ];
    for context in ["discard", "keep", "rewind"] {
        let settings = format!("context_mode = \"{context}\"");
        let transcript = place.transcript(&settings, answers, &["one", "two", "three"]);
        let report = place.json(&["rules", "replay", transcript, "--json"]);
        for tally in report["rules"].as_array().unwrap() {
            let kinds: Vec<&String> = tally["agreement"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["same"], "{context}: {tally}, {}", report["then"]);
        }
        let fires: usize = report["fires"].as_array().unwrap().len();
        assert!(fires >= 11 && agreement(&report, "always") == json!({"same": 4}), "{context}: {report:#}");
        for rule in ["prose", "think", "tool", "block", "end", "gap", "stop"] {
            assert!(agreement(&report, rule)["same"].as_u64() >= Some(1), "{context}, {rule}: {report:#}");
        }
        let passed = report["rules"].as_array().unwrap().iter().find(|tally| tally["rule"] == "always").unwrap();
        assert_eq!((&passed["interrupts"], &passed["passes"]), (&json!(3), &json!(1)), "{context}");
    }
}

#[test]
fn a_reminder_that_was_never_delivered_is_none() {
    let place =
        Place::with(&[("prose", "+++\ncondition = 'WORD'\nscope = \"text\"\ninterrupt = \"never\"\n+++\nB.\n")]);
    let (mut seq, mut lines) = (0, String::new());
    let mut record = |kind: &str, at: (u32, u32, u32), payload: Value| {
        let (turn, step, attempt) = at;
        let record = json!({"seq": seq, "ts": 0, "thread_id": "t", "turn": turn, "step": step, "attempt": attempt, "type": kind, "payload": payload});
        lines.push_str(&format!("{record}\n"));
        seq += 1;
    };
    record("turn_start", (1, 0, 0), json!({}));
    // An answer of an extension's own, which no rule watches; it has no attempt.
    record("cognition_out", (1, 1, 0), json!({"text": "WORD", "is_partial": false}));
    for (attempt, partial) in [(1, true), (2, true), (2, false)] {
        let place = (1, 2, attempt);
        let evidence = json!({"pattern": "WORD", "text": "WORD", "start": 0, "end": 4, "line": 1});
        record(
            "rule_fired",
            place,
            json!({"rule": "prose", "stream": "text", "action": "remind", "first": true, "again": false, "evidence": evidence}),
        );
        let blocks = json!([{"stream": "text", "bytes": 4, "complete": !partial}]);
        record("cognition_out", place, json!({"text": "WORD", "is_partial": partial, "blocks": blocks}));
    }
    record("turn_finish", (1, 2, 2), json!({"status": "completed"}));
    place.write("t.jsonl", &lines);
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!((agreement(&report, "prose"), report["attempts"].clone()), (json!({"same": 3}), json!(3)), "{report:#}");
}

#[test]
fn repeat_limits_count_unless_every_match_is_asked_for() {
    let place = Place::new();
    let answers: &[&[Say<'_>]] = &[&[Say::Text("a WORD")], &[Say::Text("a WORD")], &[Say::Text("a WORD, a WORD")]];
    let transcript = place.transcript("", answers, &["one", "two", "three"]);
    place.write("once.md", "+++\ncondition = 'WORD'\nscope = \"text\"\n+++\nB.\n");
    place.write("gap.md", "+++\ncondition = 'WORD'\nscope = \"text\"\nrepeat = \"after-gap\"\ngap = 2\n+++\nB.\n");
    let fires = |more: &[&str]| {
        let report = place.json(&[&["rules", "replay", transcript, "--json"], more].concat());
        report["fires"].as_array().unwrap().iter().map(|fire| fire["turn"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(fires(&["--rule", "once.md"]), [1]);
    assert_eq!(fires(&["--rule", "gap.md"]), [1, 3]);
    assert_eq!(fires(&["--rule", "once.md", "--every"]), [1, 2, 3]);
    assert_eq!(fires(&["--rule", "once.md", "--every", "--rule", "gap.md"]), [1, 1, 2, 2, 3, 3]);
    place.write("book.md", "+++\ndescription = \"d\"\n+++\nB.\n");
    let book = err(&place.run(&["rules", "replay", transcript, "--rule", "book.md"]));
    assert!(book.contains("rule `book` has no condition") && book.contains("no rule is active"), "{book}");
    let both = place.run(&["rules", "replay", transcript, "--every", "--fail-on", "disagreement"]);
    assert!(code(&both) == 2 && err(&both).contains("--every compares nothing"));
}

/// Where a recording does not say what fired, it neither agrees nor differs.
#[test]
fn a_recording_without_rules_is_not_compared() {
    let place = Place::with(&[("no-ai", AN_AI)]);
    let whole = recording(&[&[Say::Text("Well, as an AI I cannot know.")], &[Say::Text("It is 42.")]]);
    // Our side dropped the answer in the middle: for a rule, or because of a cancellation.
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let middle = lines.iter().position(|line| line.contains("cannot")).unwrap();
    let end = lines.iter().position(|line| line.contains("\"end\"")).unwrap();
    let cut = [&lines[..=middle], &["{\"end\":\"cut\"}\n"], &lines[end + 1..]].concat().concat();
    for (name, text) in [("cut.jsonl", &cut), ("whole.jsonl", &whole)] {
        place.write(name, text);
        let output = place.run(&["rules", "replay", name, "--json", "--fail-on", "disagreement"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = (code(&output), agreement(&report, "no-ai"), &report["attempts_unknown"], &report["then"]);
        assert_eq!(found, (0, json!({"unknown": 1}), &json!(2), &json!([])), "{report:#}");
        let output = place.run(&["rules", "replay", name]);
        let text = out(&output);
        assert!(text.contains("nothing is known of then: now is not compared") && !text.contains("agrees"), "{text}");
        let note = err(&output);
        assert!(note.contains(&format!("{name}: which rules fired is not recorded for 2 of 2 answers")), "{note}");
    }
}

/// A recorded session says what fired and what was continued, so that the same rules agree with it, and others differ.
#[test]
fn a_recording_agrees_with_the_rules_it_was_made_with() {
    let rule = |keys: &str| format!("+++\n{keys}\n+++\nB.\n");
    let rules = [
        ("prose", rule("condition = 'PROSE'\nscope = \"text\"\ninterrupt = \"never\"")),
        ("tool", rule("condition = 'TOOL'\nscope = \"tool\"\naction = \"remind\"")),
        ("block", rule("condition = 'BLOCK'\nscope = \"tool\"\naction = \"block\"")),
        ("end", rule("condition = 'END$'\nscope = \"text\"")),
        ("seam", rule("condition = 'one[\\s\\S]*WORD'\nscope = \"text\"")),
        ("stop", rule("condition = 'STOP'\nscope = \"text\"\naction = \"stop\"")),
    ];
    let answers: &[&[Say<'_>]] = &[
        &[Say::Text("some PROSE here"), Say::Write("a", "a TOOL"), Say::Write("c", "a BLOCK")],
        // The match is known with the last byte of the answer: nothing was cut.
        &[Say::Text("one\nto the END")],
        // Continues `one` where the model can: the match begins there.
        &[Say::Text(" more WORD, and so on")],
        &[Say::Text("all is well")],
        &[Say::Text("and STOP it")],
        &[Say::Text("once again, PROSE")],
    ];
    for (context, prefill) in [("discard", false), ("keep", false), ("rewind", false), ("rewind", true)] {
        let place = Place::with(&rules.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
        let server = Server::start(&recording(answers));
        let file = format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{}\"\nprefill = {prefill}\n\
             [tools.permission]\nwrite_file = \"allow\"\n[rules]\nretry_delay_ms = 0\ncontext_mode = \"{context}\"\n",
            server.url
        );
        place.write("tidegate.toml", &file);
        let run = place.run(&["run", "one", "two", "three", "--record", "r.jsonl", "--output", "stream-json"]);
        std::fs::write(place.path("t.jsonl"), &run.stdout).unwrap();
        let recorded = std::fs::read_to_string(place.path("r.jsonl")).unwrap();
        assert_eq!(recorded.contains("\"prefix\":\"one\""), prefill, "{recorded}{}", err(&run));
        let report = place.json(&["rules", "replay", "r.jsonl", "--json"]);
        for tally in report["rules"].as_array().unwrap() {
            let kinds: Vec<&String> = tally["agreement"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["same"], "{context}: {tally}, {}", report["then"]);
        }
        assert_eq!(report["attempts_unknown"], 0);
        for rule in ["prose", "tool", "block", "end", "stop"] {
            assert!(agreement(&report, rule)["same"].as_u64() >= Some(1), "{context}, {rule}: {report:#}");
        }
        assert_eq!(agreement(&report, "seam") == json!({"same": 1}), prefill, "{report:#}");
        // The transcript of the same run has the same result.
        let transcript = place.json(&["rules", "replay", "t.jsonl", "--json"]);
        for rule in ["prose", "tool", "block", "end", "seam", "stop"] {
            assert_eq!(agreement(&report, rule), agreement(&transcript, rule), "{context}, {rule}");
        }
        assert_eq!((&report["turns"], &report["attempts"]), (&transcript["turns"], &transcript["attempts"]));
        std::fs::remove_file(place.path(".tidegate/rules/end.md")).unwrap();
        place.write(".tidegate/rules/new.md", &rule("condition = 'well'\nscope = \"text\""));
        let output = place.run(&["rules", "replay", "r.jsonl", "--json", "--fail-on", "disagreement"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let both = (agreement(&report, "end"), agreement(&report, "new"));
        assert_eq!((code(&output), both), (1, (json!({"only_then": 1}), json!({"only_now": 1}))), "{report:#}");
    }
}

/// Half a character is in one event and half in the next: rules see the whole, and nothing of it is shown before.
#[test]
fn rules_see_characters_that_a_server_cuts() {
    let place =
        Place::with(&[("wave", "+++\ncondition = '\u{1F30A} high'\nscope = \"text\"\n+++\nSay it in words.\n")]);
    let answers = recording(&[&[Say::Text("Tide: A B high water")], &[Say::Text("High water.")]]);
    let cut = answers.replace(r#"\"A \""#, r#"\"\\ud83c\""#).replace(r#"\"B \""#, r#"\"\\udf0a \""#);
    assert!(cut.contains(r"\\ud83c") && cut.contains(r"\\udf0a"));
    place.write("answers.jsonl", &cut);
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nretry_delay_ms = 0\n",
    );
    let run = place.run(&["run", "one", "--output", "stream-json"]);
    let records = out(&run);
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| records.iter().filter(|record| record["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("rule_fired").len(), 1, "{records:#?}");
    assert_eq!(of("rule_fired")[0]["payload"]["evidence"]["text"], "\u{1F30A} high");
    let shown: String =
        of("cognition_out_delta").iter().filter_map(|record| record["payload"]["text"].as_str()).collect();
    assert_eq!((code(&run), shown.as_str()), (0, "Tide: High water."));
}

#[test]
fn nothing_in_a_file_is_passed_over_in_silence() {
    let place = Place::with(&[("no-ai", AN_AI)]);
    let transcript = place.transcript("", &[&[Say::Text("well, as an AI")], &[Say::Text("fine")]], &["one"]);
    let text = std::fs::read_to_string(place.path(transcript)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let replay = |name: &str, text: &str| {
        place.write(name, text);
        place.run(&["rules", "replay", name])
    };
    for (name, text, said) in [
        ("bad.jsonl", format!("{}\nno json\n{}\n", lines[0], lines[1]), "bad.jsonl, line 2: is not valid JSON"),
        (
            "part.jsonl",
            format!("{}\n{{\"type\": \"turn_start\"}}\n", lines[0]),
            "part.jsonl, line 2: is not a record: missing field `seq`",
        ),
        ("other.jsonl", "{\"a\": 1}\n".to_owned(), "other.jsonl, line 1: is neither the first line of a recording"),
        ("empty.jsonl", "\n".to_owned(), "empty.jsonl: is empty"),
        ("rec.jsonl", recording(&[&[Say::Text("x")]]).replace("\"request\"", "\"reqest\""), "rec.jsonl, line 2:"),
    ] {
        let output = replay(name, &text);
        assert!(code(&output) == 2 && err(&output).contains(said), "{name}: {}", err(&output));
    }
    let torn = replay("torn.jsonl", &text[..text.len() - 10]);
    assert!(
        code(&torn) == 0 && err(&torn).contains(&format!("torn.jsonl, line {}: is truncated", lines.len())),
        "{}",
        err(&torn)
    );
    let gap = replay("gap.jsonl", &[&lines[..2], &lines[3..]].concat().join("\n"));
    assert!(err(&gap).contains("the records in between are missing"), "{}", err(&gap));
    let odd = replay(
        "odd.jsonl",
        &text
            .replace("\"type\":\"notice\"", "\"type\":\"odd\"")
            .replace("\"type\":\"thread_started\"", "\"type\":\"odd\""),
    );
    assert!(err(&odd).contains("1 records of the unknown type `odd`"), "{}", err(&odd));

    // Two threads in one file have nothing in common.
    let thread = serde_json::from_str::<Value>(lines[0]).unwrap()["thread_id"].as_str().unwrap().to_owned();
    let mixed: String = lines.iter().map(|line| format!("{line}\n{}\n", line.replace(&thread, "other"))).collect();
    place.write("mixed.jsonl", &mixed);
    let report = place.json(&["rules", "replay", "mixed.jsonl", "--json"]);
    assert_eq!((agreement(&report, "no-ai"), report["turns"].clone()), (json!({"same": 2}), json!(2)), "{report:#}");
}
