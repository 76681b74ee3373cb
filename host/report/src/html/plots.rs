//! The plots of a session: tokens and time by turn, time by callback and by tool, discarded tokens by rule.

use super::svg::{Chart, MOST, Row};
use super::write::Html;
use crate::figures::{count, took, took_ms};
use crate::report::{Report, Turn};
use crate::totals::Totals;

pub(super) fn plots(report: &Report, totals: &Totals, out: &mut Html) {
    out.raw("<section aria-labelledby=\"figures\">\n<h2 id=\"figures\">Figures</h2>\n<div class=\"figures\">\n");
    let charts = [tokens(report), time(report), callbacks(totals), tools(totals), rules(totals)];
    charts.iter().for_each(|chart| chart.write(out));
    out.raw("</div>\n</section>\n");
}

/// The turns in at most [`MOST`] groups of adjacent ones, each with its label.
fn groups(report: &Report) -> impl Iterator<Item = (String, &[Turn])> {
    let size = report.turns.len().div_ceil(MOST).max(1);
    report.turns.chunks(size).map(|turns| {
        let label = match turns {
            [one] => format!("Turn {}", one.number),
            [first, .., last] => format!("Turns {} to {}", first.number, last.number),
            [] => String::new(),
        };
        (label, turns)
    })
}

fn tokens(report: &Report) -> Chart {
    let row = |(label, turns): (String, &[Turn])| {
        let mut sums = [None, None];
        for tokens in turns.iter().map(Turn::tokens) {
            for (sum, more) in sums.iter_mut().zip([tokens.input_tokens, tokens.output_tokens]) {
                *sum = more.map(|more| sum.unwrap_or(0u64).saturating_add(more)).or(*sum);
            }
        }
        let value = |sum: Option<u64>| (sum.unwrap_or(0) as f64, crate::figures::known(sum));
        Row { label, values: sums.map(value).into() }
    };
    let rows = groups(report).map(row).collect();
    Chart { title: "Tokens by turn", rows_are: "Turn", series: &["Tokens in", "Tokens out"], rows }
}

fn time(report: &Report) -> Chart {
    let row = |(label, turns): (String, &[Turn])| {
        let ms = turns.iter().map(Turn::duration_ms).fold(0, u64::saturating_add);
        Row { label, values: vec![(ms as f64, took_ms(ms))] }
    };
    Chart { title: "Time by turn", rows_are: "Turn", series: &["Time"], rows: groups(report).map(row).collect() }
}

fn callbacks(totals: &Totals) -> Chart {
    let rows = totals.callbacks.iter().map(|one| (format!("{} {}", one.extension, one.callback), one.total_us));
    Chart {
        title: "Time by callback",
        rows_are: "Extension and callback",
        series: &["Time"],
        rows: longest(rows, took),
    }
}

fn tools(totals: &Totals) -> Chart {
    let rows = totals.tools.iter().map(|one| (one.tool.clone(), one.total_ms as f64));
    Chart { title: "Time by tool", rows_are: "Tool", series: &["Time"], rows: longest(rows, |ms| took_ms(ms as u64)) }
}

fn rules(totals: &Totals) -> Chart {
    let estimated = totals.rules.iter().any(|one| one.tokens_estimated);
    let rows = totals.rules.iter().map(|one| (one.rule.clone(), one.tokens_discarded as f64));
    let series: &[_] =
        if estimated { &["Tokens, estimated where the provider did not count them"] } else { &["Tokens"] };
    let rows = longest(rows, |tokens| count(tokens as u64));
    Chart { title: "Discarded tokens by rule", rows_are: "Rule", series, rows }
}

/// The first rows, and one for all others.
fn longest(rows: impl ExactSizeIterator<Item = (String, f64)>, text: impl Fn(f64) -> String) -> Vec<Row> {
    let others = rows.len().saturating_sub(MOST - 1);
    let keep = if others > 1 { MOST - 1 } else { rows.len() };
    let (mut first, mut rest) = (Vec::new(), 0.0);
    for (at, (label, value)) in rows.enumerate() {
        if at < keep { first.push(Row { label, values: vec![(value, text(value))] }) } else { rest += value }
    }
    if others > 1 {
        first.push(Row { label: format!("{others} others"), values: vec![(rest, text(rest))] });
    }
    first
}
