//! Reports of the transcripts in `tests/corpus/transcripts`, against the files next to them.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use record::Record;
use tidegate_report::{By, ChangeKind, Report, explain, html, markdown};

use crate::support::{names, report, same};

#[test]
fn reports_are_as_expected() {
    for name in names() {
        let report = report(&name);
        same(&format!("{name}.md"), &markdown(&report));
        same(&format!("{name}.page.txt"), &crate::support::page::read(&html(&report)).lines());
        let turns = report.turns.iter().filter_map(|turn| explain(&report, Some(turn.number)));
        let texts: Vec<String> = turns.map(|explanation| explanation.text()).collect();
        same(&format!("{name}.explain.txt"), &texts.join("\n"));
    }
}

/// Every type of record is in the corpus, and what no version knows is counted.
#[test]
fn every_type_is_read() {
    let records = crate::support::records("every-type");
    for kind in record::Body::TYPES {
        assert!(records.iter().any(|record| record.body.name() == *kind), "{kind} is missing");
    }
    let report = report("every-type");
    assert_eq!(report.unknown.into_iter().collect::<Vec<_>>(), [("thread_from_the_future".to_owned(), 1)]);
    assert_eq!((report.records, report.dropped), (records.len() as u64, 2));
}

/// The JSON form has what the text has; both sides of a comparison can be read back from it.
#[test]
fn an_explanation_has_a_json_form() {
    let explanation = explain(&report("every-type"), Some(1)).unwrap();
    let json = serde_json::to_value(&explanation).unwrap();
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(changes.len(), explanation.changes.len());
    let shown = changes.iter().find(|change| change["kind"] == "shown_changed").unwrap();
    assert_eq!(shown["by"]["kind"], "one_of");
    let names: Vec<_> = shown["by"]["candidates"].as_array().unwrap().iter().map(|one| &one["extension"]).collect();
    assert_eq!(names, ["guard", "tone", "guard"], "the last did not check text, which a marker replaced");
    let side = |left_out: &str| -> String {
        let chunks = shown["diff"].as_array().unwrap().iter().filter(|chunk| chunk["op"] != left_out);
        chunks.map(|chunk| chunk["text"].as_str().unwrap()).collect()
    };
    assert_eq!((side("added"), side("removed")), ("The key is sk-123!".to_owned(), "The key is [key]!".to_owned()));
}

#[test]
fn the_last_turn_is_the_default_and_an_unknown_one_is_none() {
    let report = report("every-type");
    assert_eq!(explain(&report, None), explain(&report, Some(2)));
    assert_eq!(explain(&report, Some(3)), None);
}

/// Where reports of callbacks can have been lost, the only one that is left is not named as the one that it was.
#[test]
fn lost_reports_make_an_explanation_uncertain() {
    let mut records = crate::support::records("extensions");
    let by = |records: &[Record]| {
        let report = Report::of(records.iter().cloned());
        let mut changes = explain(&report, Some(3)).unwrap().changes.into_iter();
        changes.find(|change| change.kind == ChangeKind::ShownChanged).unwrap().by
    };
    assert_eq!(by(&records), By::Extension { id: "secrets".to_owned() });
    records[0].dropped = 1;
    assert!(matches!(by(&records), By::OneOf { candidates } if candidates.len() == 1));
}
