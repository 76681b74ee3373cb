//! The page: well-formed, harmless whatever a session contains, usable without eyes, and of a size that follows the session's.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use record::Record;
use serde_json::{Value, json};
use tidegate_report::{Report, explain, html, markdown};

use crate::support::page::{Element, Page, read};
use crate::support::{names, records, report};

/// Strings that would become markup, leave an attribute, act, or hide something, if they were not escaped.
const HOSTILE: [&str; 6] = [
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\"'><a href=javascript:alert(1) style=x onclick=y>` ```` ~~~ -->",
    "\u{202e}gnp.exe\u{2066}\u{200b}\u{0}\u{1b}[2J\u{7}\r\n\u{85}\u{2028}",
    "]]></style></title></textarea></pre></svg><base href=//x><meta http-equiv=refresh content=0>",
    "&lt;b&gt; &amp;amp; &#60;script&#62; | a | b |\n\n# heading\n```\n<b>",
    "<!--<![CDATA[<svg onload=alert(1)><math><mtext></table>",
];

fn page(report: &Report) -> Page {
    read(&html(report))
}

#[test]
fn pages_are_well_formed() {
    for name in names() {
        let page = page(&report(&name));
        assert_eq!(page.errors, Vec::<String>::new(), "{name}");
        assert!(page.elements.len() > 30, "{name} has {} elements", page.elements.len());
    }
}

/// Replaces each string in a payload; ids that pair records stay pairs.
fn spoil(value: &mut Value, with: &str) {
    match value {
        Value::String(text) => *text = format!("{with}{text}{with}"),
        Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, with)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                // Values that are one of a closed list, without which the line is no record.
                if key != "author" && !(key == "kind" && value.is_string()) {
                    spoil(value, with);
                } else if let Some(id) = value.get_mut("extension") {
                    spoil(id, with);
                } else if let Some(id) = value.get_mut("addition").and_then(|one| one.get_mut("extension_id")) {
                    spoil(id, with);
                }
            }
        }
        _ => {}
    }
}

fn spoilt(name: &str, with: &str) -> Report {
    let record = |record: Record| {
        let mut line = serde_json::to_value(&record).unwrap();
        spoil(&mut line["payload"], with);
        spoil(&mut line["thread_id"], with);
        if !matches!(record.body, record::Body::Unknown { .. }) {
            return Record::read(line.to_string().as_bytes()).unwrap();
        }
        spoil(&mut line["type"], with);
        Record::read(line.to_string().as_bytes()).unwrap()
    };
    Report::of(records(name).into_iter().map(record))
}

/// The elements and attributes are ours alone: their names and the values that do something are those of a harmless session.
#[test]
fn nothing_of_a_session_becomes_markup() {
    let kinds = |page: &Page| -> BTreeSet<String> {
        let attributes =
            |one: &Element| one.attributes.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>().join(" ");
        page.elements.iter().map(|one| format!("{} {}", one.name, attributes(one))).collect()
    };
    let harmless: BTreeSet<String> = names().iter().flat_map(|name| kinds(&page(&report(name)))).collect();
    for with in HOSTILE {
        for name in names() {
            let page = page(&spoilt(&name, with));
            assert_eq!(page.errors, Vec::<String>::new(), "{name} with {with:?}");
            let own: BTreeSet<String> = kinds(&page).into_iter().collect();
            let new: Vec<&String> = own.difference(&harmless).collect();
            assert!(new.is_empty(), "{name} with {with:?}: {new:?}");
            for element in &page.elements {
                for (key, value) in &element.attributes {
                    let ours = match key.as_str() {
                        "href" => value.starts_with('#'),
                        "src" | "style" | "action" => false,
                        key => !key.starts_with("on"),
                    };
                    assert!(ours, "{name} with {with:?}: {element:?}");
                }
            }
            let hidden = page.text.chars().find(|c| {
                matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2066}'..='\u{2069}')
                    || (c.is_control() && !matches!(c, '\n' | '\t'))
            });
            assert_eq!(hidden, None, "{name} with {with:?}");
        }
    }
}

/// What is escaped is read back as it was: nothing is lost on the way.
#[test]
fn texts_can_be_read_on_the_page() {
    let with = HOSTILE[0];
    let page = page(&spoilt("every-type", with));
    for text in ["One line.\n\nIt, FORBIDDEN words", "Never say it.", "no such folder", "They removed a folder."] {
        assert!(page.text.contains(&format!("{with}{text}{with}")), "{text:?}");
    }
    assert!(
        self::page(&spoilt("every-type", HOSTILE[2]))
            .text
            .contains("\\u{202e}gnp.exe\\u{2066}\\u{200b}\\u{0}\\u{1b}[2J")
    );
}

#[test]
fn the_other_forms_show_nothing_hidden() {
    for with in HOSTILE {
        let report = spoilt("every-type", with);
        let texts = report.turns.iter().filter_map(|turn| explain(&report, Some(turn.number))).map(|one| one.text());
        for text in texts.chain([markdown(&report)]) {
            let hidden = text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}');
            assert_eq!(hidden, None, "with {with:?}");
        }
    }
}

/// A browser fetches nothing and runs nothing.
#[test]
fn the_page_forbids_the_network_and_scripts() {
    let page = page(&report("every-type"));
    let policy = page.elements.iter().find(|one| one.attribute("http-equiv") == Some("Content-Security-Policy"));
    let policy = policy.and_then(|one| one.attribute("content")).unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'unsafe-inline';") && !policy.contains("script"));
    assert!(
        page.elements
            .iter()
            .all(|one| !["script", "link", "img", "iframe", "object", "base"].contains(&one.name.as_str()))
    );
}

/// Landmarks, headings in order without gaps, unique ids that links and labels refer to, tables with headers.
#[test]
fn the_page_can_be_used_without_eyes() {
    for name in names() {
        let page = page(&report(&name));
        let count = |name: &str| page.elements.iter().filter(|one| one.name == name).count();
        assert_eq!((count("h1"), count("main"), count("header"), count("nav")), (1, 1, 1, 1), "{name}");
        let html = page.elements.iter().find(|one| one.name == "html").unwrap();
        assert_eq!(html.attribute("lang"), Some("en"));
        let heading = |one: &Element| one.name.strip_prefix('h').and_then(|level| level.parse::<u32>().ok());
        let levels: Vec<u32> = page.elements.iter().filter_map(heading).collect();
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
        let ids: Vec<&str> = page.elements.iter().filter_map(|one| one.attribute("id")).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{name}: {ids:?}");
        for one in &page.elements {
            let target = one.attribute("href").map(|href| &href[1..]).or_else(|| one.attribute("aria-labelledby"));
            assert!(target.is_none_or(|id| ids.contains(&id)), "{name}: {one:?}");
        }
        assert_eq!(
            count("svg"),
            page.elements.iter().filter(|one| one.name == "svg" && one.attribute("aria-label").is_some()).count()
        );
        assert_eq!(count("details"), count("summary"), "{name}");
        assert!(page.elements.iter().filter(|one| one.name == "th").all(|one| one.attribute("scope").is_some()));
    }
}

/// A session of so many turns, with one input and one answer each.
fn long(turns: u32) -> Report {
    let line = move |(turn, kind, payload): (u32, &str, Value)| {
        let line = json!({"seq": 0, "ts": 1000 * u64::from(turn), "thread_id": "long", "turn": turn, "step": 1, "attempt": 1, "type": kind, "payload": payload});
        Record::read(line.to_string().as_bytes()).unwrap()
    };
    let turn = |turn: u32| {
        let input = json!({"text": format!("Question {turn}"), "role": "user", "hidden": false});
        let answer = json!({"text": format!("Answer {turn} ").repeat(20), "is_partial": false, "truncated": false, "retained": "answer"});
        let finish = json!({"tokens": {"input_tokens": 100, "output_tokens": 50}, "finish_reason": "end_turn"});
        [(turn, "input_received", input), (turn, "cognition_out", answer), (turn, "step_finish", finish)]
    };
    Report::of((1..=turns).flat_map(turn).map(line))
}

/// The page of 10,000 messages is proportional to them: its plots and its contents do not grow with it.
#[test]
fn the_size_of_a_page_follows_the_size_of_the_session() {
    let (small, large) = (html(&long(500)), html(&long(5000)));
    assert!(large.len() < small.len() * 11, "{} and {} bytes", small.len(), large.len());
    assert!(large.len() < 10_000 * 1500, "{} bytes for 10,000 messages", large.len());
    assert!(large.contains("Answer 5000") && large.contains("Question 1<"));
    let page = read(&large);
    assert_eq!(page.errors, Vec::<String>::new());
    let count = |name: &str| page.elements.iter().filter(|one| one.name == name).count();
    assert!(count("rect") <= 5 * 80 && count("a") <= 210, "{} bars, {} links", count("rect"), count("a"));
    assert!(markdown(&long(5000)).len() < 10_000 * 1000);
}
