//! `tidegate gateway`: routes, tokens, limits and operation of the server, with clients that write bytes.

mod attacks;
mod conversations;
mod endpoints;
mod guests;
mod instances;
mod life;
mod limits;
pub(crate) mod model;
mod prompts;
pub(crate) mod running;
mod settings;
mod store;
mod tokens;
mod trailers;

use self::model::Model;
use crate::support::Place;

/// A rule that stops an answer.
pub(crate) const RULE: &str =
    "+++\ncondition = \"forbidden\"\nscope = \"text\"\nrepeat = \"always\"\n+++\nNever say that word.\n";

/// Returns two routes to one server, one with a key of the operator, and two clients, one of them for one route only.
pub(crate) fn team(model: &Model, more: &str) -> String {
    let url = &model.url;
    format!(
        "[[gateway.route]]\npath = \"/anthropic\"\nupstream = \"{url}\"\nkey = \"env:A_KEY\"\n\
         [[gateway.route]]\npath = \"/openai\"\nupstream = \"{url}/v1\"\n\
         [[gateway.token]]\nname = \"a\"\nvalue = \"env:A_TOKEN\"\n\
         [[gateway.token]]\nname = \"b\"\nvalue = \"env:B_TOKEN\"\nroutes = [\"/openai\"]\nconcurrent = 1\n{more}"
    )
}

/// Returns one route for all paths, without tokens.
pub(crate) fn plain(model: &Model, more: &str) -> String {
    format!("[[gateway.route]]\npath = \"/\"\nupstream = \"{}\"\n{more}", model.url)
}

/// Returns a workspace with the rule and these settings.
pub(crate) fn place(settings: &str) -> Place {
    let place = Place::with(&[("no-forbidden", RULE)]);
    place.write("tidegate.toml", settings);
    place
}
