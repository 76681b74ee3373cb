//! The tables of `tidegate.toml` that files of their own can have, too: `errors`, `events`, and those of sessions in `limits`. Which of
//! them counts, what is reported, and where each value comes from.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use flow::{Diagnostic, ErrorClass};
use tidegate_config::events::Catalogue;
use tidegate_config::{LayerKind, Operator, OperatorFiles, in_one_line, render, thread_limits};

/// The folder of a user, and a workspace.
struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["user", "work"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        for (name, text) in files {
            fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
            fs::write(place.path(name), text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The text of a file `environment` is that of the variable.
    fn files(&self) -> OperatorFiles {
        let named = self.path("named.toml");
        let environment = fs::read_to_string(self.path("environment")).ok();
        OperatorFiles::new()
            .user_folder(Some(self.path("user")))
            .named(Some(named).filter(|file| file.exists()))
            .environment(environment.as_deref().map(OsStr::new))
    }

    /// The settings without the file of the workspace, as far as it has to be trusted.
    fn untrusted(&self) -> Operator {
        let judged = self.files().read(&self.path("work")).unwrap().judge();
        let judged = judged.unwrap_or_else(|found| panic!("{found}"));
        if judged.request.is_some() { judged.without } else { judged.with }
    }

    /// What limits sessions: turns, steps and dollars; how often transient errors are retried; the throttle of text in milliseconds; and what
    /// is reported, in one line each.
    fn read(&self) -> (String, Vec<Diagnostic>) {
        let (operator, user, work) = (self.untrusted(), self.path("user"), self.path("work"));
        let limits = thread_limits::load(&operator, Some(&user), &work).unwrap_or_else(|found| panic!("{found}"));
        let (errors, of_errors) = operator.retry_table(Some(&user), &work).unwrap_or_else(|found| panic!("{found}"));
        let (events, of_events) =
            Catalogue::load(&operator, Some(&user), &work).unwrap_or_else(|found| panic!("{found}"));
        let retries = errors.policy(ErrorClass::Transient).map_or(0, |policy| policy.max_retries);
        let throttle = events.types["cognition_out_delta"].emit.throttle.as_millis();
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let [turns, steps] = [limits.limits.turns, limits.limits.steps].map(number);
        let text = format!("turns {turns} steps {steps} retries {retries} throttle {throttle}");
        (text, [limits.left_out, of_errors, of_events].concat())
    }

    /// `name = value  # layer file:line` of what files set.
    fn set(&self) -> Vec<String> {
        let (all, _) = self.untrusted().in_force(Some(&self.path("user")), &self.path("work")).unwrap();
        let place = |file: &PathBuf| file.strip_prefix(self.0.path()).unwrap_or(file).display().to_string();
        let of_files = all.iter().filter_map(|setting| {
            let from = setting.origin.last()?;
            Some(format!("{}  # {} {}:{}", setting.toml(), from.layer.as_str(), place(&from.file), from.line))
        });
        of_files.collect()
    }
}

const LIMITS: &str = "schema_version = \"1.0.0\"\n[limits]\n";
const DEFAULT: &str = "turns - steps - retries 3 throttle 1000";

/// Files, what counts, and how many findings there are.
type Case<'c> = (&'c [(&'c str, &'c str)], &'c str, usize);

#[test]
fn what_counts() {
    let cases: [Case<'_>; 13] = [
        (&[], DEFAULT, 0),
        // Each layer is on top of the one below, key by key.
        (
            &[(
                "user/tidegate.toml",
                "[limits.session]\nturns = 5\nsteps = 6\n[errors.retry.transient]\nmax_retries = 7\n",
            )],
            "turns 5 steps 6 retries 7 throttle 1000",
            0,
        ),
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\nsteps = 6\n"),
                ("work/tidegate.toml", "[limits.session]\nturns = 4\n[errors.retry.transient]\nmax_retries = 1\n"),
            ],
            "turns 4 steps 6 retries 1 throttle 1000",
            0,
        ),
        // A project is within the bounds of the user's settings, wherever both are written.
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\n"),
                ("work/tidegate.toml", "[limits.session]\nturns = 6\n[errors.retry.transient]\nmax_retries = 9\n"),
            ],
            "turns 5 steps - retries 3 throttle 1000",
            2,
        ),
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\n"),
                ("work/.tidegate/thread_limits.toml", &[LIMITS, "turns = 6\nsteps = 1\n"].concat()),
            ],
            "turns 5 steps 1 retries 3 throttle 1000",
            1,
        ),
        (
            &[
                ("user/thread_limits.toml", &[LIMITS, "turns = 5\n"].concat()),
                ("work/tidegate.toml", "[limits.session]\nturns = 6\nsteps = 1\n"),
            ],
            "turns 5 steps 1 retries 3 throttle 1000",
            1,
        ),
        // Where one layer has both files, the table counts.
        (
            &[
                ("user/thread_limits.toml", &[LIMITS, "turns = 5\nsteps = 6\n"].concat()),
                ("user/tidegate.toml", "[limits.session]\nturns = 7\n"),
            ],
            "turns 7 steps 6 retries 3 throttle 1000",
            1,
        ),
        (
            &[
                ("work/.tidegate/thread_limits.toml", &[LIMITS, "turns = 5\nsteps = 6\n"].concat()),
                ("work/tidegate.toml", "[limits.session]\nturns = 7\n"),
            ],
            "turns 7 steps 6 retries 3 throttle 1000",
            1,
        ),
        // A file that somebody named is the user's, and in the place of that of the workspace.
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\n"),
                ("named.toml", "[limits.session]\nturns = 8\n"),
                ("work/tidegate.toml", "[limits.session]\nturns = 1\n"),
                ("work/.tidegate/thread_limits.toml", &[LIMITS, "steps = 1\n"].concat()),
            ],
            "turns 8 steps 1 retries 3 throttle 1000",
            0,
        ),
        // The environment is above all files.
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\nsteps = 6\n"),
                ("work/tidegate.toml", "[limits.session]\nturns = 4\nsteps = 3\n"),
                ("environment", "limits.session.turns = 9\nerrors.retry.transient.max_retries = 1"),
            ],
            "turns 9 steps 3 retries 1 throttle 1000",
            0,
        ),
        // What is stricter counts in a workspace that nobody has trusted, and what is not does not in one that is.
        (
            &[
                ("user/tidegate.toml", "[limits.session]\nturns = 5\n"),
                (
                    "work/tidegate.toml",
                    "[provider]\nbase_url = \"https://a\"\n[limits.session]\nturns = 4\nsteps = 9\n",
                ),
            ],
            "turns 4 steps 9 retries 3 throttle 1000",
            0,
        ),
        (
            &[(
                "work/tidegate.toml",
                "[events.event_types.cognition_out_delta.emit_config]\nthrottle = \"1h\"\n[events.event_types.step_finish]\nemit_on_error = false\n",
            )],
            DEFAULT,
            2,
        ),
        (
            &[("work/tidegate.toml", "[events.event_types.cognition_out_delta.emit_config]\nthrottle = \"0s\"\n")],
            "turns - steps - retries 3 throttle 0",
            0,
        ),
    ];
    for (files, expected, findings) in cases {
        let (found, noted) = Place::new(files).read();
        assert_eq!(found, expected, "{files:?}");
        let lines: Vec<String> = noted.iter().map(in_one_line).collect();
        assert_eq!(lines.len(), findings, "{files:?}: {lines:#?}");
        assert!(noted.iter().all(|one| !one.is_error() && one.location().is_some()), "{lines:#?}");
    }
}

/// What is trusted as a whole is no looser for it: the bounds are those of the user's files.
#[test]
fn trust_does_not_lift_the_bounds() {
    let place = Place::new(&[
        ("user/tidegate.toml", "[limits.session]\nturns = 5\n"),
        ("work/tidegate.toml", "[provider]\nbase_url = \"https://a\"\n[limits.session]\nturns = 6\nsteps = 2\n"),
    ]);
    let judged = place.files().read(&place.path("work")).unwrap().judge().unwrap();
    let request = judged.request.unwrap();
    assert_eq!(request.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["provider.base_url"]);
    let limits = thread_limits::load(&judged.with, Some(&place.path("user")), &place.path("work")).unwrap();
    assert_eq!((limits.limits.turns, limits.limits.steps), (Some(5), Some(2)));
}

#[test]
fn a_key_that_is_set_twice_is_shown_in_both_files() {
    let place = Place::new(&[
        (
            "user/errors.toml",
            "schema_version = \"1.0.0\"\n[retry.transient]\nmax_retries = 4\nbase = \"2s\"\n[[class]]\nid = \"busy\"\nclass = \"quota\"\nstatus = 503\n",
        ),
        (
            "user/tidegate.toml",
            "[errors.retry.transient]\nmax_retries = 5\n[[errors.class]]\nid = \"busy\"\nclass = \"budget\"\n[[errors.class]]\nid = \"new\"\nclass = \"quota\"\nstatus = 504\n",
        ),
    ]);
    let (_, noted) = place.read();
    let shown: Vec<String> =
        noted.iter().map(|one| render(one, false).replace(&format!("{}/", place.0.path().display()), "")).collect();
    assert_eq!(
        shown.join("\n\n"),
        "\
warning[config-duplicate]: `errors.retry.transient.max_retries` is set in two files
 --> user/tidegate.toml:2:15
  |
2 | max_retries = 5
  |               ^ `tidegate.toml` counts
  |
 ::: user/errors.toml:3:15
  |
3 | max_retries = 4
  |               - this has no effect
  |
  = help: remove it from `user/errors.toml`, line 3

warning[config-duplicate]: `errors.class.busy.class` is set in two files
 --> user/tidegate.toml:5:9
  |
5 | class = \"budget\"
  |         ^^^^^^^^ `tidegate.toml` counts
  |
 ::: user/errors.toml:7:9
  |
7 | class = \"quota\"
  |         ------- this has no effect
  |
  = help: remove it from `user/errors.toml`, line 7"
    );
    let (user, work) = (place.path("user"), place.path("work"));
    let table = place.untrusted().retry_table(Some(&user), &work).unwrap().0;
    let first: Vec<(&str, ErrorClass)> =
        table.patterns().iter().map(|one| (one.id.as_str(), one.class)).take(2).collect();
    assert_eq!(first, [("new", ErrorClass::Quota), ("busy", ErrorClass::Budget)]);
}

#[test]
fn each_value_names_the_file_and_the_line_that_sets_it() {
    let place = Place::new(&[
        (
            "user/tidegate.toml",
            "[limits.session]\nturns = 5\n[limits]\ncallback_ms = 7\n[[limits.price]]\nid = \"my model\"\ninput = 1\noutput = 2\n",
        ),
        (
            "user/errors.toml",
            "schema_version = \"1.0.0\"\n[[class]]\nid = \"busy\"\nclass = \"quota\"\nstatus = [503]\n",
        ),
        (
            "work/.tidegate/thread_events.yaml",
            "schema_version: 1.0.0\nevent_types:\n  notice:\n    description: What happened.\n",
        ),
        ("work/.tidegate/thread_limits.toml", &[LIMITS, "turns = 9\nsteps = 3\n"].concat()),
        ("work/tidegate.toml", "[provider]\nbase_url = \"https://a\"\n\n[limits.session]\ndepth = 0\n"),
    ]);
    assert_eq!(
        place.set(),
        [
            "errors.class.busy.class = \"quota\"  # user user/errors.toml:4",
            "errors.class.busy.status = [503]  # user user/errors.toml:5",
            "events.event_types.notice.description = \"What happened.\"  # workspace work/.tidegate/thread_events.yaml:4",
            "limits.callback_ms = 7  # user user/tidegate.toml:4",
            "limits.session.depth = 0  # workspace work/tidegate.toml:5",
            "limits.session.steps = 3  # workspace work/.tidegate/thread_limits.toml:4",
            "limits.session.turns = 5  # user user/tidegate.toml:2",
            "limits.price.\"my model\".input = 1  # user user/tidegate.toml:7",
            "limits.price.\"my model\".output = 2  # user user/tidegate.toml:8",
        ]
    );
    let (all, noted) = place.untrusted().in_force(Some(&place.path("user")), &place.path("work")).unwrap();
    assert_eq!(noted.len(), 1, "{noted:?}");
    let default = |name: &str| all.iter().find(|one| one.name == name && one.origin.is_empty()).map(|one| one.toml());
    assert_eq!(default("limits.session.spawns").as_deref(), Some("limits.session.spawns = 20"));
    assert_eq!(
        default("errors.retry.transient.max_retries").as_deref(),
        Some("errors.retry.transient.max_retries = 3")
    );
    let layers: Vec<LayerKind> = all.iter().flat_map(|one| one.origin.iter().map(|from| from.layer)).collect();
    assert!(layers.contains(&LayerKind::Workspace) && !layers.contains(&LayerKind::Named));
}
