//! `cargo xtask`: the demo, the tests and the gate, each doing its own set-up on a fresh machine.

#![forbid(unsafe_code)]

mod bench;
mod book;
mod ci;
mod clients;
mod crates;
mod demo;
mod deps;
mod editor;
mod guests;
mod load;
mod mutants;
mod run;
mod test;
mod wasm;
mod web;

use std::io::Write as _;
use std::process::ExitCode;

use tidegate_servers::say;

const HELP: &str = "\
cargo xtask COMMAND

  demo [--live]     an agent turn with plugins, a stream rule and tools, from a recording;
                    --live talks to a small real model instead (installed when missing, about 100 MB)
  test [CRATE…] [-- FILTER…]
                    all tests, or those of some crates, plugins and web packages (cli, redact-secrets, react), whose names contain a FILTER:
                    guests and plugins built, servers installed, doc tests and plugins' own tests included
  ci                what a change must pass: format, clippy, docs, book, dependencies, wasm check, then test. With TIDEGATE_TIMES=10
                    in the environment, each random comparison takes ten times as many cases: the form for the night
  bench [NAME…]     the benches, or some of them: callback, extensions, state, rules, segments, turn, backlog,
                    start, front-ends, editors, gateway
  clients           Claude Code, codex and opencode, unmodified, behind `tidegate guard`: tasks, answers that fail, spent budgets;
                    installs them into target/clients (1.3 GB)
  load [--release] [FLAG…]
                    200 sessions with five plugins each, each with a secret that no other must show; FLAGS and their defaults:
                    --seconds 5, --sessions 200, --store memory (or disk, redis), --reload SECONDS (never), --restart N (0):
                    how often the Redis server is killed and started again
  crash [KILLS]     kills writers of state and of transcripts, the Redis server, and whole sessions at random moments (default:
                    300 times each), and checks that everything is there that was settled, acknowledged or shown
  mutants [CRATE…] [-- ARGUMENT…]
                    changes the code of rules, guard, turn and sandbox with cargo-mutants and counts what the tests notice; takes
                    hours, and is not part of ci; arguments after -- go to cargo-mutants, such as --shard 1/20
  page              the page of `tidegate serve`, into target/page, from where the program embeds it when it is built
  book              all pages as a site with a search, in target/book/site; a dead link is an error
  build-plugins     builds the plugins into components

Each command installs what it needs, and names what it cannot install. Times of steps go to standard error.
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Help,
    Demo { live: bool },
    Test { crates: Vec<String>, filters: Vec<String> },
    Ci,
    Bench { filters: Vec<String> },
    Book,
    Page,
    BuildPlugins,
    Clients,
    Load { release: bool, flags: Vec<String> },
    Crash { kills: u32 },
    Mutants { crates: Vec<String>, more: Vec<String> },
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let task = match parse(&arguments) {
        Ok(task) => task,
        Err(problem) => {
            say(&format!("error: {problem}\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    let done = match task {
        Task::Help => std::io::stdout().write_all(HELP.as_bytes()).map_err(anyhow::Error::from),
        Task::Demo { live } => demo::demo(live),
        Task::Test { crates, filters } => test::test(&crates, &filters),
        Task::Ci => ci::ci(),
        Task::Bench { filters } => bench::bench(&filters),
        Task::Book => book::book(),
        Task::Page => web::build(),
        Task::Clients => clients::clients(),
        Task::BuildPlugins => guests::build_plugins().map(drop),
        Task::Load { release, flags } => load::load(release, &flags),
        Task::Crash { kills } => load::crash(kills),
        Task::Mutants { crates, more } => mutants::mutants(&crates, &more),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("\nerror: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Task, String> {
    let Some((command, rest)) = arguments.split_first() else { return Ok(Task::Help) };
    let alone = |task: Task| match rest {
        [] => Ok(task),
        [first, ..] => Err(format!("{command} takes no {first:?}")),
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(Task::Help);
    }
    match command.as_str() {
        "--help" | "-h" | "help" => Ok(Task::Help),
        "demo" => match rest {
            [flag] if flag == "--live" => Ok(Task::Demo { live: true }),
            _ => alone(Task::Demo { live: false }),
        },
        "test" => {
            let (crates, filters) = divided(rest);
            Ok(Task::Test { crates, filters })
        }
        "bench" => Ok(Task::Bench { filters: rest.to_vec() }),
        "ci" => alone(Task::Ci),
        "book" => alone(Task::Book),
        "page" => alone(Task::Page),
        "clients" => alone(Task::Clients),
        "build-plugins" => alone(Task::BuildPlugins),
        "load" => match rest {
            [first, flags @ ..] if first == "--release" => Ok(Task::Load { release: true, flags: flags.to_vec() }),
            flags => Ok(Task::Load { release: false, flags: flags.to_vec() }),
        },
        "crash" => match rest {
            [kills] => match kills.parse() {
                Ok(kills) => Ok(Task::Crash { kills }),
                Err(error) => Err(format!("crash takes a number of kills, and not {kills:?}: {error}")),
            },
            _ => alone(Task::Crash { kills: 300 }),
        },
        "mutants" => {
            let (crates, more) = divided(rest);
            Ok(Task::Mutants { crates, more })
        }
        other => Err(format!("there is no command {other:?}")),
    }
}

/// The words before and after `--`.
fn divided(words: &[String]) -> (Vec<String>, Vec<String>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    (words[..end].to_vec(), words.iter().skip(end + 1).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::{Task, parse};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands() {
        assert_eq!(parse(&words("")), Ok(Task::Help));
        assert_eq!(parse(&words("demo --live")), Ok(Task::Demo { live: true }));
        assert_eq!(parse(&words("demo")), Ok(Task::Demo { live: false }));
        let test = |crates: &str, filters: &str| Ok(Task::Test { crates: words(crates), filters: words(filters) });
        assert_eq!(parse(&words("test")), test("", ""));
        assert_eq!(parse(&words("test cli rules -- acp:: x")), test("cli rules", "acp:: x"));
        assert_eq!(parse(&words("clients")), Ok(Task::Clients));
        assert_eq!(parse(&words("page")), Ok(Task::Page));
        assert_eq!(parse(&words("test -- acp::")), test("", "acp::"));
        assert_eq!(parse(&words("ci --help")), Ok(Task::Help));
        assert_eq!(parse(&words("ci now")), Err("ci takes no \"now\"".to_owned()));
        let mutants = |crates: &str, more: &str| Task::Mutants { crates: words(crates), more: words(more) };
        assert_eq!(parse(&words("mutants")), Ok(mutants("", "")));
        assert_eq!(parse(&words("mutants rules -- --shard 1/20")), Ok(mutants("rules", "--shard 1/20")));
        let load = |release, flags: &str| Ok(Task::Load { release, flags: words(flags) });
        assert_eq!(parse(&words("load --release --seconds 60")), load(true, "--seconds 60"));
        assert_eq!(parse(&words("load --seconds 60")), load(false, "--seconds 60"));
        assert_eq!(parse(&words("crash")), Ok(Task::Crash { kills: 300 }));
        assert_eq!(parse(&words("crash 20")), Ok(Task::Crash { kills: 20 }));
        assert!(parse(&words("crash all")).is_err_and(|wrong| wrong.contains("and not \"all\"")));
        assert_eq!(parse(&words("tset")), Err("there is no command \"tset\"".to_owned()));
    }
}
