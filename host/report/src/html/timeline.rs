//! The timeline: turns, their steps and attempts, and the entries of each.

use super::write::Html;
use crate::figures::clock;
use crate::report::{Log, Report, Turn};
use crate::view::{self, Block, Kind, View};

/// Lines and bytes above which a text is folded.
const LONG: (usize, usize) = (40, 4000);

pub(super) fn timeline(report: &Report, out: &mut Html) {
    out.raw("<section aria-labelledby=\"timeline\">\n<h2 id=\"timeline\">Timeline</h2>\n");
    if !report.log.entries.is_empty() || !report.log.callbacks.is_empty() {
        out.raw("<section aria-label=\"Outside of turns\">\n<h3>Outside of turns</h3>\n");
        log(&report.log, out);
        out.raw("</section>\n");
    }
    report.turns.iter().for_each(|one| turn(one, out));
    if report.turns.is_empty() {
        out.raw("<p>No turn is recorded.</p>\n");
    }
    out.raw("</section>\n");
}

fn turn(turn: &Turn, out: &mut Html) {
    let number = u64::from(turn.number);
    out.raw("<section class=\"turn\" aria-labelledby=\"turn-").number(number).raw("\">\n<h3 id=\"turn-").number(number);
    out.raw("\">Turn ").number(number).raw("</h3>\n<p class=\"line\">");
    out.text(&clock(turn.started_ms)).raw(" · ").text(&view::turn_line(turn)).raw("</p>\n");
    log(&turn.log, out);
    for step in &turn.steps {
        out.raw("<section class=\"step\">\n<h4>Step ").number(u64::from(step.number));
        // A list of headings has to tell them apart.
        out.raw(" <span class=\"of\">of turn ").number(number).raw("</span></h4>\n");
        let line = view::step_line(step);
        if !line.is_empty() {
            out.raw("<p class=\"line\">").text(&line).raw("</p>\n");
        }
        log(&step.log, out);
        for attempt in &step.attempts {
            if step.attempts.len() > 1 {
                out.raw("<section class=\"attempt\">\n<h5>Attempt ").number(u64::from(attempt.number));
                out.raw(" <span class=\"of\">of turn ").number(number).raw(", step ").number(u64::from(step.number));
                out.raw("</span></h5>\n");
            }
            log(&attempt.log, out);
            if step.attempts.len() > 1 {
                out.raw("</section>\n");
            }
        }
        out.raw("</section>\n");
    }
    out.raw("</section>\n");
}

fn log(log: &Log, out: &mut Html) {
    let mut views = log.entries.iter().filter_map(|entry| Some((entry.at_ms, view::view(entry)?))).peekable();
    if views.peek().is_some() {
        out.raw("<ol class=\"entries\">\n");
        views.for_each(|(at, view)| entry(at, &view, out));
        out.raw("</ol>\n");
    }
    if let Some(callbacks) = view::callbacks(log) {
        out.raw("<details class=\"callbacks\"><summary>Callbacks</summary><p>")
            .text(&callbacks)
            .raw("</p></details>\n");
    }
}

fn entry(at_ms: u64, view: &View<'_>, out: &mut Html) {
    out.raw(match view.kind {
        Kind::Input => "<li class=\"input\">",
        Kind::Answer => "<li class=\"answer\">",
        Kind::Stopped => "<li class=\"stopped\">",
        Kind::Tool => "<li class=\"tool\">",
        Kind::Failed => "<li class=\"failed\">",
        Kind::Rule => "<li class=\"rule\">",
        Kind::Host => "<li class=\"host\">",
        Kind::Note => "<li class=\"note\">",
    });
    out.raw("<p class=\"label\"><bdi>").text(&view.label).raw("</bdi> <span class=\"time\">");
    out.text(&clock(at_ms)).raw("</span></p>\n");
    view.blocks.iter().for_each(|one| block(one, out));
    out.raw("</li>\n");
}

fn block(block: &Block<'_>, out: &mut Html) {
    let long = block.text.len() > LONG.1 || block.text.lines().nth(LONG.0).is_some();
    let title = if block.title.is_empty() { "text" } else { block.title };
    if block.folded || long {
        out.raw("<details><summary>").text(title);
        if long {
            out.raw(", ").text(&crate::figures::of(block.text.len() as u64, "byte", "bytes"));
        }
        out.raw("</summary>\n");
    } else if !block.title.is_empty() {
        out.raw("<p class=\"title\">").text(title).raw("</p>\n");
    }
    if block.diff.is_empty() {
        out.block(&block.text, block.marks);
    } else {
        out.comparison(&block.diff);
    }
    if block.folded || long {
        out.raw("</details>\n");
    }
}
