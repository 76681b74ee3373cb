//! The interactive mode as a person sees it: whole screens, at three widths.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

/// Columns and rows of the terminals.
const SIZES: [(u32, u32); 3] = [(40, 20), (80, 24), (160, 40)];

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

/// A workspace, its model and the program's terminal of a size.
fn open((columns, rows): (u32, u32)) -> (Place, Model, Terminal) {
    let (place, model) = (Place::new(), Model::start());
    let settings = model.settings("").replace("[rules]", "models = [\"small-model\", \"large-model\"]\n[rules]");
    place.write("tidegate.toml", &settings);
    place.write("parser.rs", &lines(60));
    for name in ["README.md", "src/main.rs", "src/parse/main.rs", "docs/two words.md", "target/main"] {
        place.write(name, "");
    }
    // The state of the program is in the workspace of a test.
    place.write(".gitignore", "target\nstate\ncache\n");
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows(IDLE);
    terminal.resize(columns, rows);
    // A line that is as wide as the terminal is drawn when the size has settled.
    terminal.press("C-l");
    terminal.screen_is("an empty screen", |text| text.trim().lines().count() == 2);
    (place, model, terminal)
}

fn lines(count: usize) -> String {
    (1..=count).map(|line| format!("let line_{line} = {line};\n")).collect()
}

/// Compares a screen with its file. The colours are those of the terminal's own palette, which fit a light and a dark background.
fn is_as_kept(terminal: &Terminal, name: &str, (columns, _): (u32, u32), text: &str) {
    // The folder of the test has another name each time.
    let text = text.split("/tmp/.tmp").enumerate().map(|(index, part)| match index {
        0 => part.to_owned(),
        _ => format!("/tmp/.tmp______{}", part.chars().skip(6).collect::<String>()),
    });
    let text = text.collect::<String>();
    let rows: String = text.trim_end().lines().map(|row| format!("{}\n", row.trim_end())).collect();
    expect_file![format!("{}/tests/screens/{name}-{columns}.txt", env!("CARGO_MANIFEST_DIR"))].assert_eq(&rows);
    let colours = terminal.colours();
    assert!(!colours.contains("\x1b[38;") && !colours.contains("\x1b[48;"), "{colours:?}");
}

#[test]
fn questions() {
    let edit = json!({"path": "parser.rs", "old_text": lines(30), "new_text": lines(20).replace("let", "const")});
    let command = "set -e\nmkdir -p build\nfor n in 1 2 3; do\n  echo $n\ndone\n".repeat(12);
    let cases: [(&str, &str, Value); 4] = [
        ("new-file", "write_file", json!({"path": "src/lexer.rs", "content": lines(300)})),
        ("edit", "edit_file", edit),
        ("command", "shell", json!({"command": "cargo test --workspace"})),
        ("long-command", "shell", json!({"command": command})),
    ];
    for size in SIZES {
        for (name, tool, arguments) in &cases {
            let (_place, model, terminal) = open(size);
            terminal.enter("Go on.");
            model.request().say("I do it.").call("c1", tool, arguments).end();
            let is_long = *name == "long-command";
            let keys = if *name == "command" { "v: view" } else { "n: no" };
            let text = terminal.screen_is("the question", |text| text.contains("Run ") && text.contains(keys));
            is_as_kept(&terminal, &format!("question-{name}"), size, &text);
            if !is_long {
                continue;
            }
            terminal.press("Enter");
            let text = terminal.screen_is("the page", |text| text.contains("q: back"));
            is_as_kept(&terminal, "page", size, &text);
            let mut before = text;
            while before.contains("Space: read on") {
                terminal.types(" ");
                before = terminal.screen_is("the next page", |text| text != before && text.contains("q: back"));
            }
            let text = terminal.screen_is("the keys", |text| text.contains("y: yes"));
            is_as_kept(&terminal, "page-end", size, &text);
        }
    }
}

#[test]
fn lists() {
    let cases = [
        ("commands", "/", "/resume"),
        ("command", "/re", "/resume"),
        ("argument", "/queue ", "clear"),
        ("models", "/model ", "large-model"),
        ("files", "see @main", "src/parse/main.rs"),
    ];
    for size in SIZES {
        let (_place, _model, terminal) = open(size);
        for (name, typed, shown) in cases {
            terminal.types(typed);
            // The list for less than what is typed can have the entry, too.
            let is_typed = |text: &str| text.contains(&format!("› {}", typed.trim_end()));
            let text =
                terminal.screen_is(name, |text| is_typed(text) && text.contains(shown) && text.contains("Esc: close"));
            is_as_kept(&terminal, &format!("list-{name}"), size, &text);
            terminal.press("C-u");
            terminal.screen_is("no list", |text| !text.contains("Esc: close"));
        }
    }
}

/// Marks and gutters say what colours say.
#[test]
fn without_colours_nothing_is_missing() {
    let (place, model) = (Place::new(), Model::start());
    let settings = model.settings("").replace("[rules]", "models = [\"small-model\"]\n[rules]");
    place.write("tidegate.toml", &settings);
    let terminal = Terminal::start(&place, &[], &["NO_COLOR=1"]);
    terminal.shows(IDLE);
    terminal.enter("/model");
    terminal.screen_is("the mark", |text| text.contains("▸ scripted") && text.contains("  small-model"));
    assert!(!terminal.colours().contains('\x1b'), "{:?}", terminal.colours());
    terminal.press("Escape");
    terminal.screen_is("no list", |text| !text.contains('▸'));
    terminal.enter("Go on.");
    model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": lines(300)})).end();
    terminal.shows("Enter: read all of it first");
    terminal.press("Enter");
    terminal.screen_is("the page", |text| text.contains("q: back") && text.contains("▌? write_file"));
    assert!(!terminal.colours().contains('\x1b'), "{:?}", terminal.colours());
}
