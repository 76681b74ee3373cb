//! `tidegate acp`, as an editor sees it: the program itself, over its standard input and output.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

mod acpx;
mod again;
mod appended;
mod buffers;
mod clients;
mod dialogs;
pub(crate) mod editor;
mod fork;
mod model;
mod plan;
mod policy;
mod retracted;
mod schema;
mod shortage;
mod stdio;
mod steering;
mod trust;
mod unread;
mod websocket;

use model::Model;

use crate::support::{AN_AI, Place};

/// Adds settings to the operator's file of a workspace.
fn set(place: &Place, settings: &str) {
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &format!("{file}{settings}"));
}

/// A workspace whose model is this server. Permissions are those that a user has without settings: changes are asked about.
fn place(model: &Model) -> Place {
    let place = Place::with(&[("an-ai", AN_AI)]);
    place.write(
        "tidegate.toml",
        &format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"claude-test\"\nbase_url = \"{}\"\napi_key_env = \"\"\n\
             [rules]\nretry_delay_ms = 0\n[compaction]\ncontext_tokens = 1000\nenabled = false\n",
            model.url
        ),
    );
    place
}
