//! What a question shows on one screen.
//!
//! A question that fits is shown in full. For a longer one there is a summary, which is enough for a no: for a file that the call writes,
//! its path, its number of lines and their beginning; for other calls, their beginning. All of it has to be read before a key approves it.

use super::page::{self, Page};
use crate::say::count;
use crate::screen::clean::exact;
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
    /// The number of rows that are left out: if there are any, the question cannot be approved.
    pub(crate) left_out: usize,
}

/// The summary of a question at a terminal that has so many columns, and so many rows for it.
pub(crate) fn of(page: &Page<'_>, columns: usize, rows: usize) -> Summary {
    let whole = page::lines(page, columns);
    let most = rows.max(1);
    if whole.len() <= most && page::fits(&whole, columns) {
        return Summary { rows: whole, left_out: 0 };
    }
    let is_of_file = OF_FILES.contains(&page.tool);
    let short = is_of_file.then(|| short(page, whole.len(), columns, most)).flatten();
    short.unwrap_or_else(|| cut(&whole, columns, most))
}

/// The number of lines and characters of a text.
fn extent(text: &str) -> String {
    let lines = count(text.lines().count() as u64, "line", "lines");
    format!("{lines}, {}", count(text.chars().count() as u64, "character", "characters"))
}

/// Truncates the question to the rows that fit.
fn cut(whole: &[String], columns: usize, most: usize) -> Summary {
    // Its length depends on a number that depends on its length.
    let shown = most.saturating_sub(end(whole.len(), columns).len()).max(1).min(whole.len());
    // If the terminal is too narrow for the rows, a part of each is left out.
    let left_out = (whole.len() - shown).max(1);
    let mut rows = whole[..shown].to_vec();
    rows.extend(end(left_out, columns));
    rows.truncate(most);
    Summary { rows, left_out }
}

/// Returns all rows except most lines of the file; `None` if not even its first line fits, or if the call has none. `all`: the number of
/// rows of the whole question.
fn short(page: &Page<'_>, all: usize, columns: usize, most: usize) -> Option<Summary> {
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
    // Its length depends on a number that depends on its length.
    let last = end(all, columns).len();
    let shown = most.checked_sub(rows.len() + last).filter(|shown| *shown > 0)?.min(body.len());
    rows.extend(body.drain(..shown));
    // An argument in the diff is a row of the whole question, too.
    let left_out = all.saturating_sub(rows.len()).max(1);
    rows.extend(end(left_out, columns));
    Some(Summary { rows, left_out })
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

/// Returns the last rows of a summary that leaves out this many rows.
fn end(left_out: usize, columns: usize) -> Vec<String> {
    let text = format!("… {}", count(left_out as u64, "more row", "more rows"));
    let parts = wrapped(&text, text_columns(columns));
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
        assert_eq!(of(&page, 80, whole.len()), Summary { rows: whole.clone(), left_out: 0 });
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
        assert_eq!(summary.left_out, 296);
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
        assert!(rows.len() == 12 && summary.left_out > 300, "{rows:?}");
    }

    #[test]
    fn of_another_call_its_beginning_is_shown() {
        let text = lines(300);
        let many: Vec<String> = (0..9).map(|note| format!("note {note}")).collect();
        let cases = [
            page("shell", &[("command", &text), ("timeout_ms", "1")], None),
            page("note_add", &[("content", &text)], None),
            page("edit_file", &[("path", "x"), ("old_text", &text)], None),
            // The first line of the file does not fit.
            Page { notes: many, ..page("write_file", &[("path", "a.txt"), ("content", &text)], None) },
        ];
        for page in cases {
            let (summary, whole) = (of(&page, 100, 12), page::lines(&page, 100));
            assert_eq!((&summary.rows[..11], summary.left_out), (&whole[..11], whole.len() - 11), "{}", page.tool);
            assert_eq!(plain(&summary)[11], format!("  … {} more rows", summary.left_out));
        }
    }

    /// The arguments contain everything that a diff shows, and they are what runs.
    #[test]
    fn arguments_that_are_not_shown_are_left_out() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        let page = page("edit_file", &[("path", "x"), ("old_text", "a"), ("new_text", "b")], Some(diff));
        let whole = page::lines(&page, 80).len();
        assert_eq!(of(&page, 80, whole).left_out, 0);
        let summary = of(&page, 80, whole - 1);
        assert!(plain(&summary).contains(&"  │ +b".to_owned()) && summary.left_out > 0, "{summary:?}");
    }

    #[test]
    fn a_summary_has_no_more_rows_than_there_are_and_none_is_wider_than_the_terminal() {
        let text = lines(300);
        let wide = format!("{}\n日本語", "x".repeat(90));
        for columns in [1, 8, 10, 20, 40, 160] {
            for rows in 0..60 {
                for tool in ["write_file", "shell"] {
                    let page = page(tool, &[("path", "a.txt"), (&wide, "y"), ("content", &text)], None);
                    let summary = of(&page, columns, rows);
                    assert!((1..=rows.max(1)).contains(&summary.rows.len()), "{columns} {rows}");
                    assert!(summary.left_out > 0);
                    assert!(columns < 8 || page::fits(&summary.rows, columns), "{columns} {rows}: {summary:#?}");
                }
            }
        }
        // Nothing counts as shown if the terminal truncates its rows.
        let page = page("shell", &[("command", "日")], None);
        assert_eq!((of(&page, 8, 500).left_out, of(&page, 7, 500).left_out), (0, 1));
    }
}
