//! The example for embedders on the front page is the one that the documentation of `tidegate` has, where it is compiled.

use crate::tree::{File, files};
use crate::{bites, hold};

/// The page, and the heading above its example.
const PAGE: (&str, &str) = ("README.md", "## Embed");
/// The crate's documentation, whose first example it is.
const LIBRARY: &str = "host/tidegate/src/lib.rs";

/// The lines of the first fenced block, without those that rustdoc hides and comments at its start.
fn block<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
    let shown = block.filter(|line| !line.starts_with("# "));
    shown.skip_while(|line| line.starts_with("//")).collect()
}

fn front_page(files: &[File]) -> (usize, Vec<String>) {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    let page = block(text(PAGE.0).lines().skip_while(|line| *line != PAGE.1));
    let documented = block(
        text(LIBRARY)
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line)),
    );
    let differ = page.iter().zip(&documented).find(|(page, documented)| page != documented);
    let finding = match differ {
        Some((page, documented)) => Some(format!("{} has `{page}` where {LIBRARY} has `{documented}`", PAGE.0)),
        None if page.len() != documented.len() => {
            Some(format!("the example of {} has {} lines, that of {LIBRARY} {}", PAGE.0, page.len(), documented.len()))
        }
        None => None,
    };
    (page.len(), finding.into_iter().collect())
}

#[test]
fn the_front_page_embeds_as_the_library_documents() {
    let (read, findings) = front_page(&files());
    hold("front page", read, 10, &findings);
}

#[test]
fn another_example_is_found() {
    let page =
        |lines: &str| File::sample(PAGE.0, &format!("```sh\nls\n```\n## Embed\n\n```rs\n// A comment.\n{lines}```\n"));
    let library = File::sample(
        LIBRARY,
        "//! About.\n//!\n//! ```no_run\n//! # async {\n//! let a = 1;\n//!\n//! b(a);\n//! # }\n//! ```\n",
    );
    let both = |lines| front_page(&[page(lines), copy(&library)]).1;
    assert!(both("let a = 1;\n\nb(a);\n").is_empty());
    bites(&both("let a = 2;\n\nb(a);\n"), "`let a = 2;`");
    bites(&both("let a = 1;\n"), "has 1 lines");
}

fn copy(file: &File) -> File {
    File::sample(&file.path, &file.text)
}
