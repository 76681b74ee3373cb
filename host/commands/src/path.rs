//! Paths of a command line that lead to the same place.

/// A path from the root or from somebody's home, without what leads nowhere: `/usr/../etc//x/.` is `/etc/x`. `None`: it is none, or is as
/// short as that. Links are not followed.
pub(crate) fn short_path(path: &str) -> Option<String> {
    if !path.starts_with(['/', '~', '$']) || path.contains("://") || !path.contains('/') {
        return None;
    }
    let mut short: Vec<&str> = Vec::new();
    for (at, part) in path.split('/').enumerate() {
        let is_start = at == 0 && !part.is_empty();
        match part {
            "" | "." if !is_start => {}
            // What a home or a variable is in is not known.
            ".." if short.last().is_none_or(|last| !last.starts_with(['~', '$']) && *last != "..") => {
                short.pop();
            }
            _ => short.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') && !short.is_empty() { "/" } else { "" };
    let short = format!("{root}{}{end}", short.join("/"));
    (short != path).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::short_path;

    #[test]
    fn a_path_is_as_short_as_it_can_be() {
        for (path, short) in [
            ("//", "/"),
            ("/.", "/"),
            ("/./", "/"),
            ("/usr/..", "/"),
            ("/usr/lib/../../", "/"),
            ("/../..", "/"),
            ("/*/..", "/"),
            ("/etc//x/./y/", "/etc/x/y/"),
            ("~/.", "~"),
            ("~root/../me", "~root/../me"),
            ("$HOME/x/..", "$HOME"),
            ("$x/../..", "$x/../.."),
            ("/usr", "/usr"),
            ("a//b", "a//b"),
            ("https://a//b", "https://a//b"),
            ("$x", "$x"),
        ] {
            assert_eq!(short_path(path).as_deref().unwrap_or(path), short, "{path}");
        }
    }
}
