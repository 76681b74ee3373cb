//! Where no rule fires, the client gets the bytes that the provider sent.

use std::fs;
use std::path::Path;

use tidegate_gateway::Then;
use tidegate_kit::rule_set;

use crate::script::{CUTS, Said, WIRES, play, read, request, stream, whole};

/// A rule that holds back whatever could become a match, and never fires here.
const QUIET: &str =
    "+++\ncondition = \"[a-z ,.]{0,40}zyzzyva\"\nscope = [\"text\", \"thinking\", \"tool\"]\n+++\nNever.";

/// A rule that holds nothing back of what is said here.
const RARE: &str = "+++\ncondition = \"zyzzyva\"\nscope = [\"text\", \"thinking\", \"tool\"]\n+++\nNever.";

#[test]
fn recorded_streams_pass_as_they_are() {
    let set = rule_set(&[("rare", RARE)], |_| ());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/providers/streams");
    let mut passed = 0;
    for wire in WIRES {
        let mut files: Vec<_> =
            fs::read_dir(folder.join(wire.as_str())).unwrap().map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|kind| kind == "sse"));
        files.sort();
        for file in files {
            let recorded = fs::read(&file).unwrap();
            for cut in CUTS {
                let seen = play(wire, &set, std::slice::from_ref(&recorded), true, cut);
                assert_eq!(seen.requests, [request(wire)]);
                if seen.then == Then::End && seen.bytes == recorded {
                    passed += 1;
                    continue;
                }
                let text = String::from_utf8_lossy(&seen.bytes).into_owned();
                if file.to_string_lossy().contains("begins-anew") {
                    // What was held back of the void start is not sent.
                    let last = |bytes: &[u8]| {
                        let text = String::from_utf8_lossy(bytes).into_owned();
                        let start =
                            ["message_start", "response.created"].iter().filter_map(|start| text.rfind(start)).max();
                        text[start.unwrap()..].to_owned()
                    };
                    let (got, sent) = (last(&seen.bytes), last(&recorded));
                    assert!(got == sent || (seen.then == Then::Break && sent.starts_with(&got)), "{text}");
                    continue;
                }
                // What cannot be checked is not passed on; what breaks off breaks off.
                let same = recorded.iter().zip(&seen.bytes).take_while(|(a, b)| a == b).count();
                let is_closed = text.contains("Tidegate: this answer ends here, because");
                // After its end, and after an error that the provider reports, nothing follows.
                assert!(is_closed || same == seen.bytes.len(), "{}: {text}", file.display());
            }
        }
    }
    assert!(passed > 245, "{passed}");
}

#[test]
fn answers_pass_as_they_are() {
    let (rare, quiet) = (rule_set(&[("rare", RARE)], |_| ()), rule_set(&[("quiet", QUIET)], |_| ()));
    let said =
        [Said::Thinking("Let me see."), Said::Text("I write, then é and 😀 follow.\n"), Said::Call("{\"path\":\"a\"}")];
    for wire in WIRES {
        for (step, cut) in [1, 3, 100].into_iter().flat_map(|step| CUTS.map(|cut| (step, cut))) {
            let answer = stream(wire, 1, &said, step);
            let seen = play(wire, &rare, std::slice::from_ref(&answer), true, cut);
            assert_eq!(
                (String::from_utf8_lossy(&seen.bytes), seen.then),
                (String::from_utf8_lossy(&answer), Then::End)
            );
            // What is held back in the middle of a frame is sent in parts.
            let seen = play(wire, &quiet, std::slice::from_ref(&answer), true, cut);
            assert_eq!((read(wire, &seen.bytes), seen.then), (read(wire, &answer), Then::End));
        }
    }
}

#[test]
fn whole_bodies_pass_as_they_are() {
    let set = rule_set(&[("rare", RARE)], |_| ());
    for wire in WIRES {
        let body = [b" ".to_vec(), whole(wire, &[Said::Text("Fine."), Said::Call("{}")]), b"\n".to_vec()].concat();
        for cut in CUTS {
            let seen = play(wire, &set, std::slice::from_ref(&body), false, cut);
            assert_eq!((&seen.bytes, &seen.then), (&body, &Then::End));
        }
    }
}
