//! The keys of a chat: what each does, in the words of `/help` and of the page `host/CHAT.md`, which a test compares.

use crate::screen::keys::Key;

/// What a key does that is not about the text of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Send,
    Queue,
    Interrupt,
    Cancel,
    End,
    Redraw,
    /// Prints reasoning, or only how long it is.
    Reasoning,
    /// Shows the model's text as it is, or rendered.
    Raw,
    Stop,
}

/// A row of the table of keys.
#[derive(Debug)]
pub(super) struct Binding {
    /// The keys, in Markdown.
    pub(super) keys: &'static str,
    /// What they do while nothing runs, in Markdown.
    pub(super) idle: &'static str,
    /// What they do while a turn runs.
    pub(super) running: &'static str,
    /// The key and its action; `None`: the input has the keys.
    action: Option<(Key, Action)>,
}

/// A key that answers a question while the input is empty.
#[derive(Debug)]
pub(super) struct AnswerKey {
    /// The key, in Markdown.
    pub(super) key: &'static str,
    /// The word for it next to the question.
    pub(super) label: &'static str,
    /// What it does, in Markdown.
    pub(super) what: &'static str,
}

/// All keys, in the order of the page.
pub(super) const BINDINGS: [Binding; 13] = [
    Binding {
        keys: "`Enter`",
        idle: "sends the input",
        running: "gives it to the running turn: the model reads it before its next request, after the results of all tools",
        action: Some((Key::Enter, Action::Send)),
    },
    Binding {
        keys: "`Alt+Enter`",
        idle: "sends the input",
        running: "queues it: it is sent when the turn has *completed*",
        action: Some((Key::AltEnter, Action::Queue)),
    },
    Binding {
        keys: "`Esc`",
        idle: "",
        running: "with an input: interrupts the model, whose text stays, and gives it the input; without one: cancels the turn, and \
                  what waits stays in the queue",
        action: Some((Key::Esc, Action::Interrupt)),
    },
    Binding {
        keys: "`Ctrl+C`",
        idle: "clears the input; on an empty one twice: ends the chat",
        running: "cancels the turn; what waits returns to the input",
        action: Some((Key::Ctrl('c'), Action::Cancel)),
    },
    Binding {
        keys: "`Ctrl+D`",
        idle: "on an empty input: ends the chat",
        running: "",
        action: Some((Key::Ctrl('d'), Action::End)),
    },
    Binding {
        keys: "`Ctrl+J` (`Shift+Enter` where the terminal distinguishes it)",
        idle: "begins another line",
        running: "the same",
        action: None,
    },
    Binding {
        keys: "`Up`, `Down`",
        idle: "earlier inputs, also of earlier chats; in an input of several lines the line above or below",
        running: "the same",
        action: None,
    },
    Binding {
        keys: "`Ctrl+A` `Ctrl+E` `Ctrl+B` `Ctrl+F` `Alt+B` `Alt+F` `Ctrl+U` `Ctrl+K` `Ctrl+W`, arrows, `Home`, `End`",
        idle: "edit the input as shells do",
        running: "the same",
        action: None,
    },
    Binding { keys: "`Tab`", idle: "completes the word before the cursor", running: "the same", action: None },
    Binding {
        keys: "`Ctrl+L`",
        idle: "clears the screen",
        running: "the same",
        action: Some((Key::Ctrl('l'), Action::Redraw)),
    },
    Binding {
        keys: "`Ctrl+T`",
        idle: "shows the reasoning that follows, or one line for each part of it",
        running: "the same",
        action: Some((Key::Ctrl('t'), Action::Reasoning)),
    },
    Binding {
        keys: "`Ctrl+O`",
        idle: "shows the text that follows as the model has written it, or rendered",
        running: "the same",
        action: Some((Key::Ctrl('o'), Action::Raw)),
    },
    Binding {
        keys: "`Ctrl+Z`",
        idle: "stops the program until the shell's `fg`",
        running: "the same: the turn is stopped, too; time-outs of the provider and, for state in Redis, the lease of 30 seconds continue",
        action: Some((Key::Ctrl('z'), Action::Stop)),
    },
];

/// The keys that answer a question about a tool call.
pub(super) const ANSWERS: [AnswerKey; 5] = [
    AnswerKey { key: "`y`", label: "yes", what: "the call runs, with exactly what was shown" },
    AnswerKey {
        key: "`n`",
        label: "no",
        what: "the call does not run; what is written then is the reason, which the model reads (`Enter`: without one, `Esc`: back)",
    },
    AnswerKey {
        key: "`e`",
        label: "edit",
        what: "`$VISUAL` or `$EDITOR` edits the arguments, as JSON; the host checks them as it checks those of the model",
    },
    AnswerKey {
        key: "`a`",
        label: "always",
        what: "the call runs, and calls that the shown pattern covers need no answer for the rest of the session; where none is shown, \
               each is asked about",
    },
    AnswerKey {
        key: "`v`",
        label: "view",
        what: "the whole question is shown on a screen of its own: `Space` or `Enter` and the keys of `less` scroll, `q` or `Esc` goes back, and \
               the other keys answer there, too",
    },
];

/// Returns what a key does; `None`: nothing, or it edits the input.
pub(super) fn action(key: &Key) -> Option<Action> {
    BINDINGS.iter().filter_map(|binding| binding.action.as_ref()).find(|(one, _)| one == key).map(|(_, action)| *action)
}

/// A cell of the tables as plain text.
pub(super) fn plain(markdown: &str) -> String {
    markdown.replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_keys() {
        let page = include_str!("../../../CHAT.md");
        for Binding { keys, idle, running, .. } in BINDINGS {
            let row = format!("| {keys} | {idle} | {running} |").replace("|  |", "| |");
            assert!(page.contains(&row), "{row}");
        }
        for AnswerKey { key, what, .. } in ANSWERS {
            let row = format!("| {key} | {what} |");
            assert!(page.contains(&row), "{row}");
        }
        assert_eq!(page.matches("\n| `").count(), page.matches("\n| `/").count() + BINDINGS.len() + ANSWERS.len());
    }

    #[test]
    fn a_key_of_the_table_is_found() {
        assert_eq!(action(&Key::Enter), Some(Action::Send));
        assert_eq!(action(&Key::Ctrl('c')), Some(Action::Cancel));
        assert_eq!((action(&Key::NewLine), action(&Key::Char('y'))), (None, None));
        assert_eq!(plain("`Ctrl+C` *twice*"), "Ctrl+C twice");
    }
}
