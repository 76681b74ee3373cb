//! The words a guest is told what to do with. A script is the lines of a text that begin with `!`; the first word of a
//! line says what, the rest is its argument. Lines run in order until one answers, fails or does not return.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::time::Duration;

use tidegate_sdk::Keep;
use tidegate_sdk::prelude::*;

use super::damage;

/// What a script leads to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The kind of answer: `pass` where the script names none.
    pub answer: String,
    /// The answer's text.
    pub text: String,
    /// What powers gave, a line each: the answer where the script names none.
    pub said: Option<String>,
    /// Notes about an output.
    pub annotations: Vec<(String, String)>,
}

impl Outcome {
    /// The text for a replacement of `original`.
    pub fn over(&self, original: &str) -> String {
        if matches!(self.answer.as_str(), "append" | "mark") {
            format!("{original}{}", self.text)
        } else {
            self.text.clone()
        }
    }

    fn say(&mut self, line: impl Display) {
        match &mut self.said {
            Some(said) => said.push_str(&format!("\n{line}")),
            said => *said = Some(line.to_string()),
        }
    }

    fn tell<T: Debug, E: Display>(&mut self, result: Result<T, E>) {
        match result {
            Ok(value) => self.say(format_args!("{value:?}")),
            Err(error) => self.say(format_args!("refused: {error}")),
        }
    }
}

/// Runs a script. `subject` is what the callback got, `calls` how many calls this instance has had.
pub fn run(script: &str, subject: &str, calls: u32) -> Result<Outcome> {
    let mut outcome = Outcome { answer: "pass".into(), ..Outcome::default() };
    for line in script.lines() {
        let Some(line) = line.strip_prefix('!') else { continue };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "error" => bail!("{rest}"),
            "panic" => panic!("{rest}"),
            "abort" => std::process::abort(),
            "loop" => damage::spin(),
            "recurse" => outcome.say(damage::recurse(0)),
            "memory" if rest == "all" => damage::take_all(),
            "memory" => outcome.say(damage::take(number(rest)?).len()),
            "work" => damage::work(number(rest)? as u64),
            "count" => outcome.say(calls),
            "subject" => outcome.say(subject),
            "log" => log::info(rest),
            "log-flood" => (0..number(rest)?).for_each(|line| log::info(format_args!("line {line}"))),
            "log-long" => log::info("x".repeat(number(rest)? << 10)),
            "emit" => {
                let mut words = rest.splitn(3, ' ');
                let mut next = || words.next().unwrap_or_default();
                outcome.tell(events::emit(next(), &BTreeMap::from([(next(), next())])));
            }
            "emit-text" => outcome.tell(events::emit("seen", rest)),
            "emit-long" => {
                let long = BTreeMap::from([("what", "x".repeat(number(rest)? << 10))]);
                outcome.tell(events::emit("seen", &long));
            }
            "emit-many" => {
                let mut numbers = 0..number(rest)?;
                outcome
                    .tell(numbers.try_for_each(|n| events::emit("seen", &BTreeMap::from([("what", n.to_string())]))));
            }
            "progress" => progress(rest),
            "percent" => {
                let (percent, line) = rest.split_once(' ').unwrap_or((rest, ""));
                progress_at(percent.parse()?, line);
            }
            "progress-flood" => (0..number(rest)?).for_each(|line| progress(format_args!("line {line}"))),
            "progress-long" => progress("x".repeat(number(rest)? << 10)),
            "annotate" => annotate(&mut outcome, rest),
            "annotate-many" => {
                outcome.annotations = (0..number(rest)?).map(|n| (format!("note-{n}"), n.to_string())).collect();
            }
            "session" => outcome.say(format_args!("{:?}", session::info())),
            "history" => {
                let (from, count) = rest.split_once(' ').unwrap_or((rest, "256"));
                outcome.say(format_args!("{:?}", history::messages(number(from)? as u32, number(count)? as u32)));
            }
            "history-length" => outcome.say(history::length()),
            "clock" => outcome.say(clock::now_ms()),
            "random" => {
                let mut bytes = vec![0; number(rest)?];
                random::fill(&mut bytes);
                outcome.say(format_args!("{bytes:?}"));
            }
            "tools" => outcome.say(format_args!("{:?}", tools::list())),
            "setting" => outcome.say(format_args!("{:?}", settings::all().into_iter().find(|(key, _)| key == rest))),
            "settings" => outcome.say(format_args!("{:?}", settings::all())),
            word if word.starts_with("state-") => state_word(&mut outcome, &word["state-".len()..], rest)?,
            "size" => {
                outcome.answer = "replace".into();
                outcome.text = "x".repeat(number(rest)? << 10);
                break;
            }
            "pass" | "echo" | "drop" | "replace" | "append" | "finish" | "reply" | "reject" | "content"
            | "arguments" | "hide" => {
                outcome.answer = word.into();
                outcome.text = rest.into();
                break;
            }
            other => bail!("`{other}` is no word of the conformance guest; its README.md has them"),
        }
    }
    Ok(outcome)
}

/// `annotate KEY JSON`: as given, also where it is no JSON.
fn annotate(outcome: &mut Outcome, rest: &str) {
    let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
    outcome.annotations.push((key.into(), value.into()));
}

fn state_word(outcome: &mut Outcome, word: &str, rest: &str) -> Result<()> {
    let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        "set" => outcome.tell(state::set(key, value)),
        "set-ttl" => {
            let (millis, value) = value.split_once(' ').unwrap_or((value, ""));
            outcome.tell(state::set_with(key, value, Keep::For(Duration::from_millis(number(millis)? as u64))));
        }
        "set-session" => outcome.tell(state::set_with(key, value, Keep::Session)),
        "add" => {
            let add = number(value)? as u64;
            outcome.tell(state::update(key, |old: Option<u64>| old.unwrap_or_default() + add));
        }
        "fill" => outcome.tell(state::set_bytes(key, &vec![b'x'; number(value)? << 10])),
        "get" => outcome.tell(state::get::<String>(key)),
        "get-number" => outcome.tell(state::get::<u64>(key)),
        "size" => outcome.tell(state::get_bytes(key).map(|value| value.map(|value| value.len()))),
        "delete" => outcome.tell(state::delete(key)),
        "clear" => outcome.tell(state::clear()),
        "keys" => outcome.tell(state::keys(key)),
        "append" => {
            outcome.tell(state::set(key, &format!("{}{value}", state::get::<String>(key)?.unwrap_or_default())));
        }
        "must-set" => state::set(key, value)?,
        other => bail!("`state-{other}` is no word of the conformance guest; its README.md has them"),
    }
    Ok(())
}

fn number(text: &str) -> Result<usize> {
    Ok(text.trim().parse()?)
}
