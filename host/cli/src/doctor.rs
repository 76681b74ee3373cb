//! `tidegate doctor`: one line a check, what is wrong with what to do.

use std::io::Write;

use tidegate::{Health, Host};

use crate::args::{Common, ProviderArgs};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, screen, style};

/// Runs all checks; the exit code says whether all were good.
pub(crate) async fn run(common: &Common, provider: &ProviderArgs) -> Result<Exit, Failure> {
    let mut operator = open::operator(common)?;
    open::choose_provider(&mut operator, provider)?;
    let checks = Host::builder(operator, &common.workspace).max_instances(open::MAX_INSTANCES).doctor().await;
    let mut out = screen::out();
    for check in &checks {
        let mark = match check.health {
            Health::Good => style::out(style::GOOD, "ok  "),
            Health::Warning => style::out(style::WARNING, "look"),
            Health::Bad => style::out(style::BAD, "BAD "),
        };
        writeln!(out, "{mark} {}: {}", style::out(style::STRONG, &check.what), flat(&check.detail))?;
    }
    let bad = checks.iter().filter(|check| check.health == Health::Bad).count();
    let looks = checks.iter().filter(|check| check.health == Health::Warning).count();
    writeln!(out, "{} checks: {bad} bad, {looks} to look at", checks.len())?;
    Ok(if bad == 0 { Exit::Completed } else { Exit::Failed })
}
