//! Questions in the interactive mode: what can answer them, and what cannot.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

fn open(settings: &str, files: &[(&str, &str)]) -> (Place, Model, Terminal) {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(settings));
    files.iter().for_each(|(name, text)| place.write(name, text));
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows(IDLE);
    (place, model, terminal)
}

#[test]
fn letters_of_what_is_being_written_are_no_answer() {
    let (place, model, terminal) = open("", &[]);
    terminal.enter("Write it.");
    let mut request = model.request();
    terminal.types("wh");
    terminal.shows("› wh");
    request.call("c1", "shell", &json!({"command": "touch a.txt"})).end();
    terminal.shows("Run shell? first send or clear what you have written");
    // The line becomes empty, and a letter follows at once: it belongs to what is being written.
    terminal.press_all(&["C-u", "y"]);
    terminal.shows("\n› y");
    terminal.types("es, and then");
    terminal.shows("\n› yes, and then");
    assert!(!place.path("a.txt").exists());
    // Nothing is lost of it.
    terminal.press("Enter");
    terminal.shows("  sent: yes, and then");
    terminal.answers("y");
    let mut request = model.request();
    assert!(place.path("a.txt").exists() && request.text().contains("yes, and then"), "{}", request.text());
    request.say("Done.").end();
    terminal.shows("\nDone.");
}

/// A text of so many lines, each with its number.
fn lines(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

/// The keys of a question that does not fit.
const UNREAD: &str = "Enter: read all of it first  n: no";

/// Reads the question from its beginning to its end, and returns the output on the screen.
fn read(terminal: &Terminal, begin: &str) -> Vec<String> {
    terminal.press("Enter");
    let mut pages = vec![terminal.screen_is("the page", |text| text.contains("q: back") && text.contains(begin))];
    while !pages[pages.len() - 1].contains("y: yes") {
        let before = pages[pages.len() - 1].clone();
        terminal.types(" ");
        let next = terminal.screen_is("the next page", |text| {
            text != before && (text.contains("Space: read on") || text.contains("y: yes"))
        });
        pages.push(next);
    }
    pages
}

#[test]
fn a_new_file_of_300_lines_is_read_before_it_is_approved() {
    let (place, model, terminal) = open("", &[]);
    terminal.enter("Write it.");
    let content = lines(300);
    model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": content})).end();
    let text = terminal.screen_is("the summary", |text| text.contains(UNREAD));
    for part in ["? write_file", "content: 300 lines, 2592 characters", "│ line 20\n", " more rows\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    read(&terminal, "? write_file");
    terminal.types("y");
    let mut request = model.request();
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), content);
    // A change is shown by its question, and not once more by its result.
    let edit = json!({"path": "a.txt", "old_text": "line 7\n", "new_text": "line seven\n"});
    request.call("c2", "edit_file", &edit).end();
    terminal.shows("▌  │ +line seven");
    terminal.answers("y");
    model.request().say("Done.").end();
    let text = terminal.shows("\nDone.");
    assert_eq!(text.matches("+line seven").count(), 1, "{text}");
    assert!(text.contains("▌  created `a.txt` (300 lines, 2592 bytes)\n"), "{text}");
    assert!(std::fs::read_to_string(place.path("a.txt")).unwrap().contains("line seven\n"));
}

#[test]
fn what_a_summary_cannot_show_is_read_first() {
    let hidden = format!("{}\u{202e}hidden\n", lines(90));
    let cases = [
        ("shell", json!({"command": format!(": '{}'; touch a.txt", lines(90))}), "line 90\n"),
        ("write_file", json!({"path": "a.txt", "content": hidden}), "\\u{202e}hidden"),
        // A line takes as many rows as it needs.
        ("write_file", json!({"path": "a.txt", "content": "x ".repeat(4000) + "the end"}), "the end"),
    ];
    for (tool, arguments, last) in cases {
        let (place, model, terminal) = open("", &[]);
        let path = place.path(arguments["path"].as_str().unwrap_or("a.txt"));
        terminal.enter("Do it.");
        model.request().call("c1", tool, &arguments).end();
        terminal.screen_is("that it is to be read", |text| text.contains(" more rows\n") && text.contains(UNREAD));
        // Nothing approves what is not read: the letter is written.
        terminal.types("y");
        terminal.shows("first send or clear");
        terminal.press("C-u");
        terminal.screen_is("the summary", |text| text.contains(UNREAD));
        terminal.press("Enter");
        let begin = format!("? {tool}");
        terminal.screen_is("the page", |text| text.contains("q: back") && text.contains(&begin));
        // The end alone is not all of it, and no letter approves it.
        terminal.press("End");
        terminal.shows("unread from row");
        terminal.types("y");
        terminal.press("q");
        terminal.screen_is("the summary", |text| text.contains(UNREAD));
        let pages = read(&terminal, &begin);
        assert!(pages.concat().contains(last), "{last}: {pages:#?}");
        for line in (1..=90).filter(|_| last != "the end") {
            assert!(pages.iter().any(|page| page.contains(&format!("line {line}\n"))), "line {line}: {pages:#?}");
        }
        // It was read, also if the page is closed, but not at a terminal of another size.
        terminal.types("q");
        terminal.screen_is("the summary", |text| text.contains(" more rows\n") && text.contains("v: view"));
        terminal.resize(90, 30);
        terminal.screen_is("the summary", |text| text.contains(" more rows\n") && text.contains(UNREAD));
        assert!(!path.exists());
        read(&terminal, &begin);
        terminal.types("y");
        model.request().say("Done.").end();
        terminal.shows("\nDone.");
        assert!(path.exists(), "{tool}");
    }
}

#[test]
fn at_a_terminal_that_is_too_narrow_nothing_is_approved() {
    let (place, model, terminal) = open("", &[]);
    terminal.resize(6, 60);
    terminal.enter("Do it.");
    model.request().call("c1", "shell", &json!({"command": "touch a.txt"})).end();
    terminal.screen_is("the question", |text| text.contains("n: no") && !text.contains("y: yes"));
    terminal.press("Enter");
    terminal.screen_is("why", |text| text.split_whitespace().collect::<String>().contains("toonarrow"));
    terminal.types("y");
    terminal.types("q");
    terminal.screen_is("the question", |text| text.contains("n: no") && !text.contains("q:"));
    assert!(!place.path("a.txt").exists());
    terminal.resize(80, 24);
    terminal.answers("y");
    model.request().say("Done.").end();
    terminal.shows("\nDone.");
    assert!(place.path("a.txt").exists());
}

#[test]
fn what_happens_while_a_question_is_viewed_is_on_the_screen_after_it() {
    let (_place, model, terminal) = open("", &[]);
    terminal.enter("Write it.");
    model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": lines(300)})).end();
    terminal.shows(UNREAD);
    terminal.press("Enter");
    terminal.screen_is("the page", |text| text.contains("rows") && text.contains("q: back"));
    terminal.resize(60, 20);
    terminal.screen_is("the page in 60 columns", |text| text.contains("q: back") && text.contains("▌  │ line 5\n"));
    terminal.press_all(&["Down", "Down", "NPage", "PPage", "G"]);
    terminal.screen_is("the end", |text| text.contains("line 300"));
    // The turn is cancelled, and the page is gone with its question.
    terminal.press("C-c");
    let text = terminal.screen_is("the conversation", |text| text.contains("▌cancelled") && text.contains(IDLE));
    assert!(!text.contains("q: back") && !text.contains("line 300"), "{text}");
    terminal.enter("Say it.");
    model.request().say("Said.").end();
    terminal.shows("\nSaid.");
}

#[test]
fn a_terminal_with_one_screen_shows_the_question_and_then_the_rows_again() {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(""));
    let terminal = Terminal::start(&place, &[], &["TERM=linux"]);
    terminal.shows(IDLE);
    terminal.enter("Write it.");
    model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": lines(300)})).end();
    terminal.shows(UNREAD);
    terminal.press("Enter");
    terminal.screen_is("the page", |text| text.contains("q: back") && !text.contains("Write it."));
    terminal.press("Escape");
    terminal.screen_is("the summary", |text| text.contains("content: 300 lines") && text.contains(UNREAD));
    read(&terminal, "? write_file");
    terminal.types("y");
    model.request().say("Done.").end();
    terminal.shows("\nDone.");
    assert!(place.path("a.txt").exists());
}

#[test]
fn a_question_that_a_resize_has_moved_is_read_again() {
    let (place, model, terminal) = open("", &[]);
    terminal.enter("Write it.");
    let content = lines(20);
    model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": content})).end();
    terminal.screen_is("the whole question", |text| text.contains("y: yes") && text.contains("│ line 20\n"));
    // First lower, then narrower: the first lines are not on the screen any more.
    for (columns, rows, row) in
        [(100, 16, "more rows\n"), (60, 16, "▌  ┊ of the session\n"), (40, 20, "▌  always: allows\n")]
    {
        terminal.resize(columns, rows);
        terminal.screen_is("a summary", |text| {
            ["? write_file", "more rows\n", "n: no", row].iter().all(|part| text.contains(part))
        });
    }
    assert!(!place.path("a.txt").exists());
    read(&terminal, "? write_file");
    terminal.types("y");
    model.request().say("Done.").end();
    terminal.shows("\nDone.");
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), content);
}

#[test]
fn a_question_that_appears_while_the_size_changes_is_printed_once() {
    // The size is another one again after the question, or not.
    for after in [100, 80] {
        let (_place, model, terminal) = open("", &[]);
        terminal.enter("Write it.");
        let mut request = model.request();
        let content: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        let begun = Instant::now();
        terminal.resize(100, 36);
        std::thread::sleep(Duration::from_millis(50));
        request.call("c1", "write_file", &json!({"path": "a.txt", "content": content})).end();
        std::thread::sleep(Duration::from_millis(50));
        terminal.resize(after, 36);
        // A busy machine takes so long that the size has settled in between.
        let is_late = begun.elapsed() > Duration::from_millis(200);
        let text = terminal.shows("y: yes");
        assert!(text.matches("? write_file").count() == 1 || is_late, "{text}");
    }
}

#[test]
fn a_narrow_terminal_shows_all_answers() {
    let (place, model, terminal) = open("", &[]);
    terminal.resize(24, 40);
    terminal.enter("Write it.");
    model.request().call("c1", "shell", &json!({"command": "touch a.txt"})).end();
    terminal.screen_is("all keys", |text| {
        ["Run shell?", "y: yes", "n: no", "e: edit", "a: always", "v: view"].iter().all(|part| text.contains(part))
    });
    terminal.types("y");
    model.request().say("Done.").end();
    terminal.shows("\nDone.");
    assert!(place.path("a.txt").exists());
}

#[test]
fn a_question_that_was_decided_elsewhere_is_gone() {
    let (_place, model, terminal) = open("[tools.question]\ntimeout_ms = 3000\n", &[]);
    terminal.enter("Write it.");
    model.request().call("c1", "shell", &json!({"command": "touch a.txt"})).end();
    terminal.answers("n");
    terminal.types("because");
    terminal.shows("why not: because");
    // The clock denies it.
    let mut request = model.request();
    terminal.shows("▌  what you have written for the question stays in the input");
    terminal.screen_is("the reason in the input", |text| {
        text.contains("\n› because") && !text.contains("why not") && !text.contains("Run shell?")
    });
    // The key that was meant for the question sends nothing.
    terminal.press("Enter");
    terminal.shows("▌  this was written for a question that is closed");
    terminal.screen_is("the reason in the input", |text| text.contains("\n› because"));
    terminal.press("Enter");
    terminal.shows("  sent: because");
    request.say("Denied.").end();
    let mut request = model.request();
    assert!(request.text().contains("because"), "{}", request.text());
    request.say("I see.").end();
    terminal.shows("\nI see.");
}

#[test]
fn an_agent_of_an_agent_asks_here() {
    let agent = "---\ndescription: Helps.\n---\nYou help.\n";
    let limits = "schema_version = \"1.0.0\"\n[limits]\ndepth = 2\n";
    let files = [
        (".tidegate/agents/helper.md", agent),
        (".tidegate/agents/digger.md", agent),
        // Only the user raises a limit.
        ("user/tidegate/thread_limits.toml", limits),
    ];
    let (place, model, terminal) = open("", &files);
    terminal.enter("Dig.");
    model.request().call("c1", "spawn_agent", &json!({"agent": "helper", "task": "Have it dug."})).end();
    model.request().call("c2", "spawn_agent", &json!({"agent": "digger", "task": "Dig."})).end();
    model.request().call("c3", "shell", &json!({"command": "touch a.txt"})).end();
    let text = terminal.shows("Run shell?");
    assert!(text.contains("agent digger, session "), "{text}");
    terminal.answers("y");
    model.request().say("Dug.").end();
    assert!(place.path("a.txt").exists());
    model.request().say("It is dug.").end();
    model.request().say("All done.").end();
    terminal.shows("\nAll done.");
    terminal.shows(IDLE);
}

#[test]
fn a_question_about_a_limit_leaves_the_input_free() {
    let limits = "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n";
    let (place, model, terminal) =
        open("[tools.permission]\nlist_dir = \"allow\"\n", &[(".tidegate/thread_limits.toml", limits)]);
    terminal.enter("Look.");
    model.request().call("c1", "list_dir", &json!({"path": "."})).end();
    terminal.shows("Raise the limit `steps` to ");
    // Commands and messages are what they always are.
    terminal.enter("/queue");
    terminal.shows("▌no message waits");
    terminal.enter("Be quick.");
    terminal.shows("  sent: Be quick.");
    terminal.answers("n");
    terminal.shows("why not:");
    terminal.press("Escape");
    terminal.drops("why not:");
    terminal.answers("1");
    terminal.shows("up to: 1");
    terminal.press("Enter");
    terminal.shows("does not raise the limit");
    terminal.drops("up to:");
    terminal.answers("2");
    terminal.shows("up to: 2");
    terminal.press("Enter");
    model.request().call("c2", "list_dir", &json!({"path": "."})).end();
    terminal.shows("Raise the limit `steps` to ");
    terminal.types("half");
    // Another process decides: what is asked here is gone.
    let listed = place.json(&["session", "list", "--json"]);
    let id = listed["sessions"][0]["session"].as_str().unwrap().to_owned();
    let decided = place.run(&["session", "approve", &id]);
    assert!(decided.status.success(), "{}", crate::support::err(&decided));
    let mut request = model.request();
    assert!(request.text().contains("Be quick."), "{}", request.text());
    terminal.screen_is("no question", |text| !text.contains("Raise the limit") && text.contains("› half"));
    request.say("Quick.").end();
    terminal.shows("\nQuick.");
}

#[test]
fn an_interrupt_and_a_cancel_reach_a_question_about_a_limit() {
    let limits = "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n";
    let (_place, model, terminal) =
        open("[tools.permission]\nlist_dir = \"allow\"\n", &[(".tidegate/thread_limits.toml", limits)]);
    terminal.enter("Look.");
    model.request().call("c1", "list_dir", &json!({"path": "."})).end();
    terminal.shows("Raise the limit `steps` to ");
    terminal.types("Only the docs.");
    terminal.press("Escape");
    terminal.shows("▌› Only the docs.");
    terminal
        .screen_is("the question", |text| text.contains("Raise the limit `steps` to ") && !text.contains("  sent:"));
    terminal.press("Escape");
    terminal.shows("▌cancelled");
    terminal.screen_is("no question", |text| !text.contains("Raise the limit") && text.contains(IDLE));
    terminal.enter("/continue");
    terminal.answers("y");
    let mut request = model.request();
    assert!(request.text().contains("Only the docs."), "{}", request.text());
    request.say("The docs.").end();
    terminal.shows("\nThe docs.");
}

#[test]
fn a_request_for_a_limit_that_is_made_again_shows_its_amount() {
    let limits = "schema_version = \"1.0.0\"\n[limits]\ntokens = 1\n";
    let (_place, model, terminal) = open("", &[(".tidegate/thread_limits.toml", limits)]);
    let amount = |text: &str| {
        let (_, after) = text.rsplit_once("Raise the limit `tokens` to ")?;
        after.split(['?', ' ']).next().map(str::to_owned)
    };
    terminal.enter("Look.");
    let first = amount(&terminal.shows("Raise the limit `tokens` to "));
    terminal.types(&"Only the docs. ".repeat(20));
    terminal.press("Escape");
    let text = terminal.screen_is("another amount", |text| amount(text).is_some_and(|one| Some(one) != first));
    terminal.answers("y");
    model.request().say("The docs.").end();
    let raised = terminal.shows("\nThe docs.");
    let expected = format!("approved by the terminal: up to {}", amount(&text).unwrap());
    assert!(raised.contains(&expected), "{expected}: {raised}");
}
