//! Look-ahead idioms that rule files use, put into what an automaton can do: a conjunction of look-aheads at the
//! beginning becomes `all`, a negative look-ahead there becomes `unless`.

/// A condition taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// What is left to match; none where the look-aheads were all.
    pub(crate) condition: Option<String>,
    pub(crate) all: Vec<String>,
    pub(crate) unless: Vec<String>,
}

/// Takes a condition apart; nothing when it is not one of the idioms.
///
/// `^(?=.*a)(?!.*b)c` matches where `^.*a` and `^c` match and `^.*b` does not. Without `^` only a pattern of nothing but
/// positive look-aheads over the whole text is one: where one place does, the beginning of the text does. With `(?m)` a
/// line is meant, which neither `all` nor `unless` can say. What is none of these is translated by the dialect, if at all.
pub(crate) fn split(pattern: &str) -> Option<Parts> {
    let (flags, rest) = flags(pattern)?;
    let anchored = ["^", r"\A"].iter().find_map(|anchor| rest.strip_prefix(anchor));
    let mut rest = anchored.unwrap_or(rest);
    let (mut parts, mut whole_text) = (Parts::default(), true);
    while let Some(group) = rest.strip_prefix("(?=").or_else(|| rest.strip_prefix("(?!")) {
        let end = group_end(group)?;
        let wanted = if rest.starts_with("(?=") { &mut parts.all } else { &mut parts.unless };
        let part = anywhere(flags, &group[..end]);
        whole_text &= part.is_some();
        wanted.push(part.unwrap_or_else(|| format!("{flags}\\A(?:{})", &group[..end])));
        rest = &group[end + 1..];
    }
    if parts.all.is_empty() && parts.unless.is_empty() {
        return None;
    }
    let trivial = matches!(rest, "" | "$" | ".*" | ".*$" | ".+" | r"[\s\S]*" | r"[\s\S]*$" | r"[\s\S]+");
    if !trivial {
        parts.condition = Some(format!("{flags}\\A(?:{rest})"));
    }
    // What must not be there cannot be known to be missing before the block ends.
    let positive = parts.condition.is_some() || !parts.all.is_empty();
    let placed = anchored.is_some() || (trivial && whole_text && parts.unless.is_empty());
    (positive && placed).then_some(parts)
}

/// A leading group of the flags i and s, and what follows it.
fn flags(pattern: &str) -> Option<(&str, &str)> {
    let Some(inside) = pattern.strip_prefix("(?") else { return Some(("", pattern)) };
    let letters = inside.len() - inside.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
    if letters == 0 || !inside[letters..].starts_with(')') {
        return Some(("", pattern));
    }
    let fine = inside[..letters].chars().all(|c| matches!(c, 'i' | 's'));
    fine.then(|| pattern.split_at(letters + 3))
}

/// The inside of a look-ahead that begins with "anything", as the rest of it anywhere: which holds no text back.
fn anywhere(flags: &str, inside: &str) -> Option<String> {
    let dot = flags.contains('s').then_some(".*");
    let anything = [r"[\s\S]*", r"[\S\s]*", r"[^]*", r"(?:.|\n)*"].into_iter().chain(dot);
    let free = if inside.contains('|') { None } else { anything.into_iter().find_map(|a| inside.strip_prefix(a)) };
    let rest = free?.trim_start_matches('?');
    (!rest.is_empty()).then(|| format!("{flags}(?:{rest})"))
}

/// The end of the group that contains `text`.
fn group_end(text: &str) -> Option<usize> {
    let (mut depth, mut class, mut chars) = (0_u32, false, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class && depth == 0 => return Some(at),
            ')' if !class => depth -= 1,
            _ => {}
        }
    }
    None
}
