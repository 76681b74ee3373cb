//! How answers, reasoning and running tools look in a chat: whole screens at several widths, with a model that the tests answer for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use expect_test::expect_file;
use serde_json::json;

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

/// A terminal of so many columns with a chat.
fn open(settings: &str, columns: u32, variables: &[&str]) -> (Place, Model, Terminal) {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(settings));
    let terminal = Terminal::start(&place, &[], variables);
    terminal.shows(IDLE);
    terminal.resize(columns, 50);
    (place, model, terminal)
}

fn source(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/markdown").join(name)).unwrap()
}

/// The text in parts of several lengths, as a model sends it.
fn parts(text: &str) -> Vec<String> {
    let mut chars = text.chars();
    let lengths = [1, 7, 2, 30, 4, 4, 11].into_iter().cycle();
    lengths.map(|length| chars.by_ref().take(length).collect()).take_while(|part: &String| !part.is_empty()).collect()
}

/// What the terminal shows in the end, with what has scrolled away, as the file of this name has it.
fn check(terminal: &Terminal, name: &str) {
    let text = terminal
        .until("the end", |text| text.trim_end().ends_with('›') && text.contains(IDLE.trim_end_matches("help")));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    expect_file![file].assert_eq(&(text.trim_end().to_owned() + "\n"));
}

/// Only colours of the palette, neither black, white nor a background: it can be read on a light terminal and on a dark one.
fn check_colours(terminal: &Terminal) {
    let screen = terminal.colours();
    let codes = screen.split("\u{1b}[").skip(1).filter_map(|part| part.split_once('m'));
    let mut colours = 0;
    for code in codes.flat_map(|(codes, _)| codes.split(';')) {
        let code: u32 = code.parse().unwrap_or(0);
        assert!(matches!(code, 0..=9 | 21..=29 | 31..=36 | 39 | 49), "{code}: {screen}");
        colours += u32::from(matches!(code, 31..=36));
    }
    assert!(colours > 3, "{screen}");
}

#[test]
fn answers_look_as_their_screens_say_at_each_width() {
    for columns in [40, 80, 160] {
        let (_place, model, terminal) = open("", columns, &[]);
        terminal.enter("Show me.");
        let mut request = model.request();
        request.think(&["I think.".to_owned(), " It helps.".to_owned()]);
        for part in parts(&source("kinds.markdown")) {
            request.say(&part);
        }
        request.end();
        terminal.shows("The last paragraph.");
        check(&terminal, &format!("chat-markdown-{columns}"));
        check_colours(&terminal);
        for name in ["code.markdown", "tables.markdown"] {
            terminal.enter(name);
            let mut request = model.request();
            for part in parts(&source(name)) {
                request.say(&part);
            }
            request.end();
            terminal.shows(if name == "code.markdown" { "not closed" } else { "sixth" });
            terminal.screen_is("the end", |text| text.trim_end().ends_with('›'));
            check_colours(&terminal);
        }
        check(&terminal, &format!("chat-markdown-blocks-{columns}"));
    }
}

#[test]
fn without_colours_the_marks_stay() {
    let (_place, model, terminal) = open("", 80, &["NO_COLOR=1"]);
    terminal.enter("Show me.");
    let mut request = model.request();
    for part in parts(&source("kinds.markdown")) {
        request.say(&part);
    }
    request.end();
    terminal.shows("The last paragraph.");
    check(&terminal, "chat-markdown-no-color");
    let colours = terminal.colours();
    assert!(!colours.contains('\u{1b}'), "{colours}");
}

#[test]
fn what_can_still_change_is_seen_and_printed_once() {
    let (_place, model, terminal) = open("", 60, &[]);
    terminal.enter("A table.");
    let mut request = model.request();
    request.say("One **two");
    terminal.shows("\nOne **two");
    request.say("** three\n\n| a | b |\n|---|---|\n| long cell | 1");
    terminal.shows("long cell │ 1");
    request.say(" |\n| longer cell | 2 |\n");
    terminal.shows("longer cell │ 2");
    let text = terminal.drops("long cell │");
    assert!(text.contains("\nOne two three\n"), "{text}");
    // A line of a log is printed above what can still change, and the end of the turn below it.
    request.say("\nThe last `line");
    terminal.shows("The last `line");
    terminal.press("C-c");
    terminal.shows("▌cancelled");
    let text = terminal.shows(IDLE);
    assert!(text.contains("The last `line\n") && text.matches("longer cell").count() == 1, "{text}");
}

#[test]
fn reasoning_and_the_text_itself_are_shown_by_keys() {
    let (_place, model, terminal) = open("", 60, &[]);
    terminal.enter("First.");
    let mut request = model.request();
    let thoughts = ["I think about it.\n".to_owned(), "It is **hard** \u{1b}[2J".to_owned()];
    request.think(&thoughts).say("# A *title*").end();
    let text = terminal.shows("\nA title\n");
    assert!(text.contains("▌  reasoning, 37 characters (Ctrl+T shows the next)\n") && !text.contains("hard"), "{text}");
    terminal.press("C-t");
    terminal.shows("reasoning is shown from here on");
    terminal.press("C-o");
    terminal.shows("Markdown is shown as it is from here on");
    terminal.enter("Second.");
    model.request().think(&thoughts).say("# A *title*").end();
    let text = terminal.shows("\n# A *title*\n");
    assert!(text.contains("\n┊ I think about it.\n┊ It is **hard** \\u{1b}[2J\n# A"), "{text}");
}

#[test]
fn a_setting_shows_the_text_itself() {
    let (_place, model, terminal) = open("[terminal]\nmarkdown = false\n", 60, &[]);
    terminal.enter("First.");
    model.request().say("- *one*\n- **two**").end();
    terminal.shows("\n- *one*\n- **two**\n");
}

#[test]
fn a_running_tool_shows_its_last_lines_until_it_ends() {
    let (place, model, terminal) = open("[tools.permission]\nshell = \"allow\"\n", 60, &[]);
    terminal.enter("Run it.");
    let command = "until [ -e go ]; do echo a line; sleep 0.05; done; echo the end";
    model.request().say("I run it.").call("c1", "shell", &json!({"command": command})).end();
    let screen = terminal.screen_is("the lines", |text| text.contains("  shell · 1 s\n  │ a line\n"));
    assert!(screen.contains("· working"), "{screen}");
    place.write("go", "");
    let mut request = model.request();
    let text = terminal.drops("  shell · ");
    assert!(!text.contains("  │ a line") && text.contains("▌● shell"), "{text}");
    request.say("Done.").end();
    terminal.shows("\nDone.");
}

#[test]
fn a_run_at_a_terminal_renders_and_a_dumb_one_does_not() {
    for (variables, answer) in [(&[][..], "\nA title\n\n- one\n"), (&["TERM=dumb"][..], "\n# A title\n\n- **one**\n")] {
        let (place, model) = (Place::new(), Model::start());
        place.write("tidegate.toml", &model.settings(""));
        let terminal = Terminal::start(&place, &["run", "First.", "Second."], variables);
        for _ in 0..2 {
            let mut request = model.request();
            request.say("# A title\n\n- **o");
            terminal.shows("**o");
            request.say("ne**").end();
        }
        let text = terminal.shows("exit code 0");
        assert_eq!(text.matches(answer).count(), 2, "{text}");
    }
}
