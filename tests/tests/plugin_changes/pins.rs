//! Components that are replaced while sessions are open, and `sha256` of `[[plugin]]`, which pins them.

use std::fs;

use tidegate::diagnostic::DiagnosticCode;
use tidegate::plugin::file_digest;
use tidegate::{Host, HostError};

use super::place::{NEW, Place, component, started};

/// The component with a custom section more: other bytes, and the same behaviour.
fn other() -> Vec<u8> {
    [component(), b"\0\x05\x01xabc".as_slice()].concat()
}

/// Compiles the other component, which takes as long as it takes: it is the engine's from then on.
async fn compiled() {
    let place = Place::new("");
    replace(&place);
    place.host().await;
}

fn replace(place: &Place) -> String {
    fs::write(place.plugin().join("component.wasm"), other()).unwrap();
    file_digest(&place.plugin().join("component.wasm")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_changed_without_its_manifest_is_reported_as_that() {
    compiled().await;
    let place = Place::new("");
    let host = place.host().await;
    let run = started(&place, &host).await;
    let digest = replace(&place);
    let expected = format!(
        "the component of `conformance` changed, and its manifest did not: the one with the SHA-256 {digest} is used from now on"
    );
    let (text, changes) = run.turn("!count").await;
    assert_eq!((text.as_str(), changes), (NEW, vec!["reload conformance 0.1.0".to_owned(), expected]));
    run.say("!count").await;
    // With a new version it is what one expects.
    fs::write(place.plugin().join("component.wasm"), component()).unwrap();
    place.write_manifest(&super::place::manifest().replace("0.1.0", "0.2.0"));
    assert_eq!(run.turn("!count").await.1, ["reload conformance 0.2.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_other_than_the_pinned_one_is_not_loaded() {
    compiled().await;
    let place = Place::new("");
    let pinned = file_digest(&place.plugin().join("component.wasm")).unwrap();
    place.write_operator(&Place::entry(&format!("sha256 = \"{}\"", pinned.to_uppercase())));
    let host = place.host().await;
    let run = started(&place, &host).await;
    let found = replace(&place);
    let changes = run.turn("!count").await.1;
    let [refused] = changes.as_slice() else { panic!("{changes:?}") };
    let expected = format!(
        "plugin `conformance` was not reloaded, and version 0.1.0 stays in use: plugin `conformance` cannot be loaded: its component \
         has the SHA-256 {found}, and {pinned} is pinned: if the new component is meant to run, set `sha256`"
    );
    assert!(refused.starts_with(&expected), "{refused}");
    run.say("!count").await;
    // Nor when a host opens.
    let error: HostError = place.builder().open().await.map(|_: Host| ()).unwrap_err();
    assert_eq!(error.code().map(DiagnosticCode::as_str), Some("plugin-component-changed"), "{error}");
    // The operator takes it.
    place.write_operator(&Place::entry(&format!("sha256 = \"{found}\"")));
    let changes = run.turn("!count").await.1;
    assert_eq!(changes.first().map(String::as_str), Some("reload conformance 0.1.0"), "{changes:?}");
    place.builder().open().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_component_that_is_not_the_pinned_one_runs() {
    // It is refused for its digest, and not for what it is: it was not even looked at.
    let place = Place::new(&format!("sha256 = \"{}\"", "0".repeat(64)));
    fs::write(place.plugin().join("component.wasm"), b"\0asm\x0d\0\x01\0 and nothing that could be compiled").unwrap();
    let error = place.builder().open().await.map(|_: Host| ()).unwrap_err();
    assert_eq!(error.code().map(DiagnosticCode::as_str), Some("plugin-component-changed"), "{error}");
}
