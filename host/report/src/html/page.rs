//! The frame of the page: head, summary, tables of totals, and the order of its parts.

use super::write::Html;
use super::{plots, timeline};
use crate::figures::{count, dollars, known, of, took, took_ms, utc};
use crate::report::Report;
use crate::totals::Totals;

/// Nothing is fetched, executed or sent, whatever the page contains.
const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"referrer\" content=\"no-referrer\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>Session ";

/// Turns up to which each has a link at the top.
const LINKS: usize = 200;

pub(super) fn page(report: &Report, out: &mut Html) {
    let totals = report.totals();
    out.raw(HEAD)
        .text(&crate::visible::line(&report.session))
        .raw("</title>\n<style>\n")
        .raw(include_str!("style.css"));
    out.raw("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>Session <bdi>");
    out.text(&report.session).raw("</bdi></h1>\n<dl class=\"facts\">\n");
    facts(report, &totals).iter().for_each(|(name, value)| {
        out.raw("<div><dt>").raw(name).raw("</dt><dd><bdi>").text(value).raw("</bdi></dd></div>\n");
    });
    out.raw("</dl>\n</header>\n");
    navigation(report, out);
    out.raw("<main id=\"main\">\n");
    plots::plots(report, &totals, out);
    tables(&totals, out);
    timeline::timeline(report, out);
    out.raw("</main>\n</body>\n</html>\n");
}

/// What the top of a report says about the session.
pub(crate) fn facts(report: &Report, totals: &Totals) -> Vec<(&'static str, String)> {
    let models = report.models.iter().map(|one| format!("{} ({})", one.model, one.provider));
    let extensions = report.extensions.iter().map(|one| format!("{} {}", one.id, one.version));
    let mut facts = vec![
        ("Model", models.collect::<Vec<_>>().join(", ")),
        ("Workspace", report.workspace.clone()),
        ("Extensions", extensions.collect::<Vec<_>>().join(", ")),
        ("Started", report.started_ms.map(utc).unwrap_or_default()),
        ("Last record", report.ended_ms.map(utc).unwrap_or_default()),
        ("Time of all turns", took_ms(totals.duration_ms)),
        (
            "Turns, steps, attempts",
            format!("{}, {}, {}", count(totals.turns), count(totals.steps), count(totals.attempts)),
        ),
        ("Tokens in", known(totals.tokens.input_tokens)),
        ("Tokens out", known(totals.tokens.output_tokens)),
        ("Cost", totals.cost.map_or_else(|| "unknown".to_owned(), dollars)),
    ];
    if report.dropped > 0 {
        facts.push(("Lost events", of(report.dropped, "droppable event", "droppable events")));
    }
    if !report.unknown.is_empty() {
        let unknown = report.unknown.iter().map(|(kind, number)| format!("{kind} ({number})"));
        facts.push(("Records of unknown types", unknown.collect::<Vec<_>>().join(", ")));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn navigation(report: &Report, out: &mut Html) {
    out.raw("<nav aria-label=\"Contents\">\n<ul>\n<li><a href=\"#figures\">Figures</a></li>\n<li><a href=\"#totals\">Totals</a></li>\n");
    out.raw("<li><a href=\"#timeline\">Timeline</a></li>\n");
    // Of a long session every so many turns: the list stays short enough to read.
    for turn in report.turns.iter().step_by(report.turns.len().div_ceil(LINKS).max(1)) {
        let number = u64::from(turn.number);
        out.raw("<li><a href=\"#turn-").number(number).raw("\">Turn ").number(number).raw("</a></li>\n");
    }
    out.raw("</ul>\n</nav>\n");
}

/// A table of totals: its name, its columns, and its rows.
pub(crate) type Table = (&'static str, &'static [&'static str], Vec<Vec<String>>);

/// The totals of callbacks, tools and rules, as tables.
pub(crate) fn totals(totals: &Totals) -> [Table; 3] {
    let callbacks = totals.callbacks.iter().map(|one| {
        let numbers = [one.calls, one.changed, one.failed].map(count);
        let names = [one.extension.clone(), one.callback.clone()];
        [&names[..], &numbers, &[took(one.total_us), took(one.max_us)]].concat()
    });
    let tools = totals.tools.iter().map(|one| {
        let times = [one.total_ms, one.max_ms, one.waited_ms].map(took_ms);
        [&[one.tool.clone(), count(one.calls), count(one.failed)][..], &times].concat()
    });
    let rules = totals.rules.iter().map(|one| {
        let estimated = if one.tokens_estimated { "about " } else { "" };
        let numbers = [one.matches, one.interrupts, one.reminders].map(count);
        [&[one.rule.clone()][..], &numbers, &[format!("{estimated}{}", count(one.tokens_discarded))]].concat()
    });
    [
        (
            "Callbacks",
            &["Extension", "Callback", "Calls", "Changed", "Failed", "Time", "Longest call"],
            callbacks.collect(),
        ),
        (
            "Tools",
            &["Tool", "Calls", "Failed or not run", "Time", "Longest call", "Waited for a person"],
            tools.collect(),
        ),
        ("Rules", &["Rule", "Matches", "Interrupts", "Reminders", "Discarded tokens"], rules.collect()),
    ]
}

fn tables(sums: &Totals, out: &mut Html) {
    out.raw("<section aria-labelledby=\"totals\">\n<h2 id=\"totals\">Totals</h2>\n");
    for (name, columns, rows) in totals(sums) {
        if rows.is_empty() {
            continue;
        }
        out.raw("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"")
            .raw(name)
            .raw("\"><table>\n<caption>");
        out.raw(name).raw("</caption>\n<thead><tr>");
        for column in columns {
            out.raw("<th scope=\"col\">").raw(column).raw("</th>");
        }
        out.raw("</tr></thead>\n<tbody>\n");
        for row in rows {
            out.raw("<tr>");
            for (at, cell) in row.iter().enumerate() {
                out.raw(if at == 0 { "<th scope=\"row\"><bdi>" } else { "<td><bdi>" }).text(cell);
                out.raw(if at == 0 { "</bdi></th>" } else { "</bdi></td>" });
            }
            out.raw("</tr>\n");
        }
        out.raw("</tbody>\n</table></div>\n");
    }
    if sums.callbacks.is_empty() && sums.tools.is_empty() && sums.rules.is_empty() {
        out.raw("<p>No callback, tool or rule is recorded.</p>\n");
    }
    out.raw("</section>\n");
}
