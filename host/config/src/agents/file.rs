//! An agent file: from its text to an agent, with everything that is wrong shown at its place.

use std::ops::Range;
use std::sync::Arc;

use flow::{Limits, Location, Spend};
use rules::Glob;

use super::{Agent, AgentLayer, MAIN};
use crate::document::{Document, Step, steps};
use crate::schema::TypedFile as _;
use crate::typed::{AgentFile, AgentLimitsFile, OneOrMany};
use crate::{Code, Diagnostic, Diagnostics, SourceFile, duration, yaml};

/// The most characters of a name, which a provider accepts among the values of an argument.
const MAX_NAME: usize = 64;

/// How front matter is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    Toml,
    Yaml,
}

/// Reads an agent file.
pub(super) fn read(source: &Arc<SourceFile>, layer: AgentLayer) -> Result<Agent, Diagnostics> {
    let (fence, front, body) = split(source)?;
    // With spaces in the place of everything else: what is found has the place that it has in the file.
    let padded = padded(source, &front);
    let tree = match fence {
        Fence::Toml => Document::tree(&padded)?,
        Fence::Yaml => yaml::read(&padded, Code::AgentFrontMatter)?,
    };
    let document = Document::of_tree::<AgentFile>(&padded, tree, AgentFile::schema());
    let (document, typed) = document.map_err(|found| at_the_start(found, source, &front, fence))?;
    let mut reader = Reader { document, source };
    let agent = reader.agent(typed, &source.text[body], layer);
    let found = reader.document.found;
    if found.is_empty() { Ok(agent) } else { Err(Diagnostics(found)) }
}

/// Whether the text begins with front matter.
pub(super) fn has_front_matter(source: &SourceFile) -> bool {
    matches!(first_line(&source.text), Some((_, "+++" | "---")))
}

/// The first line that is not blank, without white space at its end, and where it begins.
fn first_line(text: &str) -> Option<(usize, &str)> {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    lines(text, begin).find(|(_, line)| !line.is_empty())
}

/// The lines from `begin` on, without white space at their ends, each with where it begins.
fn lines(text: &str, begin: usize) -> impl Iterator<Item = (usize, &str)> {
    text[begin..].split_inclusive('\n').scan(begin, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line.trim_end()))
    })
}

/// The front matter between its two lines, and what follows.
fn split(source: &Arc<SourceFile>) -> Result<(Fence, Range<usize>, Range<usize>), Diagnostics> {
    let text = source.text.as_str();
    let broken = |message: &str, help: &str, at: Range<usize>| {
        let found = Diagnostic::error(Code::AgentFrontMatter, message).at(Location::new(source, at), "");
        Diagnostics::from(found.help(help))
    };
    let (start, fence, mark) = match first_line(text) {
        Some((start, mark @ "---")) => (start, Fence::Yaml, mark),
        Some((start, mark @ "+++")) => (start, Fence::Toml, mark),
        _ => {
            let help = "begin it with a line `---`, the keys in YAML such as `description: …`, and a line `---`";
            return Err(broken("the file has no front matter", help, 0..0));
        }
    };
    let after = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let front = after(start);
    match lines(text, front).find(|(_, line)| *line == mark) {
        Some((end, _)) => Ok((fence, front..end, after(end)..text.len())),
        None => {
            let help = format!("end it with a line `{mark}`");
            Err(broken("the front matter has no end", &help, start..start + mark.len()))
        }
    }
}

/// The file with spaces in the place of all bytes outside of `front` but line ends.
fn padded(source: &SourceFile, front: &Range<usize>) -> Arc<SourceFile> {
    let blank = |text: &str| text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>();
    let (before, after) = (&source.text[..front.start], &source.text[front.end..]);
    let text = [&blank(before), &source.text[front.clone()], &blank(after)].concat();
    SourceFile::new(&*source.path, text)
}

/// What is wrong with the front matter as a whole is shown at its first line.
fn at_the_start(mut found: Diagnostics, source: &Arc<SourceFile>, front: &Range<usize>, fence: Fence) -> Diagnostics {
    let start = first_line(&source.text).map_or(0, |(start, _)| start);
    if fence == Fence::Yaml {
        for help in found.0.iter_mut().filter_map(|one| one.help.as_mut()) {
            *help = help.replace(" = …`", ": …`");
        }
    }
    for label in found.0.iter_mut().flat_map(|one| &mut one.labels) {
        let span = &label.location.span;
        let is_whole = span.start <= front.start && (span.end >= front.end || span.is_empty());
        if is_whole {
            label.location = Location::new(source, start..start + 3);
        }
    }
    found
}

struct Reader<'a> {
    document: Document<'a>,
    source: &'a Arc<SourceFile>,
}

impl Reader<'_> {
    fn agent(&mut self, typed: AgentFile, body: &str, layer: AgentLayer) -> Agent {
        let AgentFile { name, description, tools, model, limits } = typed;
        let name = self.name(name);
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if description.is_empty() {
            let help = "write when to use the agent: the model chooses by it";
            self.document.error(
                Code::ConfigEmptyValue,
                &steps!["description"],
                "`description` must not be empty",
                help,
            );
        }
        let system = body.trim().to_owned();
        if system.is_empty() {
            let end = self.source.text.trim_end().len();
            let place = Location::new(self.source, end.saturating_sub(3)..end);
            let found = Diagnostic::error(Code::ConfigEmptyValue, "the agent has no system prompt").at(place, "");
            self.document.found.push(found.help("write after the front matter what the agent is and how it works"));
        }
        let tools = tools.map(|tools| self.tools(tools));
        let limits = self.limits(limits);
        Agent { name, description, system, tools, model, limits, layer, path: self.source.path.clone() }
    }

    /// The name of the file. A `name` in it repeats it.
    fn name(&mut self, given: Option<String>) -> String {
        let name = self.source.path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let is_valid = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed);
        let problem = if name == MAIN {
            Some("the name `main` belongs to the sessions that no agent has started".to_owned())
        } else if !is_valid || name.len() > MAX_NAME {
            Some(format!("the file's name `{}.md` is not the name of an agent", name.escape_debug()))
        } else {
            None
        };
        if let Some(message) = problem {
            let help = format!(
                "rename the file: a lowercase letter, then lowercase letters, digits, `-` and `_`, at most {MAX_NAME} in all"
            );
            let start = first_line(&self.source.text).map_or(0, |(start, _)| start);
            let place = Location::new(self.source, start..start + 3);
            self.document.found.push(Diagnostic::error(Code::AgentInvalidName, message).at(place, "").help(help));
        }
        if let Some(given) = given.filter(|given| *given != name) {
            let message =
                format!("the file's name is `{}.md`, and `name` is \"{}\"", name.escape_debug(), given.escape_debug());
            let help = "an agent has the name of its file: rename one of the two, or remove `name`";
            self.document.error(Code::AgentInvalidName, &steps!["name"], message, help);
        }
        name
    }

    fn tools(&mut self, tools: OneOrMany<String>) -> Vec<(Glob, Location)> {
        let entries: Vec<(String, Vec<Step>)> = match tools {
            OneOrMany::One(one) => vec![(one, steps!["tools"].to_vec())],
            OneOrMany::Many(many) => {
                many.into_iter().enumerate().map(|(at, one)| (one, steps!["tools", at].to_vec())).collect()
            }
        };
        let mut globs = Vec::new();
        for (text, path) in entries {
            for entry in text.split(',').map(str::trim) {
                if entry.is_empty() {
                    let help = "write names of tools; `tools: []` is an agent without any";
                    self.document.error(Code::ConfigEmptyValue, &path, "`tools` contains an empty name", help);
                    continue;
                }
                match Glob::new(entry) {
                    Ok(glob) => globs.push((glob, self.document.place(&path))),
                    Err(why) => {
                        let help = "write the name of a tool, or a glob such as `notes_*`";
                        self.document.error(Code::AgentInvalidTool, &path, why, help);
                    }
                }
            }
        }
        globs
    }

    fn limits(&mut self, typed: AgentLimitsFile) -> Limits {
        let AgentLimitsFile { steps, tokens, spend, spawns, depth, duration } = typed;
        let duration = duration.and_then(|text| {
            let parsed = duration::parse(&text).filter(|time| !time.is_zero());
            if parsed.is_none() {
                let message = format!("`duration` cannot be \"{}\"", text.escape_debug());
                let help = "write a whole number that is not 0 and a unit: `ms`, `s`, `m` or `h`, such as `10m`";
                self.document.error(Code::AgentInvalidLimit, &steps!["limits", "duration"], message, help);
            }
            parsed
        });
        let mut limits = Limits::default();
        (limits.steps, limits.tokens, limits.spend) = (steps, tokens, spend.map(Spend::of_dollars));
        (limits.spawns, limits.depth, limits.duration) = (spawns, depth, duration);
        limits
    }
}
