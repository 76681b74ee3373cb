//! `run --output stream-json --shown`: the events for a front end, without what a rule stopped.

use serde_json::Value;

use crate::support::{AN_AI, Place, Say, code, err, out, recording};

fn place() -> Place {
    let place = Place::with(&[("no-ai", AN_AI)]);
    place.write("answers.jsonl", &recording(&[&[Say::Text("Well, as an AI language model I")], &[Say::Text("8080.")]]));
    let settings = "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nbuiltin_rules = false\n\
                    retry_delay_ms = 0\n";
    place.write("tidegate.toml", settings);
    place
}

#[test]
fn a_front_end_gets_no_text_that_was_stopped() {
    let lines = |shown: &[&str]| {
        let output = place().run(&[&["run", "Which port?", "--output", "stream-json"], shown].concat());
        assert_eq!(code(&output), 0, "{}", err(&output));
        out(&output)
    };
    let (all, shown) = (lines(&[]), lines(&["--shown"]));
    assert!(all.contains("as an AI") && !shown.contains("an AI"), "{shown}");
    let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| shown.iter().filter(|line| line["type"] == name).collect::<Vec<_>>();
    let text: String = of("cognition_out_delta").iter().map(|line| line["payload"]["text"].as_str().unwrap()).collect();
    assert_eq!(text, "Well, 8080.");
    assert_eq!(of("rule_fired")[0]["payload"]["rule"], "no-ai");
    let answers = of("cognition_out");
    assert_eq!((&answers[0]["payload"]["shown_bytes"], &answers[0]["payload"]["kept_bytes"]), (&6.into(), &0.into()));
    assert_eq!(answers[1]["payload"]["is_partial"], false);
    assert_eq!(of("turn_finish")[0]["payload"]["status"], "completed");
}

#[test]
fn the_other_formats_have_no_such_selection() {
    for format in [&["--output", "json"], &["--output", "text"]] {
        let output = place().run(&[&["run", "Which port?", "--shown"], &format[..]].concat());
        assert_eq!(code(&output), 2);
        assert!(err(&output).contains("--shown needs `--output stream-json`"), "{}", err(&output));
    }
    let output = place().run(&["run", "Which port?", "--shown"]);
    assert!(code(&output) == 2 && err(&output).contains("--output"), "{}", err(&output));
}
