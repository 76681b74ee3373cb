//! Lists of sessions, and finding one by the start of its id.

use std::fs;

use super::{Place, id};

#[tokio::test]
async fn the_last_record_is_found_behind_a_cut_line_and_in_long_lines() {
    let place = Place::new();
    place.add_turns("a", 5_000..=5_001).await;
    let whole = fs::read(place.path("a")).unwrap();
    let cut = whole.len() - 10;
    fs::write(place.path("a"), &whole[..cut]).unwrap();
    let list = place.store.list().unwrap();
    assert_eq!(list.sessions[0].last.as_ref().unwrap().kind, "notice");
    assert_eq!((list.sessions[0].records, list.sessions[0].bytes), (9, cut as u64));
}

#[tokio::test]
async fn a_damaged_session_and_strange_files_do_not_hide_the_others() {
    let place = Place::new();
    for one in ["a", "b", "c"] {
        place.add_turns(one, 1..=1).await;
    }
    fs::write(place.path("b"), "{}\n").unwrap();
    fs::write(place.path("c"), fs::read_to_string(place.path("c")).unwrap() + "{}\n").unwrap();
    fs::write(place.store.root().join("notes.txt"), "").unwrap();
    fs::create_dir(place.store.root().join("folder")).unwrap();
    let list = place.store.list().unwrap();
    assert_eq!(list.sessions.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(list.problems.len(), 2);
    assert_eq!(place.store.find("b").unwrap(), id("b"), "it can be found, to be repaired");
}
