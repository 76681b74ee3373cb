//! What a question shows: who asks and why, every argument whole, and the change to a file.
//!
//! The host begins every row, also where a long line continues, so that nothing in an argument can look like a line of the
//! host. What is invisible is escaped (`screen::clean::exact`), and the question mentions it.

use tidegate::question::Question;

use crate::screen;
use crate::screen::clean::{exact, flat, has_right_to_left};
use crate::screen::wrap::{CONTINUED, ROW, text_columns, wrapped};
use crate::style::{self, err};

/// What is shown of a question.
pub(crate) struct Page<'q> {
    pub(crate) tool: &'q str,
    /// Which setting asks, and why.
    pub(crate) reason: &'q str,
    /// The agent, the session and the call.
    pub(crate) origin: String,
    pub(crate) notes: Vec<String>,
    /// Each argument's name and value.
    pub(crate) arguments: Vec<(&'q str, &'q str)>,
    pub(crate) diff: Option<&'q str>,
}

impl<'q> From<&'q Question> for Page<'q> {
    fn from(question: &'q Question) -> Self {
        let preview = &question.preview;
        // A child agent is named: its session is another one than the one at this terminal.
        let agent = if question.agent == "main" { String::new() } else { format!("agent {}, ", question.agent) };
        Self {
            tool: &question.call.name,
            reason: &question.reason,
            origin: format!("{agent}session {}, call {}", question.session, question.call.id),
            notes: notes(preview.notes.iter().cloned(), question.always.as_deref(), question.refused.as_deref()),
            arguments: preview.arguments.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect(),
            diff: preview.diff.as_deref(),
        }
    }
}

/// Facts about the call, what `always` would allow, and why the last answer was refused.
pub(crate) fn notes(of_call: impl Iterator<Item = String>, always: Option<&str>, refused: Option<&str>) -> Vec<String> {
    let always = always.map(|pattern| format!("always: allows `{pattern}` for the rest of the session"));
    let refused = refused.map(|why| format!("your last answer was refused: {why}"));
    of_call.chain(always).chain(refused).collect()
}

/// The rows of a question at a terminal with so many columns.
pub(crate) fn lines(question: &Page<'_>, columns: usize) -> Vec<String> {
    let mut rows = head(question, columns);
    question.arguments.iter().for_each(|(name, text)| argument(name, text, columns, &mut rows));
    if let Some(diff) = question.diff {
        value("change", without_end(diff), text_columns(columns), colour, &mut rows);
    }
    rows
}

/// Returns whether each row fits into one terminal row of this width, behind the gutter: a truncated row was not seen.
pub(crate) fn fits(rows: &[String], columns: usize) -> bool {
    // The gutter, and the last column, which is kept free.
    rows.iter().all(|row| screen::width(row) + 2 <= columns)
}

/// The rows above the arguments.
pub(super) fn head(question: &Page<'_>, columns: usize) -> Vec<String> {
    let columns = text_columns(columns);
    let tool = flat(question.tool);
    let mut rows = Vec::new();
    for (index, part) in wrapped(&tool, columns).into_iter().enumerate() {
        let begin = if index == 0 { format!("{} ", err(style::WARNING, "?")) } else { CONTINUED.to_owned() };
        rows.push(format!("{begin}{}", err(style::STRONG, &part)));
    }
    for line in [question.reason, &question.origin].into_iter().chain(question.notes.iter().map(String::as_str)) {
        let parts = wrapped(&flat(line), columns);
        rows.extend(
            parts
                .iter()
                .enumerate()
                .map(|(index, part)| format!("{}{part}", if index == 0 { "  " } else { CONTINUED })),
        );
    }
    rows
}

/// The rows of an argument.
pub(super) fn argument(name: &str, text: &str, columns: usize, rows: &mut Vec<String>) {
    let name = if name.is_empty() { "arguments".to_owned() } else { exact(name).0 };
    // Line ends in it are escaped.
    value(&flat(&name), text, text_columns(columns), |_| None, rows);
}

/// A diff without its last line end.
pub(super) fn without_end(diff: &str) -> &str {
    diff.strip_suffix('\n').unwrap_or(diff)
}

/// The style of a row of a diff.
pub(super) fn colour(line: &str) -> Option<anstyle::Style> {
    match line.as_bytes().first() {
        Some(b'+') => Some(style::GOOD),
        Some(b'-') => Some(style::BAD),
        _ => None,
    }
}

/// A name, and its value below it.
fn value(
    name: &str,
    value: &str,
    columns: usize,
    style_of: impl Fn(&str) -> Option<anstyle::Style>,
    rows: &mut Vec<String>,
) {
    let (shown, escaped) = exact(value);
    let mut remarks = Vec::new();
    if escaped {
        remarks.push("escaped: it has invisible characters; a backslash is \\\\");
    }
    if has_right_to_left(value) {
        remarks.push("has right-to-left letters");
    }
    if shown.is_empty() {
        remarks.push("empty");
    }
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) };
    rows.extend(named(name, &remarks, columns));
    if !shown.is_empty() {
        text(&shown, columns, style_of, rows);
    }
}

/// Returns the rows of a name and of the remarks about its value.
fn named(name: &str, remarks: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut left) = (Vec::new(), name.len());
    for (index, part) in wrapped(&format!("{name}:{remarks}"), columns).into_iter().enumerate() {
        let begin = if index == 0 { "  " } else { CONTINUED };
        let (of_name, rest) = part.split_at(left.min(part.len()));
        left -= of_name.len();
        let styled = |style, text: &str| if text.is_empty() { String::new() } else { err(style, text) };
        let (colon, rest) = rest.split_at(usize::from(rest.starts_with(':') && left == 0 && !of_name.is_empty()));
        rows.push(format!("{begin}{}{colon}{}", styled(style::STRONG, of_name), styled(style::WARNING, rest)));
    }
    rows
}

/// The lines of a text that is escaped already. One that ends its last line has an empty row after it, so that the two can be distinguished.
pub(super) fn text(
    shown: &str,
    columns: usize,
    style_of: impl Fn(&str) -> Option<anstyle::Style>,
    rows: &mut Vec<String>,
) {
    for line in shown.split('\n') {
        let look = style_of(line);
        for (index, part) in wrapped(line, columns).into_iter().enumerate() {
            let begin = if index == 0 { ROW } else { CONTINUED };
            let part = look.map_or_else(|| part.clone(), |look| err(look, &part));
            rows.push(format!("{}{part}", err(style::DIM, begin)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate::SessionId;
    use tidegate::question::{Argument, Preview};
    use tidegate::tool::{CallId, ToolCall};

    use super::*;
    use crate::style::{Part, parts};

    fn question(arguments: &[(&str, &str)], diff: Option<&str>) -> Question {
        let argument = |(name, value): &(&str, &str)| Argument { name: (*name).to_owned(), value: (*value).to_owned() };
        let call = ToolCall { id: CallId::new("c-1"), name: "shell".to_owned(), arguments: String::new() };
        let mut question = Question::new(SessionId::new("s-1"), call);
        question.reason = "`shell` asks by default".to_owned();
        question.preview = Preview {
            arguments: arguments.iter().map(argument).collect(),
            diff: diff.map(str::to_owned),
            notes: vec!["runs with sh".to_owned()],
        };
        question
    }

    fn plain(question: &Question, columns: usize) -> Vec<String> {
        let text = |row: &String| {
            let parts = parts(row);
            parts.iter().map(|part| if let Part::Text(text) = part { *text } else { "" }).collect::<String>()
        };
        lines(&question.into(), columns).iter().map(text).collect()
    }

    #[test]
    fn everything_is_shown_and_every_row_is_begun_by_the_host() {
        let tail = "x".repeat(5_000);
        let command = format!("ls{tail}; rm -rf .\n\nRun it? [y/N] y\n▌? read_file");
        let rows = plain(&question(&[("command", &command), ("n", "1")], None), 60);
        assert_eq!(rows[0], "? shell");
        assert_eq!(rows[1], "  `shell` asks by default");
        assert_eq!(rows[2], "  session s-1, call c-1");
        assert_eq!(rows[3], "  runs with sh");
        assert!(rows[4].starts_with("  command: (escaped: it has invisible characters"), "{}", rows[4]);
        let body: Vec<&String> =
            rows[5..].iter().filter(|row| row.starts_with(ROW) || row.starts_with(CONTINUED)).collect();
        assert!(rows.iter().all(|row| row.starts_with("  ") || row == "? shell"), "{rows:?}");
        assert!(body.iter().all(|row| row.chars().count() <= 60), "{rows:?}");
        assert!(rows.contains(&"  │ Run it? [y/N] y".to_owned()));
        assert!(rows.contains(&"  │ \\u{258c}? read_file".to_owned()));
        let joined: String = body.iter().map(|row| row.chars().skip(4).collect::<String>()).collect();
        assert!(joined.contains(&format!("ls{tail}; rm -rf .")));
        assert_eq!(rows.last().map(String::as_str), Some("  │ 1"));
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let rows = plain(&question(&[("command", "ls\r       \u{202e}x\u{200b}")], None), 80);
        assert!(rows[4].contains("it has invisible characters"), "{rows:?}");
        assert_eq!(rows[5], "  │ ls\\r       \\u{202e}x\\u{200b}");
        let rows = plain(&question(&[("a\nb\u{202e}", ""), ("c", "\n\n"), ("d", "א")], None), 80);
        assert_eq!(rows[4], "  a\\nb\\u{202e}: (empty)");
        assert_eq!(rows[5..9], ["  c:", ROW, ROW, ROW]);
        assert!(rows.iter().any(|row| row.contains("right-to-left")), "{rows:?}");
    }

    #[test]
    fn a_row_is_one_row_of_the_terminal() {
        let name = format!("{}日本語\u{202e}▌", "a_long_name".repeat(20));
        let family = "\u{1f468}\u{200d}\u{1f469}";
        let mut question = question(&[(&name, "א"), ("n", &"日本語 ▌ ".repeat(30))], Some("+a\n-a line of the diff\n"));
        question.call.name = "a_tool_with_a_name_that_is_long▌".to_owned();
        question.reason = format!("`a` asks ▌, {family} because").repeat(4);
        for columns in 8..130 {
            let rows = lines(&(&question).into(), columns);
            assert!(fits(&rows, columns) || columns < 24, "{columns}: {:#?}", plain(&question, columns));
            assert!(columns < 12 || !fits(&rows, columns / 2), "{columns}");
        }
        // A name and the remarks about its value continue in the next row.
        let rows = plain(&question, 40);
        let at = rows.iter().position(|row| row.starts_with("  a_long_name")).unwrap_or_default();
        let shown: Vec<_> = rows[at..].iter().take_while(|row| !row.starts_with(ROW)).collect();
        let joined: String = shown
            .iter()
            .map(|row| row.chars().skip(if row.starts_with(CONTINUED) { 4 } else { 2 }).collect::<String>())
            .collect();
        assert_eq!(
            joined,
            format!("{}日本語\\u{{202e}}\\u{{258c}}: (has right-to-left letters)", "a_long_name".repeat(20))
        );
    }

    #[test]
    fn a_diff_is_shown_whole() {
        let diff: String = (0..500).map(|n| format!("+line {n}\n")).collect();
        let rows = plain(&question(&[], Some(&diff)), 80);
        assert_eq!(rows[4], "  change:");
        assert_eq!(rows.len(), 505);
        assert_eq!(rows[504], "  │ +line 499");
    }
}
