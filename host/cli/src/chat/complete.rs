//! Completes the word at the cursor: a command, its argument, or a file after `@`.

use std::sync::Arc;

use tidegate::chat::AttachmentError;

use super::app::{Act, App};
use super::images;
use super::list::{Item, List};
use super::offers::{Found, commands};
use crate::screen;
use crate::screen::keys::Key;
use crate::style::{self, err};

/// What can be completed.
#[derive(Debug, PartialEq, Eq)]
enum Kind<'t> {
    Command,
    /// An argument of a command, after others.
    Argument(&'t str, Vec<&'t str>),
    File,
}

/// The word at the cursor.
#[derive(Debug, PartialEq, Eq)]
struct Word<'t> {
    kind: Kind<'t>,
    /// The byte where it begins.
    start: usize,
    typed: &'t str,
}

/// The word that ends a text; `None`: it is part of a message.
fn word(text: &str) -> Option<Word<'_>> {
    let is_open = |one: &images::Mention<'_>| one.range.end == text.len() && one.is_open();
    if let Some(last) = images::mentions(text).pop().filter(|last| is_open(last) || last.path.is_empty()) {
        return Some(Word { kind: Kind::File, start: last.range.start, typed: last.path });
    }
    if !text.starts_with('/') || text.contains('\n') {
        return None;
    }
    let Some((name, rest)) = text[1..].split_once(' ') else {
        return Some(Word { kind: Kind::Command, start: 0, typed: text });
    };
    let typed = rest.rsplit(' ').next().unwrap_or(rest);
    let start = text.len() - typed.len();
    let before = rest[..rest.len() - typed.len()].split_whitespace().collect();
    Some(Word { kind: Kind::Argument(name, before), start, typed })
}

/// How a list came about, and so what `Enter` does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trigger {
    /// Something is typed that can be completed: `Enter` sends what is typed.
    Offered,
    /// An arrow key has gone to an item, which `Enter` takes.
    Moved,
    /// A command asks for its argument: what is typed after it only searches these items.
    Asked(Arc<[Item]>),
}

/// The list that is open.
#[derive(Debug)]
pub(super) struct Completion {
    list: List,
    /// Where what an item replaces begins.
    start: usize,
    is_file: bool,
    trigger: Trigger,
    /// What else is to be known about the list.
    note: Option<&'static str>,
}

impl App {
    /// Has an argument of a command chosen from a list.
    pub(super) fn choose(&mut self, command: &str, items: Vec<Item>) {
        self.input.set(format!("/{command} "));
        let items: Arc<[Item]> = items.into();
        let list = List::of(&items, "", false);
        let start = self.input.text().len();
        self.completion = Some(Completion { list, start, is_file: false, trigger: Trigger::Asked(items), note: None });
    }

    /// Takes what was looked for.
    pub(super) fn offered(&mut self, found: Found) {
        if let Found::Images { paths, present } = found {
            if paths == self.named {
                self.images = present;
            }
            return;
        }
        self.offers.take(found);
        if self.completion.as_ref().is_some_and(|one| one.trigger == Trigger::Offered) {
            self.offer(false);
        }
    }

    /// Takes a key for the list that is open. `None`: it is not for the list.
    pub(super) fn list_key(&mut self, key: &Key) -> Option<Act> {
        let completion = self.completion.as_mut()?;
        let is_asked = matches!(completion.trigger, Trigger::Asked(_));
        match key {
            Key::Esc => self.close(is_asked),
            Key::Up | Key::Down | Key::Ctrl('p' | 'n') if !completion.list.is_empty() => {
                let forward = matches!(key, Key::Down | Key::Ctrl('n'));
                let is_first = completion.trigger == Trigger::Offered;
                if is_first {
                    completion.trigger = Trigger::Moved;
                }
                // The first arrow down marks the item that is first already.
                if !(is_first && forward) {
                    completion.list.go(forward);
                }
            }
            Key::Tab => _ = self.take_chosen(),
            Key::Enter if completion.trigger != Trigger::Offered => {
                let is_whole = self.take_chosen()?;
                if is_asked || is_whole {
                    return Some(self.enter());
                }
            }
            _ => return None,
        }
        Some(Act::Stay)
    }

    /// The input has another text than what was typed: nothing of the list counts any more.
    pub(super) fn replaced(&mut self) {
        (self.completion, self.dismissed) = (None, None);
        self.changed();
    }

    /// Closes the list. `clear`: with the command that it belongs to.
    fn close(&mut self, clear: bool) {
        self.dismissed = self.completion.take().map(|one| one.start);
        if clear {
            self.input.take();
        }
    }

    /// Writes the chosen item in the place of what was typed. Returns whether that is a command without arguments; `None`: there is no item.
    fn take_chosen(&mut self) -> Option<bool> {
        // A list that is looked for stays.
        let item = self.completion.as_ref()?.list.chosen()?.clone();
        let completion = self.completion.take()?;
        let is_command = completion.start == 0 && !completion.is_file;
        let has_arguments = is_command && super::slash::has_arguments(item.value.trim_start_matches('/'));
        let with = match (completion.is_file, has_arguments) {
            // Only files whose names can be written are listed.
            (true, _) => format!("{} ", images::mention(&item.value).unwrap_or_default()),
            (false, true) => format!("{} ", item.value),
            (false, false) => item.value,
        };
        self.input.complete(completion.start, &with);
        self.changed();
        if has_arguments {
            self.offer(true);
        }
        Some(is_command && !has_arguments)
    }

    /// The input took a key: what is written can be completed otherwise now.
    pub(super) fn wrote(&mut self, key: &Key) {
        self.changed();
        let asked = match &self.completion {
            Some(Completion { trigger: Trigger::Asked(items), start, .. }) => Some((items.clone(), *start)),
            _ => None,
        };
        match (key, asked) {
            (_, Some((items, start))) if let Some(typed) = self.input.text().get(start..) => {
                let list = List::of(&items, typed.trim(), false);
                let trigger = Trigger::Asked(items);
                self.completion = Some(Completion { list, start, is_file: false, trigger, note: None });
            }
            (Key::Char(_) | Key::Backspace | Key::Paste(_) | Key::Ctrl('w'), _) => {
                self.offer(self.completion.is_none());
            }
            _ => self.completion = None,
        }
    }

    /// Opens the list for the word at the cursor, or closes it. `is_new`: what it has is looked for again.
    fn offer(&mut self, is_new: bool) {
        self.completion = None;
        // What is written for a question is no command, and names no file.
        let is_for_question = self.asking.as_ref().is_some_and(super::asking::Asking::has_input);
        let before = self.input.before_cursor().unwrap_or_default().to_owned();
        let Some(Word { kind, start, typed }) = word(&before).filter(|_| !is_for_question) else {
            self.dismissed = None;
            return;
        };
        if self.dismissed.is_some_and(|dismissed| dismissed == start) {
            return;
        }
        self.dismissed = None;
        let state = self.chat.snapshot();
        let (items, is_cut) = match &kind {
            Kind::Command => (Some(commands()), false),
            Kind::File => self.offers.files(is_new),
            Kind::Argument(name, words) => {
                (self.offers.arguments((name, words), (&self.session, &state), is_new), false)
            }
        };
        let is_file = kind == Kind::File;
        let note = match (&items, is_cut) {
            (None, _) => Some("looking …"),
            (Some(_), true) => Some("the workspace has more files than are listed"),
            (Some(_), false) => None,
        };
        let list = List::of(items.as_deref().unwrap_or_default(), typed, is_file);
        let is_done = matches!(list.items.as_slice(), [only] if only.value == typed);
        if !is_done && (note.is_some() || !list.is_empty()) {
            self.completion = Some(Completion { list, start, is_file, trigger: Trigger::Offered, note });
        }
    }

    /// Handles a change of the input, which can name other images. Whether they exist is checked in the background.
    fn changed(&mut self) {
        let named = images::paths(self.input.text());
        if named == self.named {
            return;
        }
        self.images.retain(|(path, _)| named.contains(path));
        if !named.is_empty() {
            self.offers.look_for_images(named.clone());
        }
        self.named = named;
    }

    /// The list, and the images that go with the input, at most so many rows.
    pub(super) fn list_rows(&self, columns: usize, most: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if let Some(Completion { list, trigger, note, .. }) = &self.completion {
            let keys = match trigger {
                Trigger::Offered => "Tab: complete  ↑↓: choose  Esc: close",
                Trigger::Moved => "Enter: take it  ↑↓: choose  Esc: close",
                Trigger::Asked(_) if list.is_empty() => "nothing matches  Esc: back",
                Trigger::Asked(_) => "Enter: take it  ↑↓: choose  Esc: back",
            };
            let others = 1 + usize::from(note.is_some());
            rows = list.rows(columns, most.saturating_sub(others), *trigger != Trigger::Offered);
            let (shown, all) = (rows.len(), list.all);
            let count = if all > shown { format!("  {shown} of {all}") } else { String::new() };
            rows.extend(note.map(|note| err(style::DIM, &format!("  {note}"))));
            rows.push(err(style::DIM, &format!("  {keys}{count}")));
        }
        rows.extend(self.images.iter().map(|(path, bytes)| {
            err(
                style::DIM,
                &format!("  image: {} ({bytes} bytes)", crate::print::shorten(path, columns.saturating_sub(30).max(8))),
            )
        }));
        rows.truncate(most);
        rows
    }

    /// A paste that is the path of an image names it.
    pub(super) fn pasted(&self, key: &Key) -> Option<Key> {
        let Key::Paste(text) = key else { return None };
        let named = images::pasted(text, self.offers.workspace())?;
        Some(Key::Paste(format!("{named} ")))
    }

    /// Attaches the images that the input names; `false`: one of them cannot be, and the user was told why.
    pub(super) fn attach_images(&mut self) -> bool {
        let attached = self.try_attach();
        if let Err(why) = &attached {
            while self.chat.detach(0).is_yes() {}
            screen::note(format!("{} {why}", err(style::WARNING, "!")));
        }
        attached.is_ok()
    }

    fn try_attach(&mut self) -> Result<(), String> {
        let named = images::named(self.input.text(), self.offers.workspace());
        for (path, _) in named {
            let image = images::read(&path, self.offers.workspace())?;
            self.chat.attach(image).map_err(|error: AttachmentError| error.to_string())?;
        }
        Ok(())
    }

    /// Whether the input names an image.
    pub(super) fn has_images(&self) -> bool {
        !images::named(self.input.text(), self.offers.workspace()).is_empty()
    }

    /// Rows for the list, so that it does not move an open question off the screen.
    pub(super) fn list_height(&self, height: usize, others: usize) -> usize {
        let question = self.asking.as_ref().map_or(0, |asking| asking.printed() + screen::live::rows_since());
        height.saturating_sub(others + question + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_found() {
        let argument = |name, before: &[&'static str]| Kind::Argument(name, before.to_vec());
        let cases = [
            ("", None),
            ("hello", None),
            ("/", Some((Kind::Command, 0, "/"))),
            ("/mo", Some((Kind::Command, 0, "/mo"))),
            ("/model ", Some((argument("model", &[]), 7, ""))),
            ("/plugins on no", Some((argument("plugins", &["on"]), 12, "no"))),
            (" /mo", None),
            ("/a\n/b", None),
            ("see @", Some((Kind::File, 4, ""))),
            ("see @src/m", Some((Kind::File, 4, "src/m"))),
            ("see @\"two w", Some((Kind::File, 4, "two w"))),
            ("see @\"two w\"", None),
            ("see @a ", None),
            ("me@example", None),
            ("/export @a", Some((Kind::File, 8, "a"))),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(kind, start, typed)| Word { kind, start, typed });
            assert_eq!(word(text), expected, "{text:?}");
        }
    }
}
