//! Expansions of variables as they are written: `$x`, `${x[1]}`, `${x:-y}`.

/// An expansion whose value is that of a variable, or a text that it has itself.
pub(crate) struct Expansion<'a> {
    pub(crate) name: &'a str,
    rest: &'a str,
}

/// Before a text that is used in the place of the value.
const OWN: [&str; 6] = [":-", ":=", ":+", "-", "=", "+"];

impl<'a> Expansion<'a> {
    /// `None`: it is another expansion, or one that changes the value.
    pub(crate) fn of(written: &'a str) -> Option<Self> {
        let braced = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let inner = braced.or_else(|| written.strip_prefix('$'))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match inner.chars().next()? {
            '@' | '*' => 1,
            c if c.is_ascii_digit() => inner.find(|c: char| !c.is_ascii_digit()).unwrap_or(inner.len()),
            _ => inner.find(|c: char| !is_name(c)).unwrap_or(inner.len()),
        };
        let (name, rest) = inner.split_at_checked(length).filter(|(name, _)| !name.is_empty())?;
        let is_index = rest.starts_with('[') && rest.find(']') == Some(rest.len() - 1);
        let expansion = Self { name, rest };
        let keeps = expansion.is_slice()
            || rest.is_empty()
            || is_index
            || rest.starts_with(":?")
            || rest.starts_with('?')
            || expansion.ends_before_slash();
        (keeps || OWN.iter().any(|mark| rest.starts_with(mark))).then_some(expansion)
    }

    /// Whether it is the value of a variable and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        self.rest.is_empty() || self.has_index() || self.is_slice()
    }

    /// Whether a `/` at the end of the value is taken away.
    pub(crate) fn ends_before_slash(&self) -> bool {
        matches!(self.rest, "%/" | "%%/")
    }

    /// Whether it is the end of a list: `${@:2}`.
    pub(crate) fn is_slice(&self) -> bool {
        let rest = self.rest.strip_prefix("[@]").or(Some(self.rest).filter(|_| matches!(self.name, "@" | "*")));
        let start = rest.and_then(|rest| rest.strip_prefix(':'));
        start.is_some_and(|start| !start.is_empty() && start.bytes().all(|byte| byte.is_ascii_digit()))
    }

    pub(crate) fn has_index(&self) -> bool {
        self.rest.starts_with('[')
    }

    /// The text that it has itself, as it is written.
    pub(crate) fn own(&self) -> Option<&'a str> {
        OWN.iter().find_map(|mark| self.rest.strip_prefix(mark))
    }
}
