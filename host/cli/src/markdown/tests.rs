//! The texts of `tests/markdown` at several widths, and that deltas do not matter.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::expect_file;

use super::{Look, Markdown, Row};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/markdown")
}

fn look(columns: usize, is_styled: bool) -> Look {
    Look { columns, is_styled, guard: true }
}

/// All rows of a text that arrives in parts.
fn rows<'t>(parts: impl IntoIterator<Item = &'t str>, look: Look) -> Vec<Row> {
    let mut markdown = Markdown::new(look);
    let mut rows: Vec<Row> = parts.into_iter().flat_map(|part| markdown.push(part)).collect();
    rows.extend(markdown.finish());
    rows
}

fn plain(rows: &[Row]) -> String {
    rows.iter().map(|row| row.plain() + "\n").collect()
}

/// The texts, by their names.
fn texts() -> Vec<(String, String)> {
    let names = folder().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| name.strip_suffix(".markdown").map(str::to_owned)).collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    let read = |name: String| {
        let text = std::fs::read_to_string(folder().join(format!("{name}.markdown"))).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    /// A text in parts of at most so many characters.
    fn cut<'t>(&mut self, text: &'t str, most: usize) -> Vec<&'t str> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let count = 1 + self.below(most);
            let end = rest.char_indices().nth(count).map_or(rest.len(), |(end, _)| end);
            let (part, after) = rest.split_at(end);
            parts.push(part);
            rest = after;
        }
        parts
    }
}

#[test]
fn the_texts_look_as_their_files_say() {
    for (name, text) in texts() {
        for columns in [20, 40, 80, 160] {
            let mut shown = String::new();
            for (what, is_styled) in [("with styles", true), ("without styles", false)] {
                let rows = rows([text.as_str()], look(columns, is_styled));
                let _ = write!(shown, "=== {columns} columns, {what}\n{}", plain(&rows));
                for row in rows.iter().filter(|row| !row.is_code) {
                    assert!(row.width() <= columns, "{name}, {columns}: {:?}", row.plain());
                }
            }
            expect_file![folder().join(format!("{name}.{columns}.txt"))].assert_eq(&shown);
        }
        // Which styles there are does not depend on the columns.
        let painted: String = rows([text.as_str()], look(200, true))
            .iter()
            .map(|row| row.painted(true).replace('\u{1b}', "␛") + "\n")
            .collect();
        expect_file![folder().join(format!("{name}.styles.txt"))].assert_eq(&painted);
    }
}

/// However a text is cut, its rows are the same, and what is given out is the beginning of what is there in the end.
#[test]
fn deltas_do_not_matter() {
    let mut random = Random(1);
    let mut all: Vec<String> = texts().into_iter().map(|(_, text)| text).collect();
    let pieces = [
        "a",
        "b c ",
        "*",
        "**",
        "_",
        "`",
        "```",
        "~~~",
        "\n",
        "\n\n",
        "\n",
        "- ",
        "1. ",
        "> ",
        "# ",
        "    ",
        "  ",
        "|",
        "---",
        "===",
        "[",
        "](",
        ")",
        "]",
        "<",
        ">",
        "&",
        "&amp;",
        "\\",
        "!",
        "日",
        "e\u{301}",
        "word word word ",
        "a | b\n--|--\n",
        "[x]: y\n",
        "<!--",
        "```rs\n",
        "\t",
    ];
    for _ in 0..60 {
        let count = 1 + random.below(60);
        all.push((0..count).map(|_| pieces[random.below(pieces.len())]).collect());
    }
    for text in all {
        for columns in [12, 40] {
            for is_styled in [true, false] {
                let look = look(columns, is_styled);
                let whole = rows([text.as_str()], look);
                for most in [1, 3, 30] {
                    let parts = random.cut(&text, most);
                    let cut = rows(parts.iter().copied(), look);
                    assert_eq!(plain(&cut), plain(&whole), "{text:?} in {parts:?}");
                    assert!(cut == whole, "the styles of {text:?} in {parts:?}");
                }
            }
        }
    }
}

/// Output with interruptions is complete and in order: each letter of the text once, except for the marks of blocks that are not text.
#[test]
fn no_letter_is_lost() {
    let mut random = Random(2);
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphabetic()).collect() };
    let mut count = 0;
    for (name, text) in texts() {
        // An entity is one letter of another name, and a link that names itself is shown once: text is not cut there.
        let text: String =
            text.lines().filter(|line| !line.contains(['&', '<', '[', '\\'])).map(|l| l.to_owned() + "\n").collect();
        for columns in [12, 40, 80] {
            let mut markdown = Markdown::new(look(columns, false));
            let mut rows = Vec::new();
            for part in random.cut(&text, 200) {
                rows.extend(markdown.push(part));
                rows.extend(markdown.cut());
                assert!(markdown.tail().is_empty(), "{name}: {:?}", markdown.tail());
            }
            assert_eq!(letters(&plain(&rows)), letters(&text), "{name}, {columns}");
        }
        count += letters(&text).len();
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn a_delta_is_rendered_once() {
    let text = "A paragraph of *some* words, which `continues` for long.\n".repeat(40);
    let mut markdown = Markdown::new(look(80, true));
    let deltas: Vec<_> = text.split_inclusive(' ').flat_map(|word| word.split_inclusive('\n')).collect();
    for delta in &deltas {
        markdown.push(delta);
        markdown.tail();
        markdown.tail();
    }
    assert_eq!(markdown.renderings, deltas.len());
}

/// The first line of a code block can have any length: it ends in rows, and the text behind it is code.
#[test]
fn the_first_line_of_a_code_block_is_of_any_length() {
    for fence in [
        format!("```{}", "x".repeat(40 << 10)),
        format!("```rust {}", "é".repeat(20 << 10)),
        "`".repeat(40 << 10),
        format!("```{}", "y ".repeat((16 << 10) / 2 - 2)),
        format!("> - ~~~{}", "z".repeat(40 << 10)),
    ] {
        for most in [300, 4096, usize::MAX] {
            let mut markdown = Markdown::new(look(80, false));
            let text = format!("{fence}\nlet one = 1;\n");
            let mut rows = Vec::new();
            for part in Random(3).cut(&text, most) {
                rows.extend(markdown.push(part));
                markdown.tail();
            }
            rows.extend(markdown.finish());
            let count = |text: &str| text.chars().filter(|c| !c.is_whitespace() && !"│>".contains(*c)).count();
            assert_eq!(count(&plain(&rows)), count(&text), "{:?}", &fence[..12]);
            assert!(plain(&rows).contains("let one = 1;"));
        }
    }
}

/// Text with the deepest possible nesting: where the work is quadratic in the depth, this takes minutes.
#[test]
fn what_is_nested_deeply_is_rendered() {
    for (open, close) in
        [("[", "]"), ("\\", "\\"), ("*a ", "b* "), ("> ", ""), ("- ", ""), ("![", "](x)"), ("`", "``"), ("[a](", ")")]
    {
        let text = format!("{}x{}", open.repeat(5000), close.repeat(5000));
        let mut markdown = Markdown::new(look(80, true));
        let mut rows = Vec::new();
        for part in Random(4).cut(&text, 1000) {
            rows.extend(markdown.push(part));
            markdown.tail();
        }
        rows.extend(markdown.finish());
        assert!(plain(&rows).contains('x'), "{open}");
        assert!(rows.iter().filter(|row| !row.is_code).all(|row| row.width() <= 80), "{open}");
    }
}
