//! What a question shows on one screen.
//!
//! A question that fits is shown whole. Of a longer one, a summary leaves out lines of the file that the call writes, and nothing else. It
//! is enough for an answer where those lines can be judged by their number and their beginning. Where they cannot, the summary names the
//! reason, and the whole question has to be read first.

use super::page::{self, Page};
use crate::say::count;
use crate::screen::clean::{exact, flat, has_right_to_left};
use crate::screen::wrap::{CONTINUED, text_columns, wrapped};
use crate::style::{self, err};

/// The built-in tools that only change the text of one file.
const OF_FILES: [&str; 2] = ["write_file", "edit_file"];
/// Their arguments that a diff shows, too.
const IN_DIFF: [&str; 3] = ["content", "old_text", "new_text"];
/// The argument with all of the file, where there is nothing to compare it with.
const CONTENT: &str = "content";

/// What is shown of a question at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) rows: Vec<String>,
    /// Rows of the question that are left out.
    pub(crate) left_out: usize,
    /// Whether all of it has to be read before it is approved.
    pub(crate) is_cut: bool,
}

/// The summary of a question at a terminal that has so many columns, and so many rows for it.
pub(crate) fn of(page: &Page<'_>, columns: usize, rows: usize) -> Summary {
    let whole = page::lines(page, columns);
    let most = rows.max(1);
    if whole.len() <= most {
        return Summary { rows: whole, ..Summary::default() };
    }
    let change = if page.diff.is_some() { "change" } else { CONTENT };
    match reason(page) {
        Some(why) => cut(&whole, &why, columns, most),
        None => short(page, columns, most).unwrap_or_else(|| {
            let why = format!("there is no place for the first line of the {change}");
            cut(&whole, &why, columns, most)
        }),
    }
}

/// Why a question cannot be judged by a part of it.
fn reason(page: &Page<'_>) -> Option<String> {
    let is_argument = |name: &str| page.arguments.iter().any(|(one, _)| *one == name);
    if !OF_FILES.contains(&page.tool) || !(page.diff.is_some() || is_argument(CONTENT)) {
        let (name, text) = page.arguments.iter().max_by_key(|(_, text)| text.len())?;
        return Some(format!("`{}` has {}", flat(&exact(name).0), extent(text)));
    }
    if !page.has_pattern {
        return Some("its path is guarded, or cannot be judged at a glance".to_owned());
    }
    let texts = || page.arguments.iter().flat_map(|(name, text)| [*name, text]).chain(page.diff);
    if texts().any(|text| exact(text).1) {
        return Some("it has invisible or misleading characters".to_owned());
    }
    texts().any(has_right_to_left).then(|| "it has right-to-left letters".to_owned())
}

/// The number of lines and characters of a text.
fn extent(text: &str) -> String {
    let lines = count(text.lines().count() as u64, "line", "lines");
    format!("{lines}, {}", count(text.chars().count() as u64, "character", "characters"))
}

/// As many rows as fit, and why that is not enough.
fn cut(whole: &[String], why: &str, columns: usize, most: usize) -> Summary {
    let line = |left: usize| end(&format!("{}: {why}; read all of it first", more(left)), columns);
    // Its length depends on a number that depends on its length.
    let shown = most.saturating_sub(line(whole.len()).len()).max(1);
    let left_out = whole.len() - shown;
    let mut rows = whole[..shown].to_vec();
    rows.extend(line(left_out));
    rows.truncate(most);
    Summary { rows, left_out, is_cut: true }
}

/// All but lines of the file. `None`: not even the first of them fits.
fn short(page: &Page<'_>, columns: usize, most: usize) -> Option<Summary> {
    let mut rows = page::head(page, columns);
    let is_body = |name: &str| if page.diff.is_some() { IN_DIFF.contains(&name) } else { name == CONTENT };
    for (name, text) in page.arguments.iter().filter(|(name, _)| !is_body(name)) {
        page::argument(name, text, columns, &mut rows);
    }
    let mut body = Vec::new();
    let name = match page.diff {
        Some(diff) => {
            let (label, lines) = changed(page::without_end(diff));
            page::text(&exact(lines).0, text_columns(columns), page::colour, &mut body);
            label
        }
        None => {
            let (_, text) = page.arguments.iter().find(|(name, _)| *name == CONTENT)?;
            page::text(&exact(text).0, text_columns(columns), |_| None, &mut body);
            format!("{CONTENT}: {}", extent(text))
        }
    };
    let parts = wrapped(&name, text_columns(columns));
    rows.extend(parts.iter().map(|part| format!("  {}", err(style::STRONG, part.trim_end()))));
    let last = end(&more(body.len()), columns);
    let shown = most.checked_sub(rows.len() + last.len()).filter(|shown| *shown > 0)?.min(body.len());
    let left_out = body.len() - shown;
    rows.extend(body.drain(..shown));
    rows.extend(if left_out > 0 { end(&more(left_out), columns) } else { Vec::new() });
    Some(Summary { rows, left_out, is_cut: false })
}

/// How many lines a diff adds and removes, and the diff from its first changed line on.
fn changed(diff: &str) -> (String, &str) {
    // Above the first place are the names of the file.
    let body = diff.find("\n@@").map_or(diff, |at| &diff[at + 1..]);
    let of = |sign: char| body.lines().filter(|line| line.starts_with(sign)).count() as u64;
    let label =
        format!("change: {} added, {} removed", count(of('+'), "line", "lines"), count(of('-'), "line", "lines"));
    let context: usize =
        body.split_inclusive('\n').take_while(|line| !line.starts_with(['+', '-'])).map(str::len).sum();
    (label, &body[context..])
}

fn more(rows: usize) -> String {
    format!("… {}", count(rows as u64, "more row", "more rows"))
}

/// The last rows of a summary.
fn end(text: &str, columns: usize) -> Vec<String> {
    let parts = wrapped(text, text_columns(columns));
    let begins = std::iter::once("  ").chain(std::iter::repeat(CONTINUED));
    begins.zip(parts).map(|(begin, part)| err(style::WARNING, &format!("{begin}{}", part.trim_end()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Part, parts};

    fn plain(summary: &Summary) -> Vec<String> {
        let text = |row: &String| {
            let parts = parts(row);
            parts.iter().map(|part| if let Part::Text(text) = part { *text } else { "" }).collect::<String>()
        };
        summary.rows.iter().map(text).collect()
    }

    fn page<'t>(tool: &'t str, arguments: &[(&'t str, &'t str)], diff: Option<&'t str>) -> Page<'t> {
        Page {
            tool,
            reason: "it asks by default",
            origin: "call c-1".to_owned(),
            notes: Vec::new(),
            arguments: arguments.to_vec(),
            diff,
            has_pattern: true,
        }
    }

    fn lines(count: usize) -> String {
        (1..=count).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_question_that_fits_is_whole() {
        let text = lines(10);
        let page = page("write_file", &[("path", "a.txt"), ("content", &text)], None);
        let whole = page::lines(&page, 80);
        assert_eq!(of(&page, 80, whole.len()), Summary { rows: whole.clone(), left_out: 0, is_cut: false });
        assert!(of(&page, 80, whole.len() - 1).left_out > 0);
    }

    #[test]
    fn of_a_file_lines_are_left_out() {
        let text = lines(300);
        let summary = of(&page("write_file", &[("path", "a.txt"), ("content", &text)], None), 80, 12);
        assert_eq!(
            plain(&summary),
            [
                "? write_file",
                "  it asks by default",
                "  call c-1",
                "  path:",
                "  │ a.txt",
                "  content: 300 lines, 2592 characters",
                "  │ line 1",
                "  │ line 2",
                "  │ line 3",
                "  │ line 4",
                "  │ line 5",
                "  … 296 more rows"
            ]
        );
        assert!(!summary.is_cut);
        let diff = format!("--- a/x\n+++ b/x\n@@ -1,3 +1,300 @@\n same\n--- old\n{}", text.replace("line", "+++ line"));
        let arguments = [("path", "x"), ("old_text", &text), ("new_text", &text), ("replace_all", "true")];
        let summary = of(&page("edit_file", &arguments, Some(&diff)), 80, 12);
        let rows = plain(&summary);
        assert_eq!(
            rows[3..10],
            [
                "  path:",
                "  │ x",
                "  replace_all:",
                "  │ true",
                "  change: 300 lines added, 1 line removed",
                "  │ --- old",
                "  │ +++ line 1"
            ]
        );
        assert!(rows.len() == 12 && !summary.is_cut, "{rows:?}");
    }

    #[test]
    fn what_cannot_be_judged_by_a_part_is_to_be_read_whole() {
        let text = lines(300);
        let hidden = |what: &str| format!("{text}{what}");
        let (bidi, gutter, hebrew) = (hidden("\u{202e}x"), hidden("▌ x"), hidden("א"));
        let file = |text| page("write_file", &[("path", "a.txt"), ("content", text)], None);
        let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n \u{200b}\n{}", text.replace("line", "+line"));
        let many: Vec<String> = (0..9).map(|note| format!("note {note}")).collect();
        let cases: [(Page<'_>, &str); 10] = [
            (file(&bidi), "it has invisible or misleading characters"),
            (file(&gutter), "it has invisible or misleading characters"),
            (file(&hebrew), "it has right-to-left letters"),
            (Page { has_pattern: false, ..file(&text) }, "its path is guarded"),
            (Page { notes: many, ..file(&text) }, "there is no place for the first line of the content"),
            (page("edit_file", &[("path", "x")], Some(&diff)), "it has invisible or misleading characters"),
            (page("edit_file", &[("path", "x"), ("old_text", &text)], None), "`old_text` has 300 lines"),
            (page("shell", &[("command", &text), ("timeout_ms", "1")], None), "`command` has 300 lines, 2592 char"),
            (page("note_add", &[("content", &text)], None), "`content` has 300 lines"),
            (page("x", &[("a\nb", &text)], None), "`a\\nb` has 300 lines"),
        ];
        for (page, why) in cases {
            let summary = of(&page, 100, 12);
            let rows = plain(&summary);
            assert!(summary.is_cut && rows.len() == 12, "{why}: {rows:?}");
            assert!(rows.concat().contains(&format!(" more rows: {why}")), "{why}: {rows:?}");
            let shown = rows.iter().position(|row| row.starts_with("  … "));
            assert_eq!(shown.map(|shown| shown + summary.left_out), Some(page::lines(&page, 100).len()), "{why}");
        }
    }

    #[test]
    fn a_summary_has_no_more_rows_than_there_are() {
        let text = lines(300);
        for columns in [1, 20, 40, 160] {
            for rows in 0..60 {
                for tool in ["write_file", "shell"] {
                    let page = page(tool, &[("path", "a.txt"), ("content", &text)], None);
                    let summary = of(&page, columns, rows);
                    assert!((1..=rows.max(1)).contains(&summary.rows.len()), "{columns} {rows}");
                    let is_file = tool == "write_file" && columns >= 40 && rows >= 10;
                    assert!(summary.is_cut == (tool == "shell") || !is_file, "{columns} {rows}");
                }
            }
        }
    }
}
