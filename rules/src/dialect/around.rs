//! Takes look-around out of a condition: what remains matches in the same texts, and is known to at the same byte.
//!
//! The requirement of a look-ahead is moved to the rest of the condition and, where it requires more than the rest
//! consumes, to the text that follows; the requirement of a look-behind is moved to the part before it. So a match
//! may start or end some characters further out than with the condition as written.

use std::ops::Range;

use regex_syntax::hir::Hir;

use super::PatternError;
use super::product::{Failure, Side, both};
use super::syntax::{Branches, Item, plain};

/// The most alternatives that groups with look-around are written out into.
const MAX_LISTS: usize = 64;

/// The most look-arounds in one alternative: each is taken out of all that is left.
const MAX_LOOKS: usize = 64;

/// One alternative, in the order of the text.
type List = Vec<Part>;

#[derive(Clone)]
enum Part {
    Re(Hir),
    Look { ahead: bool, negated: bool, inner: Hir, span: Range<usize> },
}

/// Why an alternative has no expression without look-around.
enum Lost {
    /// It cannot be translated.
    Refused(PatternError),
    /// Its look-around contradicts the rest of it: it matches nothing.
    Never(PatternError),
}

impl From<PatternError> for Lost {
    fn from(error: PatternError) -> Self {
        Self::Refused(error)
    }
}

/// The condition without look-around; `len` is its length. Alternatives that never match are left out and go to `never`.
///
/// # Errors
/// Something cannot be translated, or no alternative can match.
pub(super) fn eliminate(branches: &Branches, len: usize, never: &mut Vec<PatternError>) -> Result<Hir, PatternError> {
    let lists = lists(branches, "", len, never)?;
    alternatives(lists, never)
}

/// Those of the alternatives that can match.
fn alternatives(lists: Vec<List>, never: &mut Vec<PatternError>) -> Result<Hir, PatternError> {
    let (mut usable, mut lost) = (Vec::new(), Vec::new());
    for list in lists {
        match free(list) {
            Ok(hir) => usable.push(hir),
            Err(Lost::Never(error)) => lost.push(error),
            Err(Lost::Refused(error)) => return Err(error),
        }
    }
    if usable.is_empty() && !lost.is_empty() {
        return Err(lost.remove(0));
    }
    never.append(&mut lost);
    Ok(Hir::alternation(usable))
}

/// The alternatives, with groups that contain look-around expanded.
fn lists(
    branches: &Branches,
    flags: &str,
    len: usize,
    never: &mut Vec<PatternError>,
) -> Result<Vec<List>, PatternError> {
    let mut out = Vec::new();
    // Flags apply from their position to the end of the group, past a `|` too.
    let mut flags = flags.to_owned();
    for branch in branches {
        let mut found: Vec<List> = vec![Vec::new()];
        for item in branch {
            let next: Vec<List> = match item {
                Item::Flags(text) => {
                    flags.push_str(text.as_str());
                    continue;
                }
                Item::Plain(text) => vec![vec![Part::Re(text.parse(&flags, len)?)]],
                Item::Look { ahead, negated, branches, span } => {
                    let inner = inside(branches, *ahead, &flags, span, len, never)?;
                    vec![vec![Part::Look { ahead: *ahead, negated: *negated, inner, span: span.clone() }]]
                }
                Item::Group { flags: own, branches, optional } => {
                    let own = if own.is_empty() { String::new() } else { format!("(?{own})") };
                    let mut inner = lists(branches, &format!("{flags}{own}"), len, never)?;
                    inner.extend(optional.then(Vec::new));
                    inner
                }
            };
            found = continued(found, &next);
            if found.len() + out.len() > MAX_LISTS {
                let help = "split the condition into a list of several";
                return Err(PatternError::new(0..len, "too many alternatives contain look-around", help));
            }
        }
        out.extend(found);
    }
    Ok(out)
}

/// Each list with each of the next ones behind it. A single one is appended in place: a long condition has thousands of parts.
fn continued(mut found: Vec<List>, next: &[List]) -> Vec<List> {
    if let [only] = next {
        found.iter_mut().for_each(|list| list.extend_from_slice(only));
        return found;
    }
    found.iter().flat_map(|left| next.iter().map(|right| left.iter().chain(right).cloned().collect())).collect()
}

/// The requirement of a look-around. A nested one must look in the same direction.
fn inside(
    branches: &Branches,
    ahead: bool,
    flags: &str,
    span: &Range<usize>,
    len: usize,
    never: &mut Vec<PatternError>,
) -> Result<Hir, PatternError> {
    if let Some(text) = plain(branches) {
        return text.parse(flags, len);
    }
    let lists = lists(branches, flags, len, never)?;
    let other = |part: &Part| matches!(part, Part::Look { ahead: inner, .. } if *inner != ahead);
    if lists.iter().flatten().any(other) {
        return Err(refused(span.clone(), "looks both ahead and behind"));
    }
    alternatives(lists, never)
}

/// One alternative without look-around.
fn free(mut list: List) -> Result<Hir, Lost> {
    let mut looks = list.iter().filter_map(|part| if let Part::Look { span, .. } = part { Some(span) } else { None });
    if let Some(span) = looks.nth(MAX_LOOKS) {
        return Err(refused(span.clone(), &format!("is one of more than {MAX_LOOKS} in an alternative")).into());
    }
    loop {
        sort(&mut list);
        let is_look = |part: &Part| matches!(part, Part::Look { .. });
        let (Some(first), Some(last)) = (list.iter().position(is_look), list.iter().rposition(is_look)) else {
            return Ok(joined(list));
        };
        list = match (list[first].clone(), list[last].clone()) {
            (_, Part::Look { ahead: true, negated, inner, span }) => {
                let rest = joined(list.split_off(last + 1));
                list.truncate(last);
                list.push(Part::Re(combined(rest, inner, negated, Side::After, span)?));
                list
            }
            (Part::Look { ahead: false, negated, inner, span }, _) => {
                let rest = list.split_off(first + 1);
                list.truncate(first);
                let before = combined(joined(list), inner, negated, Side::Before, span)?;
                std::iter::once(Part::Re(before)).chain(rest).collect()
            }
            (Part::Look { span, .. }, _) => return Err(refused(span, "has a look-behind after it").into()),
            (Part::Re(_), _) => return Ok(joined(list)),
        };
    }
}

/// Of two at the same place the one that looks back comes first: the order makes no difference there.
fn sort(list: &mut List) {
    for at in (1..list.len()).rev() {
        let swapped = matches!(&list[at - 1..=at], [Part::Look { ahead: true, .. }, Part::Look { ahead: false, .. }]);
        if swapped {
            list.swap(at - 1, at);
        }
    }
}

fn joined(list: List) -> Hir {
    let only = |part| if let Part::Re(hir) = part { Some(hir) } else { None };
    Hir::concat(list.into_iter().filter_map(only).collect())
}

fn combined(rest: Hir, inner: Hir, negated: bool, side: Side, span: Range<usize>) -> Result<Hir, Lost> {
    both(rest, inner, negated, side).map_err(|failure| match failure {
        Failure::Assertion => refused(span, "has an assertion (`^`, `$`, `\\b`) inside").into(),
        Failure::Bytes => refused(span, "is next to bytes that are not characters").into(),
        Failure::TooLarge => refused(span, "is too large together with the adjacent pattern").into(),
        Failure::Never => {
            let message = "with this look-around the condition never matches";
            Lost::Never(PatternError::new(span, message, "remove it, or fix it"))
        }
    })
}

fn refused(span: Range<usize>, why: &str) -> PatternError {
    PatternError::new(
        span,
        format!("this look-around {why} and cannot be translated: look-ahead and look-behind are supported in part"),
        "put what must also match into `all` and what must not match into `unless`; the rest stays as the condition",
    )
}
