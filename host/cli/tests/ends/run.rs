//! `tidegate run`: what it does when it is told to end, and how it is told, in each output.

use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::provider::{Provider, Reply};
use super::started::{Ended, Started, until};
use crate::support::Place;

/// What the program is doing.
struct Work {
    name: &'static str,
    replies: &'static [Reply],
    /// The requests of which the last one begins the work.
    requests: usize,
    /// A file that a tool writes as soon as it runs, with the id of its process.
    mark: bool,
    more: &'static str,
}

const COMMAND: &str = r#"{"command": "echo $$ > mark.new; mv mark.new mark; echo begun; sleep 300; sleep 300"}"#;
/// One that no polite signal ends.
const STUBBORN: &str = r#"{"command": "trap '' TERM INT HUP QUIT; echo $$ > mark.new; mv mark.new mark; echo begun; sleep 300; sleep 300"}"#;

const WORK: [Work; 8] = [
    Work { name: "a provider that does not answer", replies: &[Reply::Never], requests: 1, mark: false, more: "" },
    Work { name: "an answer that streams", replies: &[Reply::Begun("Well, ")], requests: 1, mark: false, more: "" },
    Work { name: "a pause before a retry", replies: &[Reply::Busy], requests: 1, mark: false, more: "" },
    Work { name: "a command", replies: &[Reply::Call("shell", COMMAND)], requests: 1, mark: true, more: "" },
    Work { name: "a stubborn command", replies: &[Reply::Call("shell", STUBBORN)], requests: 1, mark: true, more: "" },
    Work {
        name: "an agent",
        replies: &[Reply::Call("spawn_agent", r#"{"agent": "helper", "task": "Help."}"#), Reply::Begun("I ")],
        requests: 2,
        mark: false,
        more: "",
    },
    Work {
        name: "a command of an agent",
        replies: &[
            Reply::Call("spawn_agent", r#"{"agent": "helper", "task": "Help."}"#),
            Reply::Call("shell", COMMAND),
        ],
        requests: 2,
        mark: true,
        more: "",
    },
    Work {
        name: "a decision about a limit",
        replies: &[Reply::Call("read_file", r#"{"path": "a.txt"}"#)],
        requests: 1,
        mark: false,
        more: "[limits]\n",
    },
];

/// How it is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Signal(&'static str),
    /// What reads its output goes.
    Output,
}

impl End {
    /// The exit code of a run whose turn was cancelled for it.
    pub(crate) fn code(self) -> Option<i32> {
        Some(if self == Self::Output { 0 } else { 130 })
    }
}

pub(crate) const ENDS: [End; 4] = [End::Signal("INT"), End::Signal("TERM"), End::Signal("HUP"), End::Output];

pub(crate) const OUTPUTS: [&str; 3] = ["text", "json", "stream-json"];

/// So many programs run at once.
const AT_ONCE: usize = 4;

#[test]
fn work_under_way_ends_when_the_program_is_told_to() {
    let cases = Mutex::new(cases().into_iter());
    let next = || cases.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((work, end, output)) = next() {
                    check(work, end, output);
                }
            });
        }
    });
}

/// The cases: every work with every end, and each of both with every output. With `TIDEGATE_TIMES`, as in the night, all combinations of the
/// three.
fn cases() -> Vec<(&'static Work, End, &'static str)> {
    let is_night = std::env::var_os("TIDEGATE_TIMES").is_some();
    let mut cases = Vec::new();
    for (at, work) in WORK.iter().enumerate() {
        for (then, end) in ENDS.into_iter().enumerate() {
            let outputs = OUTPUTS
                .into_iter()
                .enumerate()
                .filter(|(number, _)| is_night || *number == (at + then) % OUTPUTS.len());
            cases.extend(outputs.map(|(_, output)| (work, end, output)));
        }
    }
    cases
}

#[test]
fn each_pair_is_tested() {
    let cases = cases();
    for end in ENDS {
        for output in OUTPUTS {
            assert!(cases.iter().any(|(_, other, shown)| (*other, *shown) == (end, output)), "{end:?}, {output}");
        }
    }
    for work in &WORK {
        assert!(ENDS.iter().all(|end| cases.iter().any(|(own, other, _)| (own.name, other) == (work.name, end))));
        assert!(
            OUTPUTS.iter().all(|output| cases.iter().any(|(own, _, shown)| (own.name, shown) == (work.name, output)))
        );
    }
}

fn place(work: &Work, provider: &Provider) -> Place {
    let place = Place::new();
    let permissions = "[tools.permission]\n\"*\" = \"allow\"\n";
    place.write("op.toml", &format!("{}{permissions}", provider.settings()));
    place.write("a.txt", "a");
    place.write(".tidegate/agents/helper.md", "+++\ndescription = \"Helps.\"\n+++\nHelp.\n");
    if !work.more.is_empty() {
        let limits = "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n[approval]\ntimeout = \"300s\"\n";
        place.write(".tidegate/thread_limits.toml", limits);
    }
    place
}

fn check(work: &Work, end: End, output: &str) {
    let what = format!("{}, {end:?}, {output}", work.name);
    let provider = Provider::start(work.replies);
    let place = place(work, &provider);
    let arguments = ["run", "go", "--config", "op.toml", "--output", output];
    let (started, unread) = match end {
        End::Output => {
            let (started, unread) = Started::unread(&mut place.command(&arguments));
            (started, Some(unread))
        }
        End::Signal(_) => (Started::new(&place, &arguments), None),
    };
    provider.is_asked(work.requests);
    if work.mark {
        until(&format!("{what}: the command begins"), || place.path("mark").exists());
    }
    match end {
        End::Signal(name) => started.signal(name),
        End::Output => drop(unread),
    }
    let ended = started.ended(&what);
    assert_eq!(ended.code, end.code(), "{what}: {ended:?}");
    if end != End::Output {
        printed(&what, output, &ended);
    }
    recorded(&what, &place);
    if work.mark {
        let command = std::fs::read_to_string(place.path("mark")).unwrap();
        let command = Path::new("/proc").join(command.trim());
        until(&format!("{what}: the command ends"), || !command.exists());
    }
}

/// What was printed is whole, and says how the turn ended.
fn printed(what: &str, output: &str, ended: &Ended) {
    let lines = || {
        ended.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{what}: {line:?}")))
    };
    match output {
        "text" => assert!(ended.err.ends_with("cancelled\n"), "{what}: {ended:?}"),
        "json" => {
            let objects: Vec<Value> = lines().collect();
            assert_eq!((objects.len(), &objects[0]["status"]["status"]), (1, &"cancelled".into()), "{what}: {ended:?}");
        }
        _ => {
            assert!(ended.out.ends_with('\n'), "{what}: {ended:?}");
            let events: Vec<Value> = lines().collect();
            let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            assert_eq!(kinds[kinds.len() - 2..], ["turn_finish", "thread_cancelled"], "{what}: {kinds:?}");
            assert_eq!(events[events.len() - 2]["payload"]["status"], "cancelled", "{what}");
        }
    }
}

/// The transcript has the end of the turn, and nobody has it open.
pub(crate) fn recorded(what: &str, place: &Place) {
    let sessions = place.json(&["session", "list", "--all", "--json", "--config", "op.toml"]);
    let sessions = sessions["sessions"].as_array().unwrap();
    let own = sessions.iter().find(|session| session["spawned_by"].is_null()).unwrap();
    assert_eq!((&own["last_type"], &own["open_in"]), (&"thread_cancelled".into(), &Value::Null), "{what}: {own}");
}

/// A second signal does not wait for anything: here for a reader of the output that takes nothing.
#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second) in [("INT", "INT"), ("TERM", "INT"), ("HUP", "TERM")] {
        let provider = Provider::start(&[Reply::Begun("Well, ")]);
        let place = place(&WORK[1], &provider);
        let started = Started::new(&place, &["run", "go", "--config", "op.toml"]);
        provider.is_asked(1);
        started.signal(first);
        started.signal(second);
        let ended = started.ended(&format!("{first} and {second}"));
        assert_eq!(ended.code, Some(130), "{ended:?}");
    }
}

/// Whoever started the program has it ignore a signal, as `nohup` does: it is not told to end by it.
#[test]
fn an_ignored_signal_stays_ignored() {
    let provider = Provider::start(&[Reply::Begun("Well, ")]);
    let place = place(&WORK[1], &provider);
    let mut command = std::process::Command::new("sh");
    let program = place.command(&["run", "go", "--config", "op.toml"]);
    let arguments: Vec<_> = program.get_args().collect();
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program.get_program()).args(arguments);
    command.current_dir(place.path(".")).envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut started = Started::of(command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()));
    provider.is_asked(1);
    started.signal("HUP");
    // What follows arrives after it.
    started.signal("CONT");
    assert!(started.child.try_wait().unwrap().is_none());
    started.signal("TERM");
    let ended = started.ended("an ignored signal");
    assert_eq!(ended.code, Some(130), "{ended:?}");
}

/// How a turn can end by itself, and the exit codes of that.
#[test]
fn a_turn_that_ends_by_itself_ends_the_program() {
    const STEPS: &[Reply] = &[Reply::Call("read_file", r#"{"path": "a.txt"}"#)];
    let cases: [(&str, &'static [Reply], &str, i32); 4] = [
        ("completed", &[Reply::Text("Done.")], "", 0),
        ("failed", &[Reply::Refused], "", 1),
        ("step_limit", STEPS, "[turn]\nmax_steps = 1\n", 5),
        ("suspended", STEPS, "limits", 6),
    ];
    for (status, replies, more, code) in cases {
        for output in OUTPUTS {
            let provider = Provider::start(replies);
            let place = place(&WORK[0], &provider);
            let file = std::fs::read_to_string(place.path("op.toml")).unwrap();
            if more == "limits" {
                let limits = "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n[approval]\ntimeout = \"1s\"\n";
                place.write(".tidegate/thread_limits.toml", limits);
            } else {
                place.write("op.toml", &format!("{file}{more}"));
            }
            let ended = Started::new(&place, &["run", "go", "--config", "op.toml", "--output", output]).ended(status);
            assert_eq!(ended.code, Some(code), "{status}, {output}: {ended:?}");
            if output == "json" {
                let object: Value = serde_json::from_str(&ended.out).unwrap();
                assert_eq!(object["status"]["status"], status);
            }
        }
    }
}
