//! A bar chart as inline SVG, and the same figures as a table.

use super::write::Html;

/// Bars of one chart at most; the rest is summed up.
pub(super) const MOST: usize = 40;

/// Characters of a label in the picture; the table has all of it.
const LABEL: usize = 24;

/// Where bars begin, how long the longest is, and how high each is, in units of the picture.
const LEFT: u64 = 180;
const WIDTH: u64 = 300;
const HEIGHT: u64 = 14;

/// A chart with one group of bars for each row.
#[derive(Debug)]
pub(super) struct Chart {
    /// What it shows; the heading of the figure.
    pub(super) title: &'static str,
    /// What the rows are.
    pub(super) rows_are: &'static str,
    /// The names of the bars of a row: one or two.
    pub(super) series: &'static [&'static str],
    pub(super) rows: Vec<Row>,
}

/// A row of a chart.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: String,
    /// A value for each series, with its text.
    pub(super) values: Vec<(f64, String)>,
}

impl Chart {
    pub(super) fn write(&self, out: &mut Html) {
        out.raw("<figure>\n<figcaption>").raw(self.title).raw("</figcaption>\n");
        if self.rows.is_empty() {
            out.raw("<p>None.</p>\n</figure>\n");
            return;
        }
        self.legend(out);
        self.picture(out);
        out.raw("<details><summary>").raw(self.title).raw(" as a table</summary>\n");
        self.table(out);
        out.raw("</details>\n</figure>\n");
    }

    fn legend(&self, out: &mut Html) {
        if let [first, second] = self.series {
            out.raw("<p class=\"legend\"><span class=\"key first\" aria-hidden=\"true\"></span> ").raw(first);
            out.raw(" <span class=\"key second\" aria-hidden=\"true\"></span> ").raw(second).raw("</p>\n");
        }
    }

    /// Its rows are in the table: a reader of the screen gets the title alone.
    fn picture(&self, out: &mut Html) {
        let bars = self.series.len() as u64;
        let pitch = HEIGHT * bars + 8;
        let (width, height) = (LEFT + WIDTH + 90, pitch * self.rows.len() as u64);
        let most = self.rows.iter().flat_map(|row| &row.values).map(|(value, _)| *value).fold(0.0, f64::max);
        out.raw("<svg role=\"img\" viewBox=\"0 0 ").number(width).raw(" ").number(height).raw("\" aria-label=\"");
        out.raw(self.title).raw("; the table has the figures\">\n");
        for (at, row) in (0..).zip(&self.rows) {
            let top = at * pitch + 4;
            out.raw("<text x=\"").number(LEFT - 8).raw("\" y=\"").number(top + HEIGHT * bars / 2 + 4);
            out.raw("\" text-anchor=\"end\">").text(&short(&row.label)).raw("</text>\n");
            for (bar, (value, text)) in (0..).zip(&row.values) {
                let length = if most > 0.0 { (value / most * WIDTH as f64).round() as u64 } else { 0 };
                let y = top + bar * HEIGHT;
                out.raw(if bar == 0 { "<rect class=\"first\" x=\"" } else { "<rect class=\"second\" x=\"" });
                out.number(LEFT).raw("\" y=\"").number(y).raw("\" width=\"").number(length.clamp(1, WIDTH));
                out.raw("\" height=\"").number(HEIGHT - 2).raw("\"/>\n<text x=\"").number(LEFT + length.min(WIDTH) + 6);
                out.raw("\" y=\"").number(y + HEIGHT - 3).raw("\">").text(text).raw("</text>\n");
            }
        }
        out.raw("</svg>\n");
    }

    fn table(&self, out: &mut Html) {
        out.raw("<table>\n<thead><tr><th scope=\"col\">").raw(self.rows_are).raw("</th>");
        for series in self.series {
            out.raw("<th scope=\"col\">").raw(series).raw("</th>");
        }
        out.raw("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.raw("<tr><th scope=\"row\"><bdi>").text(&row.label).raw("</bdi></th>");
            for (_, text) in &row.values {
                out.raw("<td>").text(text).raw("</td>");
            }
            out.raw("</tr>\n");
        }
        out.raw("</tbody>\n</table>\n");
    }
}

fn short(label: &str) -> String {
    let label = crate::visible::line(label);
    match label.char_indices().nth(LABEL) {
        Some((at, _)) => format!("{}…", &label[..at]),
        None => label,
    }
}
