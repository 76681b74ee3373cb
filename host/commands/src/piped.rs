//! Commands that read what others write, where that is known: shells run it, and `xargs` adds it to a command.

use std::ops::Range;

use shuck_ast::{Redirect, RedirectKind, RedirectTarget};

use crate::listed;
use crate::output::output;
use crate::values::Values;
use crate::walk::{Simple, Walk, script};
use crate::word::{Part, Word};
use crate::work::{ITEM, of_words};
use crate::wrapper;

/// Whether a command is a shell that runs what it reads.
pub(crate) fn reads_commands(simple: &Simple) -> bool {
    let name = simple.words.first().and_then(|name| name.without_folder().exact());
    let options = simple.words.get(1..).unwrap_or_default();
    // The parser takes the number of `3<<A` for a word.
    let is_number = |word: &Word| {
        word.exact().is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_input = |word: &Word| {
        let start = word.start();
        start.starts_with('-') || start == "/dev/stdin" || start.starts_with("/dev/fd/") || start.starts_with("/proc/")
    };
    let takes_input =
        |word: &Word| word.start().starts_with('-') && !word.start().starts_with("--") && word.start().contains('s');
    name.is_some_and(|name| wrapper::is_shell(&name))
        && (options.iter().all(|word| is_input(word) || is_number(word)) || options.iter().any(takes_input))
}

/// The most texts that commands of a line get as their input, counted for each command.
const MAX_READS: usize = 1000;

/// Why a text that was cut out of the line has to be read.
const CUT: &str = "a command runs a here-document that is too long to be looked at";

impl Walk<'_> {
    /// Walks through what the commands of a statement make of the texts that they get. `first`: the first of them.
    pub(crate) fn input<'r>(
        &mut self,
        redirects: impl Iterator<Item = (&'r Redirect, &'r Option<Word>)>,
        first: usize,
    ) {
        for (redirect, target) in redirects {
            let Some(readers) = self.readers(first..self.found.simple.len()) else { return };
            let text = match (&redirect.target, target, redirect.kind) {
                (RedirectTarget::Heredoc(document), ..) if self.is_cut(document) => None,
                (RedirectTarget::Heredoc(document), ..) => self.slice(document.body.span).map(str::to_owned),
                (_, Some(word), RedirectKind::HereString) => {
                    let ways = self.found.values.fill(&[word.quoted()]).unwrap_or_default();
                    ways.iter().flatten().for_each(|way| self.reads_all(&readers, Some(&way.as_script())));
                    Some(word.as_script())
                }
                (_, Some(word), RedirectKind::Input) => {
                    let texts = self.found.values.texts(word);
                    texts.iter().for_each(|text| self.reads_all(&readers, Some(text)));
                    continue;
                }
                _ => continue,
            };
            text.iter().for_each(|text| listed::note_text(self, text, first));
            self.reads_all(&readers, text.as_deref());
            self.found.inputs.push((first, text));
        }
    }

    /// Walks through what the commands of a pipeline make of the texts that are written before them.
    pub(crate) fn piped(&mut self, stages: &[Range<usize>]) {
        let Some((first, last)) = stages.first().zip(stages.last()) else { return };
        let commands = self.found.simple.get(first.start..last.end).unwrap_or_default();
        if !self.found.work.take(ITEM * (commands.len() + self.found.inputs.len())) {
            return;
        }
        let written =
            commands.iter().enumerate().filter_map(|(at, simple)| Some((first.start + at, Some(output(simple)?))));
        let inputs = self.found.inputs.iter().filter(|(at, _)| (first.start..last.end).contains(at)).cloned();
        let mut texts: Vec<(usize, Option<String>)> = written.chain(inputs).collect();
        if texts.is_empty() {
            return;
        }
        let copied = texts.iter().flat_map(|(_, text)| text).map(|text| ITEM + text.len()).sum();
        if !self.found.work.take(copied) {
            return;
        }
        texts.sort_by_key(|(at, _)| *at);
        for stage in stages.iter().skip(1) {
            let Some(readers) = self.readers(stage.clone()) else { return };
            if !readers.is_empty() && self.found.reads <= MAX_READS {
                let before = texts.iter().take_while(|(at, _)| *at < stage.start);
                before.for_each(|(_, text)| self.reads_all(&readers, text.as_deref()));
            }
        }
    }

    /// Those of these commands that make something of what they read. `None`: there is too much to do.
    fn readers(&self, commands: Range<usize>) -> Option<Vec<Simple>> {
        let commands = self.found.simple.get(commands).unwrap_or_default();
        let is_reader = |simple: &&Simple| {
            // What a command is is looked up in a list.
            let is_looked_at = self.found.work.take(8 * ITEM + of_words(&simple.words));
            is_looked_at && (reads_commands(simple) || self.is_added_to(simple) || is_read(simple))
        };
        let readers = commands.iter().filter(is_reader).cloned().collect();
        (!self.found.work.is_spent()).then_some(readers)
    }

    fn reads_all(&mut self, readers: &[Simple], text: Option<&str>) {
        for reader in readers {
            if self.found.reads > MAX_READS || !self.found.work.take(8 * ITEM + text.unwrap_or_default().len()) {
                return;
            }
            self.found.reads += 1;
            if self.found.reads > MAX_READS {
                return self.unread(format!("its commands read more than {MAX_READS} texts"));
            }
            match text {
                Some(text) => self.reads(reader, text),
                None if is_read(reader) => {}
                None => self.unread(CUT),
            }
        }
    }

    fn reads(&mut self, reader: &Simple, text: &str) {
        if reads_commands(reader) {
            return script(text, self.dialect, self.depth + 1, self.found);
        }
        if is_read(reader) {
            return self.read_lines(reader, text);
        }
        let mut values = Values::new(self.found.work.clone());
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        for part in reader.words.iter().flat_map(|word| &word.parts) {
            if let Part::Unknown(place) = part
                && !place.starts_with(['$', '`', '<', '>'])
            {
                values.assign(place, Some(words.clone()));
            }
        }
        values.fill(&reader.words).into_iter().flatten().for_each(|words| self.add_way(&words));
    }

    /// The variables of `read` get the words of a line, the last one what is left; the array of `mapfile` gets all lines.
    fn read_lines(&mut self, reader: &Simple, text: &str) {
        let words = reader.words.iter().skip(1).filter_map(Word::exact).filter(|word| !word.starts_with('-'));
        let names: Vec<String> = words.collect();
        let is_array = reader.words.first().and_then(Word::exact).is_some_and(|name| name != "read");
        let values = &mut self.found.values;
        if let Some(name) = names.last().filter(|_| is_array) {
            values.assign(name, Some(text.lines().map(str::to_owned).collect()));
            return;
        }
        for line in text.lines() {
            let words = line.trim().splitn(names.len().max(1), char::is_whitespace);
            names.iter().zip(words).for_each(|(name, word)| values.assign(name, Some(vec![word.to_owned()])));
        }
    }

    /// Whether `xargs` or the like adds to a command what it reads.
    fn is_added_to(&self, simple: &Simple) -> bool {
        let root = simple.within.and_then(|(root, _)| self.found.simple.get(root));
        root.and_then(|root| root.words.first()?.without_folder().exact())
            .is_some_and(|name| wrapper::adds_input(&name))
    }
}

fn is_read(simple: &Simple) -> bool {
    let name = simple.words.first().and_then(Word::exact);
    name.is_some_and(|name| matches!(name.as_str(), "read" | "mapfile" | "readarray"))
}
