//! Takes the sections with examples out of the body of a rule file, and finds what was probably meant as one: its author would take it
//! for a test, and the model would read it.

use flow::text::differs_by_one_letter;
use flow::{DiagnosticCode as Code, Severity};

use crate::RuleSpec;
use crate::example::{Example, FENCE_HELP};
use crate::rule::Reader;

/// A body without its examples.
#[derive(Debug, Default)]
struct Sections<'b> {
    body: String,
    /// Each with the line of its fence.
    examples: Vec<(&'b str, Example)>,
    strays: Vec<Stray<'b>>,
}

/// A line that begins examples which are none, or nothing.
#[derive(Debug, PartialEq, Eq)]
struct Stray<'b> {
    /// The line, without white space around it.
    line: &'b str,
    message: String,
}

/// The heading of what is being read.
#[derive(Debug, Default)]
struct Heading<'b> {
    line: &'b str,
    kind: Kind,
    /// The level of the section with examples that it begins, or that it ended although it is deeper; 0: none.
    section: usize,
    /// A block of code was found under it.
    has_block: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Examples that fire, or that do not.
    Examples { fires: bool },
    /// Nearly the heading of a section with examples, which was probably meant.
    Near { fires: bool },
    #[default]
    Other,
}

/// A fence that opens a block of code.
struct Fence<'b> {
    sign: char,
    length: usize,
    info: &'b str,
}

impl<'b> Fence<'b> {
    fn open(line: &'b str) -> Option<Self> {
        let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(sign);
        let length = line.len() - info.len();
        (length >= 3 && !(sign == '`' && info.contains('`'))).then(|| Self { sign, length, info: info.trim() })
    }

    /// A fence ends with at least as many signs as it begins with, so a longer one may contain shorter ones.
    fn is_closed_by(&self, line: &str) -> bool {
        line.len() >= self.length && line.chars().all(|c| c == self.sign)
    }

    /// 0: of backticks, 1: of tildes.
    fn kind(&self) -> usize {
        usize::from(self.sign == '~')
    }

    /// Whether it names a stream as the fence of an example does.
    fn names_a_stream(&self) -> bool {
        self.info.starts_with("tool:") || self.info == "thinking"
    }
}

/// Reads a body. A fence in a section with examples that never ends reaches to the body's end; elsewhere it is text.
fn split(body: &str) -> Sections<'_> {
    let lines: Vec<&str> = body.trim().split_inclusive('\n').collect();
    let longest = longest_closing(&lines);
    let (mut out, mut heading, mut at) = (Sections::default(), Heading::default(), 0);
    while at < lines.len() {
        let plain = lines[at].trim();
        let fence = Fence::open(plain);
        let end = fence.as_ref().filter(|fence| longest[at + 1][fence.kind()] >= fence.length).and_then(|fence| {
            lines[at + 1..].iter().position(|line| fence.is_closed_by(line.trim())).map(|end| at + 1 + end)
        });
        match (fence, heading.kind, end) {
            (Some(fence), Kind::Examples { fires }, end) => {
                let end = end.unwrap_or(lines.len());
                let (stream, text) = (fence.info.to_owned(), lines[at + 1..end].concat());
                out.examples.push((plain, Example { fires, stream, text, fence: None }));
                heading.has_block = true;
                at = end;
            }
            (Some(fence), _, Some(end)) => {
                out.strays.extend(heading.stray(&fence, plain));
                heading.has_block = true;
                out.body.push_str(&lines[at..=end].concat());
                at = end;
            }
            _ => {
                if let Some(next) = Heading::read(plain, lines.get(at + 1).copied(), &heading) {
                    out.strays.extend(heading.without_examples());
                    heading = next;
                }
                let is_kept = !matches!(heading.kind, Kind::Examples { .. });
                out.body.push_str(if is_kept { lines[at] } else { "" });
            }
        }
        at += 1;
    }
    out.strays.extend(heading.without_examples());
    out.body = out.body.trim().to_owned();
    out
}

/// The longest fences that close a block on each line or below it, of backticks and of tildes. A search for the end of a block that has
/// none would read the rest of the body for each fence.
fn longest_closing(lines: &[&str]) -> Vec<[usize; 2]> {
    let mut longest = vec![[0; 2]; lines.len() + 1];
    for (at, line) in lines.iter().enumerate().rev() {
        longest[at] = longest[at + 1];
        if let Some(fence) = Fence::open(line.trim()).filter(|fence| fence.info.is_empty()) {
            let own = &mut longest[at][fence.kind()];
            *own = fence.length.max(*own);
        }
    }
    longest
}

impl Reader<'_> {
    /// The body without its examples, and these. Reports what is wrong with them, and in a rule that has a condition what was probably
    /// meant as examples and is none.
    pub(crate) fn sections(&mut self, spec: &RuleSpec, is_watched: bool) -> (String, Vec<Example>) {
        let written = spec.body.as_deref().unwrap_or_default();
        let Sections { body, examples, strays } = split(written);
        let start = self.places.body(written);
        let place = |line: &str| Some(start? + part(written, line)).map(|at| at..at + line.len());
        let examples = examples.into_iter().map(|(line, one)| Example { fence: place(line), ..one });
        let examples: Vec<Example> = examples.collect();
        let strays = strays.into_iter().filter(|_| is_watched);
        let mut wrong: Vec<_> = strays.map(|stray| (place(stray.line), stray.message, STRAY_HELP)).collect();
        wrong.extend(examples.iter().filter_map(|one| Some((one.fence.clone(), one.trouble()?, FENCE_HELP))));
        for (place, message, help) in wrong {
            self.report(Severity::Warning, Code::RuleInvalidExample, message, Some(help.into()), place);
        }
        (body, examples)
    }
}

/// What to write in the place of a stray.
const STRAY_HELP: &str = "write a heading `## Fires` or `## Does not fire`, and below it blocks of code whose fences name the stream, such as \
                          `text` or `tool:shell command`";

/// The byte of `text` at which a part of it begins.
fn part(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

impl<'b> Heading<'b> {
    /// A line that is a heading, or looks as if it were one of examples. `next` is the line below it.
    fn read(line: &'b str, next: Option<&str>, before: &Self) -> Option<Self> {
        let level = line.len() - line.trim_start_matches('#').len();
        let is_underlined =
            || next.map(str::trim).is_some_and(|next| next.len() > 2 && next.trim_matches(['=', '-']).is_empty());
        let words = words(line);
        let kind = match (level, meant(&words)) {
            (1.., Some((fires, true))) if line.trim_matches('#').trim().eq_ignore_ascii_case(&words) => {
                Kind::Examples { fires }
            }
            (1.., Some((fires, _))) => Kind::Near { fires },
            (1.., None) => Kind::Other,
            // `**Fires**`, `Fires:`, or `Fires` above a line of signs.
            (0, Some((fires, true))) if line.contains(['*', ':', '_', '<']) || is_underlined() => Kind::Near { fires },
            _ => return None,
        };
        let section = match kind {
            Kind::Examples { .. } => level,
            _ if level > before.section => before.section,
            _ => 0,
        };
        Some(Self { line, kind, section, has_block: false })
    }

    /// What is wrong with a block of code under it that is no example.
    fn stray(&mut self, fence: &Fence<'_>, line: &'b str) -> Option<Stray<'b>> {
        let name = |fires| if fires { "Fires" } else { "Does not fire" };
        let told = "its blocks are sent to the model and not tested";
        let is_example = fence.info.is_empty() || fence.info == "text" || fence.names_a_stream();
        let (line, message) = match self.kind {
            Kind::Near { fires } if is_example && !self.has_block => {
                let wanted = name(fires);
                (self.line, format!("this heading does not start an example section (expected `## {wanted}`): {told}"))
            }
            Kind::Other if self.section > 0 && is_example && !self.has_block => {
                (self.line, format!("this heading ends the example section above it: {told}"))
            }
            Kind::Other if fence.names_a_stream() && self.section == 0 => {
                (line, "this block is in no example section: it is sent to the model and not tested".to_owned())
            }
            _ => return None,
        };
        Some(Stray { line, message })
    }

    /// A section with examples that has none: its text is in no block of code.
    fn without_examples(&self) -> Option<Stray<'b>> {
        let is_empty = matches!(self.kind, Kind::Examples { .. }) && !self.has_block;
        let message = "this example section has no fenced block: its text is neither tested nor sent".to_owned();
        is_empty.then_some(Stray { line: self.line, message })
    }
}

/// The words of a heading, in lower case.
fn words(line: &str) -> String {
    let line = ["<h1>", "<h2>", "<h3>", "<b>"].iter().find_map(|tag| line.strip_prefix(tag)).unwrap_or(line);
    let line = line.split("</").next().unwrap_or_default();
    let plain = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_' | ':' | '.' | '`'));
    plain.to_lowercase().replace('’', "'")
}

/// Whether a heading is that of examples (`true`), or nearly so, and which of the two it means.
fn meant(words: &str) -> Option<(bool, bool)> {
    let is_near = |wanted: &str| differs_by_one_letter(words, wanted);
    match words {
        "fires" => Some((true, true)),
        "does not fire" => Some((false, true)),
        _ if FIRES.contains(&words) || is_near("fires") => Some((true, false)),
        _ if QUIET.contains(&words) || is_near("does not fire") => Some((false, false)),
        _ => None,
    }
}

/// Headings that mean `Fires`.
const FIRES: [&str; 15] = [
    "fire",
    "fires on",
    "fires when",
    "fires for",
    "does fire",
    "should fire",
    "must fire",
    "it fires",
    "will fire",
    "triggers",
    "triggers on",
    "should trigger",
    "matches",
    "should match",
    "fails",
];

/// Headings that mean `Does not fire`.
const QUIET: [&str; 22] = [
    "passes",
    "pass",
    "should pass",
    "does not fire on",
    "does not fire for",
    "do not fire",
    "doesn't fire",
    "doesnt fire",
    "don't fire",
    "not fires",
    "no fire",
    "never fires",
    "should not fire",
    "shouldn't fire",
    "must not fire",
    "will not fire",
    "does not trigger",
    "doesn't trigger",
    "should not trigger",
    "does not match",
    "doesn't match",
    "should not match",
];

#[cfg(test)]
mod tests {
    use super::split;

    fn streams_and_texts(body: &str) -> Vec<(String, String)> {
        split(body).examples.into_iter().map(|(_, example)| (example.stream, example.text)).collect()
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        let body = "Why.\n## Fires\n````text\n```sh\n# Fires\n```\n````\n## Instead\nDo.\n";
        assert_eq!(streams_and_texts(body), [("text".to_owned(), "```sh\n# Fires\n```\n".to_owned())]);
        assert_eq!(split(body).body, "Why.\n## Instead\nDo.");
    }

    #[test]
    fn a_fence_that_never_ends_is_an_example_too() {
        let body = "Why.\n## Does not fire\n```text\na\n";
        assert_eq!(streams_and_texts(body), [("text".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn a_block_in_the_body_is_text() {
        let body = "Why.\n```sh\n# Fires\necho\n```\n~~~\n## Fires\n~~~\n## Fires ##\n~~~text\na\n```\n~~~\n";
        assert_eq!(streams_and_texts(body), [("text".to_owned(), "a\n```\n".to_owned())]);
        assert_eq!(split(body).body, "Why.\n```sh\n# Fires\necho\n```\n~~~\n## Fires\n~~~");
        assert_eq!(split(body).strays, []);
    }

    #[test]
    fn what_was_probably_meant_as_examples_is_found() {
        let block = "```text\na\n```\n";
        for heading in [
            "## Passes",
            "## Fire",
            "# Fires on",
            "## Fires:",
            "## Doesn't fire",
            "## Does not fires",
            "**Fires**",
            "Fires:",
            "Fires\n-----",
            "<h2>Does not fire</h2>",
            "## **Fires**",
            "## Feuert\n## Fries",
        ] {
            let body = format!("Why.\n{heading}\n{block}");
            let strays = split(&body).strays;
            assert_eq!(strays.len(), 1, "{heading}: {strays:?}");
        }
        for fine in
            ["## Fires", "#### DOES NOT FIRE", "## Good", "## Examples", "## Instead", "## Fires ##", "It fires."]
        {
            let body = format!("Why.\n{fine}\n{block}");
            assert_eq!(split(&body).strays, [], "{fine}");
        }
        // A word of a program under such a heading is for the model.
        assert_eq!(split("Why.\n## Matches\n```rust\nmatch a {}\n```\n").strays, []);
        let strays = |body: &str| split(body).strays.into_iter().map(|stray| stray.line.to_owned()).collect::<Vec<_>>();
        let under =
            "Why.\n## Fires\n### A push\n```text\na\n```\n### Another\n```text\nb\n```\n## Instead\n```text\nc\n```\n";
        assert_eq!(strays(under), ["## Fires", "### A push", "### Another"]);
        assert_eq!(strays("Why.\n## Instead\n```tool:shell command\nls\n```\n"), ["```tool:shell command"]);
        assert_eq!(strays("Why.\n## Fires\nfoo bar\n"), ["## Fires"]);
    }
}
