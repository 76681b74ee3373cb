//! Forks, forks of forks, and what may be removed.

use std::fs;

use tidegate_store::TranscriptError;

use super::{Place, error, family, id};

#[tokio::test]
async fn a_removal_that_was_interrupted_leaves_no_session() {
    let place = Place::new();
    family(&place).await;
    // As a crash leaves it: renamed, and not deleted.
    fs::rename(place.store.folder(&id("late")), place.store.root().join(".removed")).unwrap();
    assert_eq!(place.store.list().unwrap().sessions.len(), 3);
    place.store.remove(&id("early")).unwrap();
    assert_eq!(fs::read_dir(place.store.root()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_parent_that_is_gone_is_one_problem() {
    let place = Place::new();
    family(&place).await;
    fs::remove_dir_all(place.store.folder(&id("root"))).unwrap();
    let gone = |forks: &[&str]| TranscriptError::MissingParent {
        id: id("root"),
        forks: forks.iter().map(|fork| id(fork)).collect(),
        root: place.store.root().display().to_string(),
    };
    assert_eq!(error(place.store.read(&id("late"))), gone(&["late"]));
    let list = place.store.list().unwrap();
    assert_eq!((list.sessions.len(), &list.problems[..]), (0, &[gone(&["child", "early", "late"])][..]));
    assert!(list.problems[0].to_string().contains(r#""child", "early", "late" continue its records"#));
    for one in ["late", "early", "child"] {
        place.store.remove(&id(one)).unwrap();
    }
    assert_eq!(place.store.list().unwrap().problems, []);
}
