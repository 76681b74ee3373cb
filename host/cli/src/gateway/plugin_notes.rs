//! Lines about plugins before the first request: new text for the model, and parts without effect.

use tidegate::plugin::Loaded;

use crate::print::prompt_lines;
use crate::style::err;
use crate::{say, screen};

/// Prints them. `serves_others`: the agents work in other folders than the program.
pub(crate) fn report(loaded: &Loaded, serves_others: bool) {
    for prompt in loaded.take_new_prompts() {
        let why = if prompt.changed { "has changed" } else { "is new in this workspace" };
        say::note(format_args!("plugin {} adds this text to the prompt; it {why}:", prompt.plugin));
        prompt_lines(&prompt.texts, screen::note_columns(), err).iter().for_each(say::note);
    }
    for (plugin, gaps) in loaded.gateway_gaps(serves_others) {
        say::note(format_args!("warning: plugin {plugin} in front of another agent: {}", gaps.join("; ")));
    }
}
