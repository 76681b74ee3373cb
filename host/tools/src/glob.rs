//! Globs of the model or the operator: limits make sure that compiling one cannot exhaust the host.

use globset::{GlobBuilder, GlobMatcher};

/// Compiles a glob. With `separated`, `*` stops at `/`.
///
/// # Errors
/// The error message.
pub(crate) fn compile(pattern: &str, separated: bool) -> Result<GlobMatcher, String> {
    flow::text::check_glob(pattern)?;
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
        assert_eq!(compile(&deep, true).unwrap_err(), "braces are nested deeper than 16");
        assert!(compile(&"a".repeat(5_000), true).unwrap_err().contains("4096 are allowed"));
        assert!(compile("[", true).is_err());
    }
}
