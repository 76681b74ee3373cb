//! Lists in the interactive mode: what is completed, and what is chosen from.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

/// What the status line ends with while nothing runs.
const IDLE: &str = "· /help";

/// The first bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn open(arguments: &[&str]) -> (Place, Model, Terminal) {
    let (place, model) = (Place::new(), Model::start());
    let settings = model.settings("").replace("[rules]", "models = [\"small-model\", \"large-model\"]\n[rules]");
    place.write("tidegate.toml", &settings);
    let terminal = Terminal::start(&place, arguments, &[]);
    terminal.shows(IDLE);
    (place, model, terminal)
}

#[test]
fn tab_completes_commands_arguments_and_files() {
    let (place, model, terminal) = open(&[]);
    for name in ["src/main.rs", "docs/two words.md", "target/main.rs"] {
        place.write(name, "");
    }
    // The state of the program is in the workspace of a test.
    place.write(".gitignore", "target\nstate\ncache\n");
    for (typed, completed) in [
        ("/he", "› /help\n"),
        ("/mo", "› /model\n"),
        ("/plugins o", "› /plugins on\n"),
        ("/queue dr", "› /queue drop\n"),
        ("/model large", "› /model large-model\n"),
        ("see @smain", "› see @src/main.rs\n"),
        ("see @two", "› see @\"docs/two words.md\"\n"),
    ] {
        terminal.types(typed);
        terminal.screen_is("a list", |text| text.contains("Tab: complete") && !text.contains("looking"));
        terminal.press("Tab");
        terminal.screen_is(completed, |text| text.contains(completed));
        terminal.press("C-u");
        terminal.screen_is("an empty input", |text| text.trim_end().ends_with('›'));
    }
    // An ignored file is not offered, and what is typed is sent as it is.
    terminal.types("see @target/mai");
    terminal.screen_is("the input", |text| text.contains("see @target/mai") && !text.contains("target/main.rs"));
    terminal.press("Enter");
    let mut request = model.request();
    assert!(request.text().contains("see @target/mai\""), "{}", request.text());
    request.say("Done.").end();
    terminal.screen_is("the end of the turn", |text| text.contains("\nDone.") && text.contains(IDLE));
    // What is typed is sent also where a list is open; an arrow key makes the difference.
    terminal.types("@main");
    terminal.shows("  src/main.rs");
    terminal.press("Enter");
    let mut request = model.request();
    assert!(request.text().contains("\"@main\""), "{}", request.text());
    request.say("Again.").end();
    terminal.screen_is("the end of the turn", |text| text.contains("\nAgain.") && text.contains(IDLE));
    terminal.types("@main");
    terminal.shows("  src/main.rs");
    terminal.press("Down");
    terminal.shows("▸ src/main.rs");
    terminal.press("Enter");
    terminal.shows("› @src/main.rs\n");
    // `Esc` closes the list, and the word is left alone then.
    terminal.press("C-u");
    terminal.types("@main");
    terminal.screen_is("a list", |text| text.contains("Esc: close"));
    terminal.press("Escape");
    terminal.screen_is("no list", |text| text.contains("› @main") && !text.contains("Esc: close"));
    terminal.types(".");
    terminal.screen_is("no list", |text| text.contains("› @main.") && !text.contains("Esc: close"));
}

#[test]
fn a_session_and_a_model_are_chosen_from_lists() {
    let (place, model) = (Place::new(), Model::start());
    let settings = model.settings("").replace("[rules]", "models = [\"small-model\", \"large-model\"]\n[rules]");
    place.write("tidegate.toml", &settings);
    for (first, answer) in [("Rename the parser", "Renamed."), ("Write the docs", "Written.")] {
        let terminal = Terminal::start(&place, &[], &[]);
        terminal.shows(IDLE);
        terminal.enter(first);
        model.request().say(answer).end();
        terminal.screen_is("the end of the turn", |text| text.contains(answer) && text.contains(IDLE));
        terminal.enter("/quit");
        terminal.shows("exit code 0");
    }
    // Before a chat begins.
    let terminal = Terminal::start(&place, &["--resume"], &[]);
    let text =
        terminal.screen_is("the sessions", |text| text.contains("▸ Write the docs") && text.contains("session:"));
    assert!(text.contains("  Rename the parser"), "{text}");
    terminal.types("prsr");
    terminal
        .screen_is("the one that is searched", |text| text.contains("▸ Rename") && !text.contains("Write the docs"));
    terminal.press("Enter");
    terminal.shows("▌› Rename the parser");
    // In a chat: the session that is open is not offered.
    terminal.enter("/resume");
    let text = terminal.screen_is("the sessions", |text| text.contains("▸ Write the docs"));
    assert!(!text.contains("  Rename the parser  "), "{text}");
    terminal.types("xyz");
    terminal.shows("nothing matches");
    terminal.press("Escape");
    terminal.screen_is("an empty input", |text| text.trim_end().ends_with('›'));
    terminal.enter("/resume");
    terminal.shows("▸ Write the docs");
    terminal.press("Enter");
    terminal.shows("▌› Write the docs");
    terminal.screen_is("the session", |text| text.contains("Written.") && text.contains(IDLE));
    terminal.enter("/model");
    let text = terminal.screen_is("the models", |text| text.contains("▸ scripted"));
    assert!(text.contains("in use") && text.contains("  large-model"), "{text}");
    terminal.types("arge");
    terminal.shows("▸ large-model");
    terminal.press("Enter");
    terminal.shows("▌model: large-model from now on");
    // What is typed at once is taken as it is, listed or not.
    terminal.shows("large-model · ");
    terminal.enter("/model large");
    terminal.shows("▌model: large from now on; it is not among the models");
}

#[test]
fn a_choice_can_be_left_and_needs_sessions() {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(""));
    let terminal = Terminal::start(&place, &["chat", "--resume"], &[]);
    terminal.shows("no session of this workspace is recorded; without `--resume`, a new one begins");
    terminal.shows("exit code 2");
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows(IDLE);
    terminal.enter("Hello");
    model.request().say("Good morning.").end();
    terminal.screen_is("the end of the turn", |text| text.contains("Good morning.") && text.contains(IDLE));
    terminal.enter("/quit");
    terminal.shows("exit code 0");
    let terminal = Terminal::start(&place, &["chat", "--resume"], &[]);
    terminal.shows("▸ Hello");
    terminal.press("Escape");
    terminal.shows("exit code 130");
}

#[test]
fn an_image_goes_with_the_input_that_names_it() {
    let (place, model, terminal) = open(&[]);
    std::fs::create_dir(place.path("shots")).unwrap();
    std::fs::write(place.path("shots/a b.png"), PNG).unwrap();
    place.write("text.png", "text");
    terminal.types("what is @shots");
    terminal.shows("  shots/a b.png");
    terminal.press("Tab");
    terminal.shows("image: shots/a b.png (16 bytes)");
    terminal.press("Enter");
    let mut request = model.request();
    assert!(request.text().contains("\"media_type\":\"image/png\""), "{}", request.text());
    assert!(request.text().contains("iVBORw0KGgo"), "{}", request.text());
    terminal.shows("▌  image: image/png, 16 bytes");
    // To a turn that runs; what is queued takes none.
    terminal.paste(&place.path("shots/a b.png").display().to_string().replace(' ', "\\ "));
    terminal.shows("image: ");
    terminal.press("M-Enter");
    terminal.shows("queued messages cannot have images");
    terminal.press("Enter");
    terminal.shows("  sent: @");
    request.say("A dot.").end();
    let mut request = model.request();
    assert_eq!(request.text().matches("image/png").count(), 2, "{}", request.text());
    request.say("The same.").end();
    terminal.screen_is("the end of the turn", |text| text.contains("\nThe same.") && text.contains(IDLE));
    // What is no image is not sent, and says why.
    terminal.types("and @text.png ");
    terminal.press("Enter");
    terminal.shows("the image `text.png` cannot be attached: the data are no image of the type image/png");
    terminal.shows("› and @text.png");
}
