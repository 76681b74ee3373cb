//! A report as one HTML page that needs no network and no script.

mod page;
mod plots;
mod svg;
mod timeline;
mod write;

pub(crate) use self::page::{facts, totals};

use crate::report::Report;

/// Returns the page. Its size is proportional to that of the session's texts.
pub fn html(report: &Report) -> String {
    let mut out = write::Html::default();
    page::page(report, &mut out);
    out.finish()
}
