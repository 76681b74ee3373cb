//! The interactive mode at a terminal whose size changes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it could not show"
)]

use std::time::{Duration, Instant};

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

/// A workspace, its model and the program's terminal.
fn open() -> (Place, Model, Terminal) {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(""));
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows(IDLE);
    (place, model, terminal)
}

#[test]
fn the_rows_stay_below_after_a_resize() {
    let (_place, model, terminal) = open();
    terminal.enter("Hello");
    let mut request = model.request();
    request.say(&"word ".repeat(30));
    terminal.shows("word word");
    terminal.types("my input");
    terminal.shows("› my input");
    let cut = |columns: usize| -> String {
        "scripted · working · Esc interrupts · Ctrl+C cancels".chars().take(columns - 1).collect()
    };
    terminal.resize(50, 20);
    terminal.screen_is("the status in 49 columns", |text| text.lines().any(|line| line == cut(50)));
    terminal.types(", longer");
    terminal.shows("› my input, longer");
    terminal.resize(90, 30);
    terminal.screen_is("the whole status", |text| text.lines().any(|line| line == cut(90)));
    terminal.types("!");
    terminal.shows("longer!");
    request.say("last").end();
    let text = terminal.until("the end", |text| text.contains("last\n") && text.contains(IDLE));
    let last: Vec<&str> = text.trim_end().lines().rev().take(2).collect();
    assert!(last[0] == "› my input, longer!" && last[1].ends_with(IDLE), "{text}");
    assert_eq!(text.matches("word").count(), 30, "{text}");
    assert_eq!(text.matches("my input").count(), 1, "{text}");
}

/// A window that is dragged gets many sizes, and the model answers meanwhile.
#[test]
fn no_line_is_repeated_while_the_size_changes() {
    // A busy machine takes so long between two sizes that the program draws there, while the terminal has broken its rows for the next one
    // and has not said so yet. Then a line can be there twice, nothing is missing, and the window is dragged once more.
    let was_quick = (0..5).any(|_| {
        let (text, was_quick) = dragged();
        let count = |words: &str| text.matches(words).count();
        for word in 0..240 {
            let count = count(&format!("word-{word:03}"));
            assert!(count == 1 || count > 1 && !was_quick, "{word}: {text}");
        }
        assert!((count("an input"), count("scripted")) == (1, 1) || !was_quick, "{text}");
        was_quick
    });
    if !was_quick {
        println!("the machine was too busy to show that no line is repeated");
    }
}

/// What the terminal shows after a window was dragged, and whether no two sizes were further apart than the program waits for the next.
fn dragged() -> (String, bool) {
    let (_place, model, terminal) = open();
    terminal.enter("Hello");
    let mut request = model.request();
    let input = "an input that is longer than the terminal is going to be, and has its end here";
    terminal.types(input);
    terminal.shows("has its end here");
    let sizes = [(100, 40), (70, 40), (47, 30), (33, 30), (60, 24), (120, 40)];
    let mut was_quick = true;
    let mut before = Instant::now();
    for word in 0..240 {
        request.say(&format!("word-{word:03} "));
        if word % 23 == 22 {
            request.say("\n");
        }
        if word % 8 == 7 {
            let (columns, rows) = sizes[word / 8 % sizes.len()];
            terminal.resize(columns, rows);
            was_quick &= before.elapsed() < Duration::from_millis(250);
            before = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Wider than any before, so that the terminal breaks no row.
    terminal.resize(130, 40);
    was_quick &= before.elapsed() < Duration::from_millis(250);
    request.say("\nlast").end();
    terminal.screen_is("the end", |text| {
        let mut rows = text.trim_end().lines().rev();
        rows.next() == Some(&format!("› {input}"))
            && rows.next().is_some_and(|row| row.ends_with(IDLE))
            && text.contains("\nlast\n")
    });
    (terminal.text(), was_quick)
}
