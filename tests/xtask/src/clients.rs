//! `cargo xtask clients`: the agents that people use, unmodified, behind `tidegate guard`, in front of a model whose answers are scripted.
//!
//! Each does a task of two turns with a change of a file and a command, where rules stop its model in text and in the arguments of a tool; meets an
//! answer that fails in its middle; and a model that never does what it is told, until the budget is spent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tidegate_servers::{Scripted, Step, ensure_clients, ensure_judge, has_clients, node_of, say};

use crate::run;

/// The rule of `scripted.py`, in everything that a model says.
const RULE: &str = "+++\ncondition = \"forbidden\"\nscope = [\"text\", \"thinking\", \"tool\"]\nrepeat = \"always\"\n+++\n\
    Never say that word.\n";

/// Three answers are stopped, and the next one ends.
const SETTINGS: &str = "[rules]\nbuiltin_rules = false\non_budget = \"stop\"\nmax_interrupts_per_turn = 3\n";

/// What no client must receive: the rule's word, as the model says it.
const FORBIDDEN: [&str; 2] = ["forbidden words", "echo forbidden"];

/// A client that needs longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// A client, and how it is asked.
struct Client {
    name: &'static str,
    program: &'static str,
    /// Arguments of a first turn, and of one that continues; the prompt follows.
    first: &'static [&'static str],
    next: &'static [&'static str],
    /// Requests of the client's own for a turn, besides its answers: a title.
    more: u64,
}

const CLIENTS: [Client; 5] = [
    Client {
        name: "Claude Code",
        program: "claude",
        first: &["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "-p"],
        next: &["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "-c", "-p"],
        more: 0,
    },
    Client {
        name: "codex",
        program: "codex",
        first: &["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
        next: &[
            "exec",
            "resume",
            "--last",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        more: 0,
    },
    Client {
        name: "codex, tools as functions",
        program: "codex",
        first: &[
            "exec",
            "-m",
            "gpt-5.2-codex",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        next: &[
            "exec",
            "resume",
            "--last",
            "-m",
            "gpt-5.2-codex",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        more: 0,
    },
    Client {
        name: "opencode, Anthropic",
        program: "opencode",
        first: &["run", "-m", "anthropic/claude-sonnet-4-5", "--format", "json"],
        next: &["run", "-c", "-m", "anthropic/claude-sonnet-4-5", "--format", "json"],
        more: 1,
    },
    Client {
        name: "opencode, OpenAI",
        program: "opencode",
        first: &["run", "-m", "openai/gpt-5.1", "--format", "json"],
        next: &["run", "-c", "-m", "openai/gpt-5.1", "--format", "json"],
        more: 1,
    },
];

/// A case of `scripted.py`, in the order in which they run.
struct Case {
    name: &'static str,
    what: &'static str,
    /// It continues the session of the case before it.
    continues: bool,
    /// The most requests of a client, and the fewest answers that were stopped and asked for again.
    requests: u64,
    stopped: u64,
    /// What the client shows at its end.
    shows: &'static str,
}

const CASES: [Case; 4] = [
    Case { name: "task1", what: "a task", continues: false, requests: 3, stopped: 2, shows: "The task1 is done." },
    Case {
        name: "task2",
        what: "its second turn",
        continues: true,
        requests: 3,
        stopped: 1,
        shows: "The task2 is done.",
    },
    Case {
        name: "fallback",
        what: "an answer that fails",
        continues: false,
        requests: 2,
        stopped: 1,
        shows: "It worked.",
    },
    Case {
        name: "always",
        what: "a spent budget",
        continues: false,
        requests: 1,
        stopped: 3,
        shows: "no-forbidden` stopped this answer",
    },
];

pub(crate) fn clients() -> Result<()> {
    let installed = ensure_clients()?;
    run::step("the program", &mut run::cargo(&["build", "--package", "tidegate-cli", "--locked"]))?;
    let model = Scripted::start()?;
    let mut table = String::from("\nThe requests of each client:\n\n| client |");
    CASES.iter().for_each(|case| table += &format!(" {} |", case.what));
    table += &format!("\n|---|{}\n", "---|".repeat(CASES.len()));
    let mut failures = Vec::new();
    for client in &CLIENTS {
        let place = Place::new(client.program)?;
        table += &format!("| {} |", client.name);
        for case in &CASES {
            let step = Step::begin(format!("{}: {}", client.name, case.what));
            let result = try_case(&place, &installed, &model, client, case);
            step.done();
            table += &match &result {
                Ok(requests) => format!(" {requests} |"),
                Err(_) => " **failed** |".to_owned(),
            };
            failures.extend(result.err().map(|error| format!("{}, {}: {error:#}", client.name, case.what)));
        }
        table += "\n";
    }
    say(&table);
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// The last act of the demo: Claude Code where it is installed, else a program with an SDK, behind a rule that stops its model.
pub(crate) fn act() -> Result<()> {
    let (model, place) = (Scripted::start()?, Place::new("demo")?);
    let mut command = if has_clients() {
        say("Claude Code does a task; its model says a word that a rule forbids, and writes it into a command.\n");
        let mut command = place.guarded(&ensure_clients()?, model.base_url(), "claude");
        let prompt = format!("Do the task, case: task1 in folder {}", place.workspace().display());
        command.args(["--dangerously-skip-permissions", "-p", &prompt]);
        command
    } else {
        say("A program with Anthropic's SDK (tests/demo/guard.py); its model says a word that a rule forbids.\n");
        let python = ensure_judge()?.join("bin/python");
        let mut command = place.guarded(Path::new("."), model.base_url(), &python.display().to_string());
        command.arg(run::root().join("tests/demo/guard.py"));
        command
    };
    let (output, report) = place.run(&mut command)?;
    output.lines().chain(report.lines()).for_each(|line| say(&format!("  {line}")));
    place.has_not_received()?;
    let requests = model.requests()?;
    let again = requests.iter().filter(|one| one["reminders"].as_u64() > Some(0)).count();
    ensure!(again > 0, "a rule was to stop the model, and none did");
    say(&format!("the client has asked {} times, its model was asked {}", requests.len() - again, requests.len()));
    Ok(())
}

/// Runs a client in a case; returns how often it has asked.
fn try_case(place: &Place, installed: &Path, model: &Scripted, client: &Client, case: &Case) -> Result<u64> {
    let before = model.requests()?.len();
    let prompt = format!("Do the task, case: {} in folder {}", case.name, place.workspace().display());
    let arguments = if case.continues { client.next } else { client.first };
    let mut command = place.guarded(installed, model.base_url(), client.program);
    command.args(arguments).arg(prompt);
    let (output, report) = place.run(&mut command)?;
    ensure!(output.contains(case.shows), "it has not shown {:?}: {}\n{report}", case.shows, end(&output));
    place.has_not_received()?;
    let requests = model.requests()?.split_off(before);
    let asked = requests.iter().filter(|one| one["reminders"] == 0).count() as u64;
    let most = case.requests + client.more;
    ensure!(asked <= most, "it has asked {asked} times, {most} is the most: {requests:?}\n{report}");
    let again = requests.iter().filter(|one| one["reminders"].as_u64() > Some(0)).count() as u64;
    ensure!(again >= case.stopped, "its model was asked again {again} times, {} is the least\n{report}", case.stopped);
    if case.name.starts_with("task") {
        place.has_done(case.name)?;
    }
    Ok(asked)
}

/// Returns the end of what a client has printed.
fn end(output: &str) -> &str {
    let start = output.len().saturating_sub(2000);
    &output[output.ceil_char_boundary(start)..]
}

/// A client's home and its workspace, below a temporary folder that goes with it.
struct Place(PathBuf);

impl Place {
    fn new(program: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("tidegate-clients-{program}-{}", std::process::id()));
        let place = Self(folder);
        fs::create_dir_all(place.workspace().join(".tidegate/rules")).context("cannot make a workspace")?;
        fs::create_dir_all(place.0.join("home"))?;
        fs::write(place.workspace().join(".tidegate/rules/no-forbidden.md"), RULE)?;
        fs::write(place.workspace().join("tidegate.toml"), SETTINGS)?;
        Ok(place)
    }

    fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Returns the client behind the program, in an environment of its own.
    fn guarded(&self, installed: &Path, upstream: &str, client: &str) -> Command {
        let programs = installed.join("node_modules/.bin");
        let node = node_of(installed);
        let folders = [programs.as_path(), node.parent().unwrap_or(&programs)];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = folders.into_iter().map(Path::to_owned).chain(std::env::split_paths(&path));
        let mut command = Command::new(run::target().join("debug/tidegate"));
        command.args(["--trust-workspace", "guard", "--anthropic-url", upstream, "--openai-url"]);
        command.arg(format!("{upstream}/v1")).arg("--").arg(client);
        command.current_dir(self.workspace()).env_clear().env("HOME", self.0.join("home"));
        command.envs(std::env::join_paths(path).map(|path| ("PATH", path)));
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "a-key"),
            ("OPENAI_API_KEY", "o-key"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            // It does as it is told although its user is root: the machine of a test is a sandbox.
            ("IS_SANDBOX", "1"),
        ] {
            command.env(name, value);
        }
        command
    }

    /// Runs it to its end; returns what the client has printed, and what the program has.
    fn run(&self, command: &mut Command) -> Result<(String, String)> {
        let (output, report) = (self.0.join("home/output"), self.0.join("home/report"));
        command.stdin(Stdio::null()).stdout(fs::File::create(&output)?).stderr(fs::File::create(&report)?);
        let mut child = command.spawn().context("cannot start the program")?;
        let status = wait(&mut child)?;
        let read = |file: &Path| fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (output, report) = (read(&output)?, read(&report)?);
        match status {
            Some(true) => Ok((output, report)),
            Some(false) => bail!("it has failed: {}\n{report}", end(&output)),
            None => bail!("it was not done after {} s: {}\n{report}", PATIENCE.as_secs(), end(&output)),
        }
    }

    /// Nothing that the client has printed or kept has what the rule forbids.
    fn has_not_received(&self) -> Result<()> {
        let mut open = vec![self.0.join("home")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder)? {
                let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
                let kind = kind?;
                if kind.is_dir() {
                    open.push(path);
                    continue;
                }
                if !kind.is_file() {
                    continue;
                }
                let bytes = fs::read(&path)?;
                let found = |word: &&&str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
                if let Some(word) = FORBIDDEN.iter().find(found) {
                    bail!("it has received {word:?}: {}", path.display());
                }
            }
        }
        Ok(())
    }

    /// The task has changed the file, and its command has run once.
    fn has_done(&self, case: &str) -> Result<()> {
        let read = |name: &str| fs::read_to_string(self.workspace().join(name)).with_context(|| format!("no {name}"));
        let (notes, log) = (read("notes.txt")?, read("log.txt")?);
        let line = if case == "task1" { "first line\n" } else { "second line\n" };
        ensure!(notes == line, "notes.txt has {notes:?}, not {line:?}");
        ensure!(log.lines().last() == Some(&format!("allowed {case}")), "the command has not run: {log:?}");
        ensure!(!log.contains("forbidden"), "a command has run that a rule forbids: {log:?}");
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns whether it has ended well; `None`: it was not done in time, and was killed.
fn wait(child: &mut Child) -> Result<Option<bool>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::Place;
    use std::fs;

    #[test]
    fn what_a_client_has_kept_is_found() {
        let place = Place::new("no-client").unwrap();
        fs::create_dir_all(place.0.join("home/.client/log")).unwrap();
        assert!(place.has_not_received().is_ok());
        fs::write(place.0.join("home/.client/log/a"), b"\xff forbidden words \xff").unwrap();
        assert!(place.has_not_received().unwrap_err().to_string().contains("forbidden words"));
    }

    #[test]
    fn a_task_is_done_when_its_file_and_its_command_are() {
        let place = Place::new("no-client-task").unwrap();
        assert!(place.has_done("task1").unwrap_err().to_string().contains("notes.txt"));
        fs::write(place.workspace().join("notes.txt"), "first line\n").unwrap();
        fs::write(place.workspace().join("log.txt"), "allowed task1\n").unwrap();
        assert!(place.has_done("task1").is_ok());
        assert!(place.has_done("task2").is_err());
        fs::write(place.workspace().join("log.txt"), "forbidden task1\nallowed task1\n").unwrap();
        assert!(place.has_done("task1").unwrap_err().to_string().contains("forbids"));
    }
}
