//! Which sessions a run removes because of their age, and what it says.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use tidegate::config::{Layer, LayerKind};
use tidegate::diagnostic::SourceFile;
use tidegate::{Host, Operator};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Folders with recorded sessions.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        for folder in ["own", "plain", "settled", "sessions"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        std::fs::write(place.path("settled/tidegate.toml"), "[transcript]\nkeep_days = 0\n").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Records a session of a folder that was used for the last time so many days ago. The id has the folder and the age.
    fn record(&self, folder: &str, days: u64) {
        let id = format!("{folder}-{days}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        let ts = now - days * DAY_MS - 60_000;
        let header =
            serde_json::json!({"format": "tidegate-transcript", "version": 1, "thread_id": id, "created_ms": ts});
        let started = serde_json::json!({
            "seq": 0, "event": 0, "ts": ts, "thread_id": id, "turn": 1, "step": 0, "attempt": 0, "type": "thread_started",
            "payload": {"workspace": self.path(folder)},
        });
        let session = self.path("sessions").join(id);
        std::fs::create_dir(&session).unwrap();
        std::fs::write(session.join("transcript.jsonl"), format!("{header}\n{started}\n")).unwrap();
    }

    /// Removes what a run in `own` removes, and returns what is left, and what is said.
    async fn run(&self, user: &str, own: &str) -> (Vec<String>, Vec<String>) {
        let sessions = self.path("sessions").display().to_string();
        let user = format!(
            "[rules]\nbuiltin_rules = false\n[state]\nbackend = \"memory\"\n[transcript]\nenabled = true\nfolder = {sessions:?}\n{user}"
        );
        let layer = |kind, path: &str, text: &str| Layer { kind, source: SourceFile::new(self.path(path), text) };
        let layers =
            [layer(LayerKind::User, "user.toml", &user), layer(LayerKind::Workspace, "own/tidegate.toml", own)];
        let operator = Operator::of_layers(&layers).unwrap_or_else(|wrong| panic!("{wrong}"));
        let host = Host::builder(operator).cache_dir(None).user_rules(None).open().await.unwrap();
        let lines = host.remove_expired_sessions(&[self.path("own")]).await.unwrap();
        (names(&self.path("sessions")), lines)
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// One row per case: the settings of the user and of the workspace `own`, the sessions, those that are removed, and a part of each line
/// that is reported. `settled` has a file of its own; `gone` is not there.
#[tokio::test]
async fn a_setting_applies_to_its_own_sessions_and_removals_are_reported() {
    type Sessions<'a> = &'a [(&'a str, u64)];
    type Case<'a> = (&'a str, &'a str, &'a str, Sessions<'a>, &'a [&'a str], &'a [&'a str]);
    let all: Sessions<'_> =
        &[("own", 0), ("own", 2), ("own", 40), ("plain", 2), ("plain", 40), ("settled", 40), ("gone", 40)];
    let own_1 = "[transcript]\nkeep_days = 1\n";
    let own_0 = "[transcript]\nkeep_days = 0\n";
    let cases: [Case<'_>; 6] = [
        (
            "defaults",
            "",
            "",
            all,
            &["gone-40", "own-40", "plain-40"],
            &[
                "removed 1 session of this workspace without a record for more than 30 days",
                "removed 2 sessions of folders without a tidegate.toml of their own without a record for more than 30 days",
            ],
        ),
        (
            "a day in the workspace",
            "",
            own_1,
            all,
            &["gone-40", "own-2", "own-40", "plain-40"],
            &[
                "removed 2 sessions of this workspace without a record for more than 1 day (`keep_days`",
                "removed 2 sessions of folders",
            ],
        ),
        (
            "a day in the workspace, and all kept by the user",
            "keep_days = 0\n",
            own_1,
            all,
            &["own-2", "own-40"],
            &["removed 2 sessions of this workspace"],
        ),
        ("all kept in the workspace", "", own_0, all, &["gone-40", "plain-40"], &["removed 2 sessions of folders"]),
        (
            "a clock that is 46 days ahead",
            "",
            own_1,
            &[("own", 0), ("own", 46), ("plain", 47), ("settled", 46)],
            &[],
            &[
                "2 sessions would be removed because of age, and nothing was: before the last 24 hours, the latest use was 46 days ago",
            ],
        ),
        ("nothing is old", "", "", &[("own", 0), ("plain", 20)], &[], &[]),
    ];
    for (name, user, own, sessions, removed, said) in cases {
        let place = Place::new();
        sessions.iter().for_each(|(folder, days)| place.record(folder, *days));
        let mut expected = names(&place.path("sessions"));
        expected.retain(|id| !removed.contains(&id.as_str()));
        let (left, lines) = place.run(user, own).await;
        assert_eq!(left, expected, "{name}: {lines:?}");
        assert_eq!(lines.len(), said.len(), "{name}: {lines:?}");
        assert!(lines.iter().zip(said).all(|(line, said)| line.starts_with(said)), "{name}: {lines:?}");
    }
}

#[tokio::test]
async fn a_run_removes_a_hundred_sessions_and_says_how_many_are_left() {
    let place = Place::new();
    place.record("own", 2);
    (100..250).for_each(|days| place.record("own", days));
    let (left, lines) = place.run("", "").await;
    assert_eq!(left.len(), 51, "{lines:?}");
    assert!(left.iter().all(|id| !id.starts_with("own-2") || id == "own-2"), "the oldest are removed first: {left:?}");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.starts_with("removed 100 sessions of this workspace"), "{line}");
    assert!(line.ends_with("; 50 more are left to later runs"), "{line}");
}
