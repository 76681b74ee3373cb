//! Lists of sessions, and finding one by the start of its id.

use flow::ports::Journal as _;
use tidegate_store::TranscriptError;

use super::{Place, error, id};

#[tokio::test]
async fn a_list_has_the_latest_first_with_its_title_and_last_record() {
    let place = Place::start();
    place.add_turns("old", 1..=1).await;
    place.add_turns("Long one/1", 1..=300).await;
    drop(place.open("empty").journal.close().await);
    place.store.fork(&id("old"), 1, &id("fork")).unwrap();
    let open = place.open("old");

    let list = place.store.list().unwrap();
    assert_eq!(list.problems, []);
    let listed = |one: &tidegate_store::TranscriptSummary| {
        let last = one.last.as_ref().map(|last| format!("{} {} {}", last.event, last.at_ms, last.kind));
        (one.id.as_str().to_owned(), one.title.clone(), one.records, last.unwrap_or_default(), one.owner.clone())
    };
    let title = Some("input 1".to_owned());
    let mut found: Vec<_> = list.sessions.iter().map(listed).collect();
    let owner = Some("first process".to_owned());
    assert_eq!(found[0], ("Long one/1".to_owned(), title.clone(), 1_500, "1499 2499 turn_finish".to_owned(), None));
    assert_eq!(found[1], ("old".to_owned(), title.clone(), 5, "4 1004 turn_finish".to_owned(), owner));
    found.sort_unstable();
    assert_eq!(found[1], ("empty".to_owned(), None, 0, String::new(), None));
    assert_eq!(found[2], ("fork".to_owned(), title, 5, String::new(), None));
    assert_eq!(list.sessions[0].bytes, place.lines("Long one/1").iter().map(|line| line.len() as u64 + 1).sum::<u64>());
    let forks: Vec<_> = list.sessions.iter().filter_map(|one| one.header.parent.as_ref()).collect();
    assert_eq!(forks[0].thread_id, "old");
    open.journal.close().await.unwrap();
}

#[tokio::test]
async fn a_session_is_found_by_the_start_of_its_id() {
    let place = Place::start();
    assert_eq!(
        error(place.store.find("a")),
        TranscriptError::NoMatch { prefix: "a".to_owned(), candidates: Vec::new() }
    );
    for one in ["alpha", "alpha-2", "beta", "Beta gamma"] {
        place.open(one).journal.close().await.unwrap();
    }
    for (prefix, found) in [("alpha", "alpha"), ("alpha-", "alpha-2"), ("b", "beta"), ("Beta", "Beta gamma")] {
        assert_eq!(place.store.find(prefix).unwrap(), id(found), "{prefix}");
    }
    let candidates = vec![id("alpha"), id("alpha-2")];
    let ambiguous = error(place.store.find("al"));
    assert_eq!(ambiguous, TranscriptError::Ambiguous { prefix: "al".to_owned(), candidates });
    assert_eq!(ambiguous.to_string(), r#""al" is the start of several ids: "alpha", "alpha-2"; give more characters"#);
    // No transcript is read, unless its folder has another name than its id.
    place.write_lines("beta", &["damaged".to_owned()]);
    assert_eq!(place.store.find("b").unwrap(), id("beta"));
    let none = error(place.store.find("x"));
    let TranscriptError::NoMatch { candidates, .. } = &none else { panic!("{none}") };
    assert_eq!(candidates.len(), 4);
    assert!(none.to_string().contains(r#""Beta gamma""#), "{none}");
}

#[tokio::test]
async fn a_summary_of_one_session_is_that_of_the_list_and_reads_no_other() {
    let place = Place::start();
    for one in ["a", "b"] {
        place.add_turns(one, 1..=2).await;
    }
    place.store.fork(&id("a"), 1, &id("fork")).unwrap();
    for one in place.store.list().unwrap().sessions {
        assert_eq!(place.store.summary(&one.id), Ok(one));
    }
    place.write_lines("b", &["damaged".to_owned()]);
    assert_eq!(place.store.summary(&id("fork")).unwrap().title.as_deref(), Some("input 1"));
    assert!(matches!(error(place.store.summary(&id("none"))), TranscriptError::Missing { .. }));
}
