//! Plugins that guard stay as they are while the program runs: what the model runs can write every file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate::plugin::PluginEntry;
use tidegate::{Host, HostError};

use super::place::{NEW, Place, Run, component, id, manifest, started};

/// What makes a plugin a guard: words of its entry, and words of its manifest.
const GUARDS: [(&str, &str); 5] = [
    ("required = true", ""),
    ("on_failure = \"withhold\"", ""),
    ("keep = \"shown\"", ""),
    ("", "on_failure = \"withhold\"\n"),
    ("", "keep = \"shown\"\n"),
];

async fn place(entry: &str, of_manifest: &str) -> (Place, Host, Run) {
    let place = Place::new(entry);
    place.write_manifest(&format!("{of_manifest}{}", manifest()));
    let host = place.host().await;
    let run = started(&place, &host).await;
    (place, host, run)
}

/// The same component in every respect that matters, in other bytes: a custom section without content is at its end.
fn rebuilt() -> Vec<u8> {
    [component(), &[0, 2, 1, b'x']].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_file_leaves_the_entry_of_a_guard_as_it_is() {
    for (entry, of_manifest) in GUARDS {
        let (place, _host, run) = place(entry, of_manifest).await;
        let unguarded = format!("{entry}\nenabled = false");
        let fewer = Place::entry(entry).replace("\"history\", ", "");
        let edits = [
            "[rules]\nbuiltin_rules = false\n".to_owned(),
            Place::entry(&unguarded),
            Place::entry(&format!("{entry}\nlimits.text_ms = 1")),
            Place::entry(&format!("{entry}\npriority.on_plain_text = 99")),
            fewer,
            Place::entry(match entry {
                "" => "on_failure = \"skip\"\nkeep = \"original\"",
                _ => "",
            }),
        ];
        for edited in edits {
            place.write_operator(&edited);
            let (text, changes) = run.turn("!state-get k").await;
            assert_eq!(text, "Some(\"kept\")", "{entry} {of_manifest}: {edited}");
            let stays = |change: &String| change.contains("guards (") && change.contains("so its entry stays as it is");
            assert!(changes.iter().all(stays), "{entry} {of_manifest}: {changes:?}");
        }
        assert!(run.turn("!count").await.1.is_empty(), "it is reported once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_files_of_a_guard_are_used_by_the_next_program() {
    for (entry, of_manifest) in GUARDS {
        let (place, host, run) = place(entry, of_manifest).await;
        let is_refused = |changes: &[String]| {
            let waits = "changed files of it are used when the program is restarted";
            changes.len() == 1 && changes[0].contains("it guards (") && changes[0].contains(waits)
        };
        fs::write(place.plugin().join("component.wasm"), rebuilt()).unwrap();
        let (text, changes) = run.turn("!state-get k").await;
        assert_eq!(text, "Some(\"kept\")", "{entry} {of_manifest}");
        assert!(is_refused(&changes), "{entry} {of_manifest}: {changes:?}");
        assert!(run.turn("!count").await.1.is_empty(), "it is reported once");
        // Nor with other limits, or with a change that the program makes of something else.
        place.write_operator(&format!("{}[limits]\ntext_ms = 400\n", Place::entry(entry)));
        let (text, _) = run.turn("!state-get k").await;
        assert_eq!(text, "Some(\"kept\")", "{entry} {of_manifest}");
        let long = |entry: &mut PluginEntry| entry.limits.text = Some(Duration::from_millis(300));
        let error = host.plugins().configure(&id("conformance"), long).await.unwrap_err();
        assert!(matches!(error, HostError::GuardChanged { .. }), "{error}");
        // A session that opens now has the version that is in use, and another program has the new one.
        let other = place.session(&host).await;
        assert!(other.turn("!count").await.1.iter().any(|change| change.contains("it guards (")));
        fs::write(place.plugin().join("component.wasm"), component()).unwrap();
        host.plugins().configure(&id("conformance"), long).await.unwrap();
        place.write_manifest(&format!("{of_manifest}{}", manifest().replace("0.1.0", "0.2.0")));
        let (_, changes) = run.turn("!count").await;
        assert!(changes.iter().any(|change| change.contains("it guards (")), "{changes:?}");
        let next = place.host().await;
        assert_eq!(next.plugins().list()[0].version, "0.2.0");
    }
}

/// A policy is the embedder's to relax, and what does not guard is reloaded as it always was.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_program_relaxes_guards_no_longer() {
    let (place, host, run) = place("on_failure = \"withhold\"", "").await;
    host.plugins().configure(&id("conformance"), |entry| entry.fails_closed = Some(false)).await.unwrap();
    assert_eq!(run.turn("!count").await, (NEW.to_owned(), vec!["reload conformance 0.1.0".to_owned()]));
    // What is said of the component itself is not what this is about, and a change that takes long to load counts from a later turn.
    let reloads = async |input| loop {
        let (said, mut notices) = run.turn(input).await;
        if !notices.iter().any(|notice| notice.starts_with("loading changed plugins takes more than")) {
            notices.retain(|notice| !notice.starts_with("the component of `conformance` changed"));
            break (said, notices);
        }
    };
    fs::write(place.plugin().join("component.wasm"), rebuilt()).unwrap();
    assert_eq!(reloads("!count").await, (NEW.to_owned(), vec!["reload conformance 0.1.0".to_owned()]));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/pass-through");
    let other = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes;
    fs::write(place.plugin().join("component.wasm"), &other).unwrap();
    assert_eq!(reloads("!state-get k").await, ("!state-get k".into(), vec!["reload conformance 0.1.0".to_owned()]));
}
