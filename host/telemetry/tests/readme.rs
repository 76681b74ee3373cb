//! The page for operators: its table has every metric.
//!
//! The table between `<!-- metrics: … -->` and `<!-- end -->` is written by `TIDEGATE_BLESS=1`, and compared without it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use tidegate_telemetry::{METRICS, MetricKind};

const START: &str =
    "<!-- metrics: written by `TIDEGATE_BLESS=1 cargo test -p tidegate-telemetry --test it readme::` -->\n";
const END: &str = "<!-- end -->";

fn table() -> String {
    let mut table = "| metric | series | kind | labels | content |\n|---|---|---|---|---|\n".to_owned();
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, series, kind) = (metric.name, metric.series(), metric.kind.as_str());
        writeln!(table, "| `{name}` | `{series}` | {kind} | {} | {} |", labels.join(", "), metric.help).unwrap();
    }
    table.push_str("\n| histogram | upper bounds of its buckets |\n|---|---|\n");
    for metric in METRICS {
        if let MetricKind::Histogram(bounds) = metric.kind {
            let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
            writeln!(table, "| `{}` | {} |", metric.name, bounds.join(", ")).unwrap();
        }
    }
    table
}

#[test]
fn the_table_has_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("METRICS.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).expect("the page has a mark where the table begins");
    let (published, after) = rest.split_once(END).expect("the page has a mark where the table ends");
    let table = table();
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{START}{table}{END}{after}")).unwrap();
    } else {
        assert!(
            published == table,
            "the table differs; `TIDEGATE_BLESS=1 cargo test -p tidegate-telemetry --test it readme::` rewrites it"
        );
    }
}
