//! The flags of the program.

pub(crate) const HELP: &str = "\
tidegate-load [--sessions N] [--seconds N] [--reload SECONDS] [--store memory|disk|redis] [--restart N]

  --sessions N        sessions that run at the same time (default: 200)
  --seconds N         for how long (default: 5)
  --reload SECONDS    edit the manifest of a plugin this often (default: never)
  --store STORE       where plugins keep their state (default: memory)
  --restart N         kill the Redis server and start it again N times; only with --store redis
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    Disk,
    Redis,
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut plan = Self { sessions: 200, seconds: 5, reload: None, store: Store::Memory, restarts: 0 };
        let mut words = arguments.iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
            let number = || match value.parse::<u32>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{flag} takes a number from 1 on, and not {value:?}")),
            };
            match flag.as_str() {
                "--sessions" => plan.sessions = number()?,
                "--seconds" => plan.seconds = number()?.into(),
                "--reload" => plan.reload = Some(number()?.into()),
                "--restart" => plan.restarts = number()?,
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
        if plan.restarts > 0 && plan.store != Store::Redis {
            return Err("--restart needs --store redis".to_owned());
        }
        Ok(plan)
    }
}
