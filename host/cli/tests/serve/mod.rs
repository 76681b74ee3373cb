//! `tidegate serve`: sessions over HTTP, with a model whose answers the tests write.

mod attacks;
mod client;
mod commands;
mod conventions;
mod described;
mod followed;
mod hosts;
mod killed;
mod life;
mod limits;
mod restarted;
mod sessions;
mod stream;

use self::client::Client;
use crate::gateway::running::{Running, TOKEN_A, TOKEN_B};
use crate::support::Place;
use crate::support::script::{Model, Request};

/// A rule that stops an answer.
const RULE: &str = "+++\ncondition = \"forbidden-[0-9]+\"\nscope = [\"text\", \"tool\"]\nrepeat = \"always\"\n+++\nNever say that word.\n";

/// The settings of two users.
const USERS: &str = "[[serve.token]]\nname = \"anna\"\nvalue = \"env:A_TOKEN\"\n\
    [[serve.token]]\nname = \"bert\"\nvalue = \"env:B_TOKEN\"\n";

/// Returns a workspace with the rule, the model and these settings.
fn place(model: &Model, more: &str) -> Place {
    let place = Place::with(&[("no-numbers", RULE)]);
    place.write("tidegate.toml", &model.settings(more));
    place
}

/// Starts the server in a workspace.
fn start(place: &Place) -> Running {
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("A_TOKEN", TOKEN_A).env("B_TOKEN", TOKEN_B);
    Running::of(command)
}

/// Answers with more text than the server keeps for front ends that connect later.
fn say_more_than_is_kept(mut request: Request) {
    let long = "x".repeat(1000);
    for _ in 0..1500 {
        request.say(&long);
    }
    request.end();
}

/// Returns the two users of a server.
fn users(running: &Running) -> [Client; 2] {
    [Client::new(running, TOKEN_A), Client::new(running, TOKEN_B)]
}
