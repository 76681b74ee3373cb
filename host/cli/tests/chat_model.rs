//! The model of a chat, which a fork keeps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::Place;
use crate::support::script::Model;
use crate::support::tmux::Terminal;

#[test]
fn a_fork_continues_with_the_model_that_was_chosen() {
    let (place, model) = (Place::new(), Model::start());
    place.write("tidegate.toml", &model.settings(""));
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows("· /help");
    let ask = |prompt: &str, answer: &str| {
        terminal.enter(prompt);
        let mut request = model.request();
        assert_eq!(request.body["model"], "other", "{prompt}");
        request.say(answer).end();
        terminal.shows(answer);
        terminal.shows("· /help");
    };
    terminal.enter("/model other");
    terminal.shows("model: other from now on");
    ask("Hello", "Good morning.");
    terminal.enter("/fork");
    terminal.shows("forked");
    ask("And here?", "Here too.");
}
