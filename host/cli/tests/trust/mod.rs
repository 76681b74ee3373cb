//! The `tidegate.toml` of a workspace: nothing of it counts before the user trusts it, and nothing of what changed after that.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../config/tests/support/keys.rs"]
mod keys;

mod asked;
mod files;
mod gateway;
mod place;
mod running;
mod shown;

use place::Repository;

use crate::support::{code, err};

/// What the refusal says about how to go on.
const WAYS: [&str; 4] = ["config-untrusted", "`tidegate trust`", "`--trust-workspace`", "`--config FILE`"];

#[test]
fn no_key_of_a_cloned_file_runs_anything() {
    let keys = keys::all(&std::fs::read_to_string(crate::support::repository().join(SCHEMA)).unwrap());
    for keys::Key { path, file } in &keys {
        let place = Repository::new(file);
        let refused = place.run(&["run", "hi"]);
        let said = err(&refused);
        assert_eq!((code(&refused), refused.stdout.as_slice()), (2, &b""[..]), "{path}: {said}");
        for way in WAYS {
            assert!(said.contains(way), "{path}: {way} is not in {said}");
        }
        let last = path.rsplit('.').next().unwrap();
        assert!(last == "*" || said.contains(last), "{path} is not shown: {said}");
        // With the user's consent it is another matter: whatever becomes of it then, it is not refused for this reason.
        let taken = place.run(&["--trust-workspace", "run", "hi"]);
        assert!(!err(&taken).contains("config-untrusted"), "{path}: {}", err(&taken));
    }
    assert!(keys.len() >= 81, "only {} keys", keys.len());
}

const SCHEMA: &str = "host/config/schema/tidegate.schema.json";

#[test]
fn what_a_project_decides_counts_at_once() {
    let place = Repository::new("[provider]\nmodel = \"small\"\n[tools.permission]\nshell = \"deny\"\n");
    place.write("config/tidegate/tidegate.toml", &place.user("models = [\"small\"]\n"));
    place.answer(&["say hello"]);
    let ran = place.run(&["run", "hi"]);
    assert_eq!(code(&ran), 0, "{}", err(&ran));
}
