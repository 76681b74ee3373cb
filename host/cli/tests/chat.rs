//! The interactive mode at a real terminal, with a model that the tests answer for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use crate::support::script::Model;
use crate::support::tmux::Terminal;
use crate::support::{AN_AI, Place, code, err};

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

/// A workspace, its model and the program's terminal.
fn open(settings: &str, rules: &[(&str, &str)], variables: &[&str]) -> (Place, Model, Terminal) {
    let (place, model) = (Place::with(rules), Model::start());
    place.write("tidegate.toml", &model.settings(settings));
    let terminal = Terminal::start(&place, &[], variables);
    terminal.shows(IDLE);
    (place, model, terminal)
}

fn ends(terminal: &Terminal, exit: u8) {
    terminal.shows(&format!("exit code {exit}"));
}

#[test]
fn an_answer_streams_and_the_session_continues() {
    let (place, model, terminal) = open("", &[], &[]);
    terminal.enter("Hello");
    let mut request = model.request();
    assert!(request.text().contains("Hello"), "{}", request.text());
    request.say("Good ");
    let text = terminal.shows("\nGood");
    assert!(text.contains("▌› Hello") && text.contains("· working ·"), "{text}");
    request.say("morning.\nAnd a good ").say("day.").end();
    let text = terminal.shows(IDLE);
    assert!(text.contains("\nGood morning.\nAnd a good day.\n"), "{text}");
    assert!(text.contains("scripted · 5 in, 40 out"), "{text}");
    terminal.press("C-d");
    let text = terminal.shows("continue with `tidegate chat --resume");
    ends(&terminal, 0);
    drop(text);

    let terminal = Terminal::start(&place, &["chat", "--continue"], &[]);
    let text = terminal.shows(IDLE);
    assert!(text.contains("▌› Hello\n") && text.contains("And a good day."), "{text}");
    terminal.press("Up");
    terminal.shows("\n› Hello");
    terminal.press("Enter");
    let mut request = model.request();
    assert!(request.text().contains("And a good day."), "{}", request.text());
    request.say("Again.").end();
    terminal.shows("\nAgain.");
    terminal.shows(IDLE);
    terminal.enter("/quit");
    ends(&terminal, 0);
}

#[test]
fn the_shell_stops_the_program_and_continues_it() {
    // By the key, and by a signal that no program can follow.
    for (signal, stopped, reads_lines) in [(None, "stopped 148", Some("+icanon")), (Some("STOP"), "stopped 147", None)]
    {
        let (place, model) = (Place::new(), Model::start());
        place.write("tidegate.toml", &model.settings(""));
        let stop = |terminal: &Terminal| match signal {
            None => terminal.press("C-z"),
            Some(name) => terminal.signal(name),
        };
        let terminal = Terminal::start_as_job(&place, &[]);
        terminal.shows(IDLE);
        terminal.enter("Hello");
        let mut request = model.request();
        request.say("Good ");
        terminal.shows("\nGood");
        terminal.types("begun");
        terminal.shows("› begun");
        stop(&terminal);
        // Before that, the terminal gives other bytes for Enter.
        let text = terminal.shows("sane");
        assert!(text.contains(stopped) && reads_lines.is_none_or(|line| text.contains(line)), "{text}");
        terminal.press("Enter");
        terminal.screen_is("the rows", |screen| screen.contains("› begun") && screen.contains("· working"));
        request.say("morning.").end();
        terminal.shows("\nmorning.");
        terminal.screen_is("the end of the turn", |screen| screen.contains(IDLE));
        terminal.press("C-u");
        terminal.enter("/quit");
        ends(&terminal, 0);

        let terminal = Terminal::start_as_job(&place, &["run", "Hello"]);
        let mut request = model.request();
        request.say("Good ");
        terminal.shows("Good");
        stop(&terminal);
        let text = terminal.shows("sane");
        assert!(text.contains(stopped), "{text}");
        terminal.press("Enter");
        request.say("evening.").end();
        terminal.shows("evening.");
        ends(&terminal, 0);
    }
}

#[test]
fn quit_ends_the_chat_while_a_turn_runs() {
    let (place, model, terminal) = open("", &[], &[]);
    terminal.enter("Hello");
    let mut request = model.request();
    request.say("Good ");
    terminal.shows("\nGood");
    terminal.enter("/quit");
    ends(&terminal, 0);
    let terminal = Terminal::start(&place, &["chat", "--continue"], &[]);
    terminal.shows("cancelled");
}

#[test]
fn reports_of_the_terminal_are_not_typed() {
    let (_place, _model, terminal) = open("", &[], &[]);
    terminal.types("one\u{1b}]11;rgb:1e1e/1e1e/1e1e\u{1b}\\");
    terminal.types("\u{1b}[>0;276;0c\u{1b}[?2026;2$y two");
    terminal.screen_is("the input", |screen| screen.lines().any(|line| line.trim_end() == "› one two"));
    terminal.press("C-u");
    terminal.enter("/quit");
    ends(&terminal, 0);
}

#[test]
fn questions_are_answered_by_keys() {
    let (place, model, terminal) = open("", &[], &["EDITOR=sh edit.sh", "VISUAL="]);
    // The first edit is not JSON, the second repairs what the first has left.
    place.write("edit.sh", "grep -q '\"touch e.txt\"' $1 && sed -i 's/,,/}/' $1 || sed -i 's/\"touch d.txt\"/\"touch e.txt\",,/;s/^}//' $1\n");
    terminal.enter("Write it.");
    let file = json!({"path": "a.txt", "content": "one\n"});
    model.request().say("I write.").call("c1", "write_file", &file).end();
    let text = terminal.shows("Run write_file? y: yes  n: no  e: edit  a: always");
    assert!(text.contains("▌  content:") && text.contains("· waits for you"), "{text}");
    terminal.answers("y");
    let mut request = model.request();
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "one\n");
    request.call("c2", "shell", &json!({"command": "touch b.txt"})).end();
    terminal.shows("Run shell?");
    terminal.answers("n");
    terminal.shows("why not:");
    terminal.press("Escape");
    terminal.drops("why not:");
    terminal.answers("n");
    terminal.shows("why not:");
    terminal.enter("use the file");
    let mut request = model.request();
    assert!(request.text().contains("use the file"), "{}", request.text());
    assert!(!place.path("b.txt").exists());
    // What is being written is no answer.
    terminal.types("wait");
    request.call("c3", "shell", &json!({"command": "touch c.txt"})).end();
    terminal.shows("Run shell? first send or clear what you have written");
    terminal.types("y");
    terminal.shows("\n› waity");
    terminal.press("C-u");
    terminal.answers("y");
    // The editor's result is checked, and runs.
    let mut request = model.request();
    assert!(place.path("c.txt").exists());
    request.call("c4", "shell", &json!({"command": "touch d.txt"})).end();
    terminal.shows("▌  │ touch d.txt");
    terminal.answers("e");
    terminal.shows("the arguments are not JSON: ");
    terminal.shows(" at line 2 column ");
    terminal.answers("e");
    let mut request = model.request();
    assert!(place.path("e.txt").exists() && !place.path("d.txt").exists());
    assert!(request.text().contains("touch e.txt"), "{}", request.text());
    // `always` covers what its pattern says.
    request.call("c5", "shell", &json!({"command": "touch f.txt"})).end();
    terminal.shows("▌  │ touch f.txt");
    terminal.shows("always: allows `");
    terminal.answers("a");
    let mut request = model.request();
    request.call("c6", "shell", &json!({"command": "touch f.txt"})).end();
    model.request().say("Done.").end();
    let text = terminal.shows(IDLE);
    assert!(text.contains("● write_file") && text.contains("not run: "), "{text}");
    // The question has shown what is written.
    assert!(text.contains("▌  created `a.txt` (1 line, 4 bytes)\n") && !text.contains("+one"), "{text}");
}

#[test]
fn a_question_of_a_process_that_died_is_asked_again() {
    for (signal, exit) in [("KILL", 137), ("HUP", 130)] {
        let (place, model, terminal) = open("", &[], &[]);
        terminal.enter("Write it.");
        model.request().call("c1", "write_file", &json!({"path": "a.txt", "content": "one\n"})).end();
        terminal.shows("Run write_file?");
        terminal.signal(signal);
        ends(&terminal, exit);
        drop(terminal);
        let terminal = Terminal::start(&place, &["chat", "--continue"], &[]);
        let text = terminal.shows(IDLE);
        assert!(text.contains("▌  not answered\n") && !text.contains("cancelled"), "{text}");
        assert!(text.contains("1 question is open from before: `/continue` asks again"), "{text}");
        assert_eq!(text.matches("/continue").count(), 1, "{text}");
        terminal.enter("/continue");
        terminal.shows("Run write_file?");
        terminal.answers("y");
        model.request().say("Done.").end();
        let text = terminal.shows("\nDone.");
        // The call is shown with its result, after what it was before.
        let (before, after) = text.split_once("/continue").unwrap();
        assert!(
            before.contains("● write_file") && after.contains("● write_file") && after.contains("created `a.txt`"),
            "{text}"
        );
        assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "one\n", "{signal}");
    }
}

#[test]
fn an_interrupt_by_a_rule_shows_what_the_model_is_sent() {
    let (_place, model, terminal) = open("", &[("an-ai", AN_AI)], &[]);
    terminal.enter("Who are you?");
    let mut request = model.request();
    request.say("Well. As an AI language model, I ").say("cannot say.").end();
    let mut request = model.request();
    let text = terminal.shows("▲ rule an-ai stopped the model");
    assert!(text.contains("reminder to the model:") && text.contains("│ Answer the question."), "{text}");
    request.say("I am a program.").end();
    let text = terminal.shows(IDLE);
    assert!(text.contains("I am a program.") && !text.contains("cannot say"), "{text}");
}

#[test]
fn messages_steer_wait_and_return() {
    let (_place, model, terminal) = open("[tools.permission]\nlist_dir = \"allow\"\n", &[], &[]);
    terminal.enter("Begin.");
    let mut request = model.request();
    request.say("I begin.");
    terminal.shows("\nI begin.");
    // Enter steers.
    terminal.enter("Only the tests.");
    terminal.shows("  sent: Only the tests.");
    request.call("c1", "list_dir", &json!({"path": "."})).end();
    let mut request = model.request();
    assert!(request.text().contains("Only the tests."), "{}", request.text());
    terminal.shows("▌› Only the tests.");
    // Alt+Enter queues.
    terminal.types("Then the docs.");
    terminal.press("M-Enter");
    terminal.shows("  queued: Then the docs.");
    request.say("The tests pass.").end();
    let mut request = model.request();
    assert!(request.text().contains("Then the docs."), "{}", request.text());
    request.say("Now the docs");
    terminal.shows("\nNow the docs");
    terminal.drops("  queued: ");
    // Esc interrupts with what is written.
    terminal.types("Stop, the changelog first.");
    terminal.press("Escape");
    let mut request = model.request();
    assert!(request.text().contains("the changelog first"), "{}", request.text());
    request.say("The changelog");
    terminal.shows("\nThe changelog");
    // What a turn that was cancelled has not taken waits, and can be sent.
    terminal.enter("Shorter.");
    terminal.shows("  sent: Shorter.");
    terminal.press("Escape");
    terminal.shows("▌cancelled");
    terminal.shows("  waiting: Shorter.");
    terminal.enter("/queue send");
    let mut request = model.request();
    assert!(request.text().contains("Shorter."), "{}", request.text());
    request.say("Short");
    terminal.shows("\nShort");
    terminal.drops("  waiting: ");
    // Ctrl+C cancels, and what waits returns.
    for text in ["one", "two"] {
        terminal.types(text);
        terminal.press("M-Enter");
        terminal.shows(&format!("  queued: {text}"));
    }
    terminal.enter("/queue");
    terminal.shows("▌2  two");
    terminal.enter("/queue drop 3");
    terminal.shows("no message 3 waits");
    terminal.press("C-c");
    terminal.shows("\n› one\n  two");
    terminal.shows(IDLE);
    terminal.press("C-c");
    terminal.drops("› one");
    terminal.press("C-c");
    terminal.shows("Ctrl+C again");
    terminal.press("C-c");
    ends(&terminal, 130);
}

#[test]
fn several_lines_are_pasted_and_invisible_characters_are_written_out() {
    let (_place, model, terminal) = open("", &[], &[]);
    terminal.paste("one\ntwo \u{1b}[31mred\n");
    terminal.shows("› one\n  two \\u{1b}[31mred");
    terminal.types("three");
    terminal.press("C-j");
    terminal.types("four");
    terminal.shows("\n  three\n  four");
    terminal.press("Enter");
    let mut request = model.request();
    assert!(request.text().contains("one\\ntwo \\u001b[31mred\\nthree\\nfour"), "{}", request.text());
    request.say("A title: \u{1b}]0;x\u{7}.").end();
    terminal.shows("A title: \\u{1b}]0;x\\u{7}.");
}

#[test]
fn every_command_answers() {
    let (place, model, terminal) = open("[compaction]\ncontext_tokens = 4500\n", &[("an-ai", AN_AI)], &[]);
    terminal.enter("Hello");
    model.request().say("Good morning.").end();
    terminal.shows("context 1 %");
    for (command, shown) in [
        ("/help", "`/help keys` prints the keys"),
        ("/help keys", "begins another line"),
        ("/model", "▌scripted (anthropic)"),
        ("/plugins", "▌no plugins"),
        ("/plugins off notes", "notes"),
        ("/rules", "1 active; `tidegate rules explain RULE`"),
        ("/why", "turn 1"),
        ("/queue", "no message waits"),
        ("/resume", "FIRST INPUT"),
        ("/cost", "▌context  45 of 4500 tokens, 1 %"),
        ("/export out.html", "▌the session is in out.html"),
        ("/export out.html", "`out.html` is there already"),
        ("/export out.txt", "cannot export to `out.txt`: `.txt` is no format; end the name with `.md`"),
        ("/export out", "cannot export to `out`: its name has no ending"),
        ("/export", ".md\n"),
        ("/export", ".md` is there already"),
        ("/modle", "a space before the `/` sends the line"),
    ] {
        terminal.press("C-l");
        terminal.screen_is("an empty screen", |text| text.trim().lines().count() == 2);
        terminal.enter(command);
        terminal.screen_is(shown, |text| text.to_lowercase().contains(&shown.to_lowercase()));
    }
    // What is no command stays in the input.
    terminal.shows("\n› /modle");
    terminal.press("C-u");
    // A file that has changed counts from the next turn on.
    place.write(".tidegate/rules/second.md", AN_AI);
    terminal.press("C-l");
    terminal.screen_is("an empty screen", |text| text.trim().lines().count() == 2);
    terminal.enter("/rules");
    terminal.screen_is("the rules in force", |text| text.contains("1 active") && !text.contains("second"));
    assert!(std::fs::read_to_string(place.path("out.html")).unwrap().contains("Good morning."));
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(place.path("out.html")).unwrap());
    assert_eq!(mode & 0o777, 0o600, "an export is readable by its owner alone");
    terminal.enter("/fork");
    terminal.shows("forked ");
    let text = terminal.until("the fork", |text| text.contains("Good morning.") && text.contains("▌  session "));
    terminal.enter("Go on.");
    let mut request = model.request();
    assert!(request.text().contains("Good morning."), "{}\n{text}", request.text());
    request.say("In the fork.").end();
    terminal.screen_is("the end of the turn", |text| text.contains("In the fork.") && text.contains(IDLE));
    // A fork that is not possible leaves the session as it is, and its error on the screen.
    terminal.press("C-l");
    terminal.screen_is("an empty screen", |text| text.trim().lines().count() == 2);
    terminal.enter("/fork 99");
    terminal.shows("▌  session ");
    let text = terminal.screen_is("the error", |text| text.contains("99") && text.contains(IDLE));
    assert!(!text.contains("In the fork."), "{text}");
    terminal.enter("/model other");
    terminal.shows("▌model: other from now on");
    terminal.shows("other · ");
    terminal.enter("/model");
    terminal.shows("\n▸ scripted");
    terminal.press("Escape");
    terminal.screen_is("an empty input", |text| !text.contains("▸") && text.contains("other · "));
    terminal.enter("Still there?");
    let mut request = model.request();
    assert_eq!(request.body["model"], "other");
    request.say("Yes.").end();
    terminal.shows("\nYes.");
}

#[test]
fn the_cursor_moves_by_what_is_seen_as_one_character() {
    let (_place, model, terminal) = open("", &[], &[]);
    // A family, a flag, a letter with an accent, and a heart.
    let (family, flag) = ("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", "\u{1f1e9}\u{1f1ea}");
    terminal.types(&format!("{family}{flag}e\u{301}\u{2764}\u{fe0f}"));
    // Not written out, as it would be on its own.
    terminal.until("the input", |text| {
        text.contains("\n› \u{1f468}") && text.contains("\u{2764}") && !text.contains("200d")
    });
    terminal.press_all(&["BSpace", "Left", "Left"]);
    terminal.types("|");
    terminal.press_all(&["Left", "Left", "DC"]);
    terminal.types("<");
    terminal.press("Enter");
    let mut request = model.request();
    let text = request.body["messages"][0]["content"].to_string();
    assert!(text.contains(&format!("<|{flag}e\u{301}\"")), "{text}");
    request.say("Yes.").end();
    terminal.shows("\nYes.");
    // What is typed is at the cursor, whatever the terminal takes for the emoji before it.
    terminal.types(&format!("{family}ab"));
    terminal.shows("ab");
    terminal.press("Left");
    terminal.wait("the cursor at `b`", Terminal::at_cursor, |cell| cell == "b");
}

#[test]
fn what_waits_outlives_the_chat_and_is_sent_from_the_next() {
    let (place, model, terminal) = open("", &[], &[]);
    terminal.enter("Begin.");
    let mut request = model.request();
    request.say("I begin.");
    terminal.shows("\nI begin.");
    for text in ["one", "two", "three"] {
        terminal.types(text);
        terminal.press("M-Enter");
        terminal.shows(&format!("  queued: {text}"));
    }
    terminal.enter("/queue edit 2");
    terminal.shows("\n› two");
    terminal.drops("  queued: two");
    terminal.kill();
    ends(&terminal, 137);
    drop((terminal, request));

    let terminal = Terminal::start(&place, &["chat", "--continue"], &[]);
    terminal.shows("messages wait from before");
    let text = terminal.shows(IDLE);
    assert!(text.contains("  queued: one\n  queued: three\n") && !text.contains("two"), "{text}");
    terminal.enter("/queue send");
    let mut request = model.request();
    assert!(request.text().contains("one") && !request.text().contains("three"), "{}", request.text());
    request.say("Not yet");
    terminal.shows("\nNot yet");
    // Nothing is sent after a cancel, and Esc leaves it where it is.
    terminal.press("Escape");
    terminal.shows("▌cancelled");
    terminal.shows(IDLE);
    terminal.shows("  queued: three");
    terminal.press("C-d");
    terminal.shows("1 message waits: kept with the session");
    ends(&terminal, 0);
}

#[test]
fn a_terminal_that_can_only_print_is_refused() {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(""));
    let terminal = Terminal::start(&place, &[], &["TERM=dumb"]);
    terminal.shows("TERM is `dumb`");
    ends(&terminal, 2);
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let output = Place::new().run(&[]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("`tidegate run PROMPT`"), "{}", err(&output));
    let output = Place::new().run(&["--continue"]);
    assert!(code(&output) == 2 && err(&output).contains("a chat needs a terminal"), "{}", err(&output));
    let output = Place::new().run(&["--resume", "id", "doctor"]);
    assert!(code(&output) == 2 && err(&output).contains("write them after it"), "{}", err(&output));
    let output = Place::new().run(&["chat"]);
    assert_eq!((code(&output), output.stdout.len()), (2, 0), "{}", err(&output));
}
