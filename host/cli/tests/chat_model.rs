//! The model of a chat, which a fork keeps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

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

/// Whichever model of the provider a session has: the one that was chosen, or the one that it keeps.
#[test]
fn an_agent_can_have_another_model_than_the_one_that_was_chosen() {
    let (place, model) = (Place::new(), Model::start());
    let settings = model.settings("").replace("[rules]", "models = [\"other\"]\n[rules]");
    place.write("tidegate.toml", &settings);
    // Only the user chooses the models of agents without a question.
    place.write("user/tidegate/agents/helper.md", "---\ndescription: Helps.\nmodel: third\n---\nYou help.\n");
    let helps = |terminal: &Terminal, prompt: &str| {
        terminal.enter(prompt);
        let mut request = model.request();
        assert_eq!(request.body["model"], "other", "{prompt}");
        request.call("c1", "spawn_agent", &json!({"agent": "helper", "task": "Help."})).end();
        let mut request = model.request();
        assert_eq!(request.body["model"], "third", "{prompt}");
        request.say("Helped.").end();
        model.request().say(&format!("Done: {prompt}")).end();
        terminal.shows(&format!("\nDone: {prompt}"));
        terminal.shows("· /help");
    };
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows("· /help");
    terminal.enter("/model other");
    terminal.shows("model: other from now on");
    helps(&terminal, "Go.");
    terminal.press("C-d");
    drop(terminal);
    let terminal = Terminal::start(&place, &["--continue"], &[]);
    terminal.shows("· /help");
    helps(&terminal, "Again.");
}
