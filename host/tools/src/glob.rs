//! Globs that somebody else wrote, the model or the operator: compiling one must not fail half-way.

use globset::{GlobBuilder, GlobMatcher};

/// The most bytes of a glob.
const MAX_BYTES: usize = 4096;

/// The deepest nesting of braces: compiling a much deeper one would panic.
const MAX_DEPTH: u32 = 16;

/// Compiles a glob. With `separated`, `*` stops at `/`.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn compile(pattern: &str, separated: bool) -> Result<GlobMatcher, String> {
    if pattern.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, {MAX_BYTES} are allowed", pattern.len()));
    }
    let mut depth = 0_u32;
    for c in pattern.chars() {
        depth = if c == '{' { depth + 1 } else { depth.saturating_sub(u32::from(c == '}')) };
        if depth > MAX_DEPTH {
            return Err(format!("its braces are nested deeper than {MAX_DEPTH}"));
        }
    }
    let glob = GlobBuilder::new(pattern).literal_separator(separated).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::compile;

    #[test]
    fn what_cannot_be_compiled_is_said() {
        assert!(compile("src/**/*.{rs,{ts,tsx}}", true).unwrap().is_match("src/a/b.tsx"));
        let deep = format!("{}a{}", "{".repeat(2_000), "}".repeat(2_000));
        assert_eq!(compile(&deep, true).unwrap_err(), "its braces are nested deeper than 16");
        assert!(compile(&"a".repeat(5_000), true).unwrap_err().contains("4096 are allowed"));
        assert!(compile("[", true).is_err());
    }
}
