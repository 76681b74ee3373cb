//! A report as Markdown (CommonMark with tables): what others wrote is fenced, or inline code.

use crate::diff::Chunk;
use crate::figures::clock;
use crate::html::{facts, totals};
use crate::report::{Log, Report, Turn};
use crate::view::{self, Block, View};
use crate::visible;

/// Returns the report as Markdown. Its size is proportional to that of the session's texts.
pub fn markdown(report: &Report) -> String {
    let sums = report.totals();
    let mut out = format!("# Session {}\n\n| | |\n|---|---|\n", code(&report.session));
    for (name, value) in facts(report, &sums) {
        out.push_str(&format!("| {name} | {} |\n", cell(&value)));
    }
    if !report.log.entries.is_empty() {
        out.push_str("\n## Outside of turns\n");
        log(&report.log, &mut out);
    }
    report.turns.iter().for_each(|one| turn(one, &mut out));
    for (name, columns, rows) in totals(&sums) {
        if rows.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {name}\n\n| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len())));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out
}

fn turn(turn: &Turn, out: &mut String) {
    let number = turn.number;
    out.push_str(&format!("\n## Turn {number}\n\n{} · {}\n", clock(turn.started_ms), code(&view::turn_line(turn))));
    log(&turn.log, out);
    for step in &turn.steps {
        out.push_str(&format!("\n### Step {} of turn {number}\n", step.number));
        let line = view::step_line(step);
        if !line.is_empty() {
            out.push_str(&format!("\n{}\n", code(&line)));
        }
        log(&step.log, out);
        for attempt in &step.attempts {
            if step.attempts.len() > 1 {
                out.push_str(&format!("\n#### Attempt {} of step {}, turn {number}\n", attempt.number, step.number));
            }
            log(&attempt.log, out);
        }
    }
}

fn log(log: &Log, out: &mut String) {
    log.entries.iter().filter_map(view::view).for_each(|view| entry(&view, out));
    if let Some(callbacks) = view::callbacks(log) {
        out.push_str(&format!("\nCallbacks: {}\n", code(&callbacks)));
    }
}

fn entry(view: &View<'_>, out: &mut String) {
    out.push_str(&format!("\n**{}**\n", label(&view.label)));
    view.blocks.iter().for_each(|one| block(one, out));
}

fn block(block: &Block<'_>, out: &mut String) {
    if !block.title.is_empty() {
        out.push_str(&format!("\n{}:\n", block.title));
    }
    if block.diff.is_empty() {
        out.push_str(&fenced(&block.text));
    } else {
        out.push_str(&fenced(&compared(&block.diff)));
    }
}

fn compared(chunks: &[Chunk]) -> String {
    let chunk = |chunk: &Chunk| match chunk {
        Chunk::Same(text) => text.clone(),
        Chunk::Removed(text) => format!("[-{text}-]"),
        Chunk::Added(text) => format!("{{+{text}+}}"),
    };
    chunks.iter().map(chunk).collect()
}

/// The most backticks that follow each other.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A fenced block whose fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let text = visible::lines(text);
    let fence = "`".repeat((backticks(&text) + 1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("\n{fence}\n{text}{end}{fence}\n")
}

/// Inline code in one line.
fn code(text: &str) -> String {
    let text = visible::line(text);
    let ticks = "`".repeat(backticks(&text) + 1);
    let blank = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// Inline code in a table, where a bar ends a cell also inside of code.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A label in bold: punctuation is escaped, because names of others are in it.
fn label(text: &str) -> String {
    let mut out = String::new();
    for c in visible::line(text).chars() {
        if c.is_ascii_punctuation() && !matches!(c, ',' | ';' | ':' | '.' | '-' | '/' | '%') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_fence() {
        assert_eq!(fenced("a\n````\nb"), "\n`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("a\r```\n"), "\n````\na\\r```\n````\n");
        assert_eq!(code("a`b``"), "``` a`b`` ```");
        assert_eq!(cell("a|b\nc"), "`a\\|b\\nc`");
        assert_eq!(label("Tool <b>*x*: 3 ms"), "Tool \\<b\\>\\*x\\*: 3 ms");
    }
}
