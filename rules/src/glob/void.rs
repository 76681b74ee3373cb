//! Lists of globs that no file can match.

use regex_syntax::ParserBuilder;

use super::{Globs, build};
use crate::engine::{Nfa, compile};
use crate::reach::Together;

/// Whether no file can match both lists: what one includes is excluded, or they have no file in common. What cannot be
/// decided is not so.
pub(crate) fn are_void(one: &Globs, other: &Globs) -> bool {
    let lists = [one, other];
    if lists.iter().any(|globs| globs.is_empty()) && lists.iter().all(|globs| globs.excluding().next().is_none()) {
        return false;
    }
    let excluded = automata(one.excluding().chain(other.excluding()).flat_map(super::Glob::whole_paths));
    let excluded: Vec<&Nfa> = excluded.iter().collect();
    let is_excluded = |globs: &Globs| {
        let mut included = automata(globs.including().flat_map(super::Glob::whole_paths));
        if included.is_empty() {
            included = automata(build("**").ok());
        }
        !excluded.is_empty() && never(&[included], &excluded)
    };
    let [first, second] = lists.map(|globs| automata(globs.including().flat_map(super::Glob::anywhere)));
    let apart = !first.is_empty() && !second.is_empty() && never(&[first, second], &[]);
    apart || is_excluded(one) || is_excluded(other)
}

fn never(wanted: &[Vec<Nfa>], unwanted: &[&Nfa]) -> bool {
    let wanted: Vec<Vec<&Nfa>> = wanted.iter().map(|group| group.iter().collect()).collect();
    Together::new(&wanted, unwanted).and_then(|all| all.can_match()) == Some(false)
}

fn automata(globs: impl IntoIterator<Item = globset::Glob>) -> Vec<Nfa> {
    let compiled = |glob: globset::Glob| {
        let mut parser = ParserBuilder::new().utf8(false).dot_matches_new_line(true).build();
        compile(&parser.parse(glob.regex()).ok()?).ok()
    };
    globs.into_iter().filter_map(compiled).collect()
}
