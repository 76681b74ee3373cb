//! The flags of the program.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
tidegate-load [--sessions N] [--seconds N] [--reload SECONDS] [--store memory|disk|redis] [--restart N]
tidegate-load --program PATH [--sessions N] [--seconds N] [--active N] [--answer SECONDS] [--descriptors N]
              [--idle yes|no] [--capacity yes|no]
tidegate-load --program PATH --browsers N [--sessions N] [--seconds N] [--active N] [--answer SECONDS]

  --sessions N        sessions that run at the same time (default: 200)
  --seconds N         for how long (default: 5)
  --reload SECONDS    edit the manifest of a plugin this often (default: never)
  --store STORE       where plugins keep their state (default: memory)
  --restart N         kill the Redis server and start it again N times; only with --store redis
  --program PATH      measure this program, as an editor of `tidegate acp` with three plugins and 100 rules: every answer has 50 deltas a
                      second; printed are answers that were withheld, time-outs, lag, processor time, threads, descriptors and memory
  --active N          turns that run at the same time (default: one in each session)
  --answer SECONDS    how long an answer takes (default: 2)
  --descriptors N     the limit of open files of the program (default: that of this shell)
  --idle yes|no       wait until the sessions are idle, and measure them then (default: no)
  --capacity yes|no   find the highest number of turns at a time, of --active at most, at which 99 of 100 deltas are shown within 5 ms; each
                      number that is tried runs for --seconds (default: no)
  --browsers N        measure `tidegate serve` in place of `tidegate acp`: so many browsers, at least one for each session, read the events
                      of the sessions
";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) sessions: u32,
    pub(crate) seconds: u64,
    /// Seconds between two reloads; `None`: no plugin is reloaded.
    pub(crate) reload: Option<u64>,
    pub(crate) store: Store,
    pub(crate) restarts: u32,
    /// The program that is measured; `None`: the host in this process.
    pub(crate) program: Option<PathBuf>,
    pub(crate) active: Option<u32>,
    pub(crate) answer: u64,
    pub(crate) descriptors: Option<u32>,
    pub(crate) idle: bool,
    pub(crate) capacity: bool,
    /// Browsers of `tidegate serve`; `None`: an editor of `tidegate acp`.
    pub(crate) browsers: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    Disk,
    Redis,
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            sessions: 200,
            seconds: 5,
            reload: None,
            store: Store::Memory,
            restarts: 0,
            program: None,
            active: None,
            answer: 2,
            descriptors: None,
            idle: false,
            capacity: false,
            browsers: None,
        };
        let mut words = arguments.iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
            let number = || match value.parse::<u32>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{flag} takes a number from 1 on, and not {value:?}")),
            };
            let yes = || match value.as_str() {
                "yes" => Ok(true),
                "no" => Ok(false),
                other => Err(format!("{flag} is yes or no, and not {other:?}")),
            };
            match flag.as_str() {
                "--sessions" => plan.sessions = number()?,
                "--seconds" => plan.seconds = number()?.into(),
                "--reload" => plan.reload = Some(number()?.into()),
                "--restart" => plan.restarts = number()?,
                // The program runs in another folder.
                "--program" => {
                    plan.program = Some(std::path::absolute(value).map_err(|error| format!("--program: {error}"))?);
                }
                "--active" => plan.active = Some(number()?),
                "--answer" => plan.answer = number()?.into(),
                "--descriptors" => plan.descriptors = Some(number()?),
                "--browsers" => plan.browsers = Some(number()?),
                "--idle" => plan.idle = yes()?,
                "--capacity" => plan.capacity = yes()?,
                "--store" => {
                    plan.store = match value.as_str() {
                        "memory" => Store::Memory,
                        "disk" => Store::Disk,
                        "redis" => Store::Redis,
                        other => return Err(format!("--store is memory, disk or redis, and not {other:?}")),
                    }
                }
                other => return Err(format!("there is no flag {other:?}")),
            }
        }
        let of_program = ["--active", "--answer", "--descriptors", "--idle", "--capacity", "--browsers"];
        let of_process = ["--reload", "--restart", "--store"];
        let (wrong, needs) = match &plan.program {
            Some(_) => (&of_process[..], "is not for"),
            None => (&of_program[..], "needs"),
        };
        if let Some(flag) = arguments.iter().find(|flag| wrong.contains(&flag.as_str())) {
            return Err(format!("{flag} {needs} --program"));
        }
        let of_editor = ["--descriptors", "--idle", "--capacity"];
        if let Some(flag) = arguments.iter().find(|flag| plan.browsers.is_some() && of_editor.contains(&flag.as_str()))
        {
            return Err(format!("{flag} is not for --browsers"));
        }
        if plan.browsers.is_some_and(|browsers| browsers < plan.sessions) {
            return Err("--browsers: each session needs one".to_owned());
        }
        if plan.restarts > 0 && plan.store != Store::Redis {
            return Err("--restart needs --store redis".to_owned());
        }
        Ok(plan)
    }
}
