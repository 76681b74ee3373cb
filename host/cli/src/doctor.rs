//! `tidegate doctor`: one line a check, what is wrong with what to do.

use std::io::Write;

use serde_json::json;
use tidegate::diagnostic::{Check, Health};
use tidegate::{Host, Operator};

use crate::args::{Common, Doctor};
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{gateway, open, say, screen, session, state, style};

/// Runs all checks; the exit code tells whether all passed.
///
/// JSON is one object: `{"checks": [{"what": "provider", "health": "good", "detail": "…", "code": null}], "bad": 0,
/// "warnings": 1}`; `health` is `good`, `warning` or `bad`; `code` is that of the problem, if it has one.
pub(crate) async fn run(common: &Common, args: &Doctor) -> Result<Exit, Failure> {
    let settings = open::reader(common).read(&common.workspace)?;
    open::note_other_file(common, &settings);
    let mut operator = open::with_flags(common, settings.operator().clone())?;
    open::choose_provider(&mut operator, &args.provider)?;
    // The stores of sessions that outlive the program, which `run` uses.
    state::keep(&mut operator);
    session::keep(&mut operator);
    let mut checks: Vec<Check> = settings.check().into_iter().collect();
    checks.extend(certificates(&operator));
    checks.extend(gateway::doctor(common, &open::under_policy(operator.clone())?).await);
    // A gateway needs no model of its own: its clients choose theirs.
    let needs_model = operator.provider.kind.is_some() || operator.gateway.routes.is_empty();
    let mut builder = Host::builder(operator).max_instances(open::MAX_INSTANCES);
    if !needs_model {
        builder = builder.without_model();
    }
    checks.extend(builder.doctor(&common.workspace).await);
    let count = |health| checks.iter().filter(|check| check.health == health).count();
    let (bad, warnings) = (count(Health::Bad), count(Health::Warning));
    if args.json {
        let checks: Vec<_> = checks
            .iter()
            .map(|one| {
                let code = one.code.map(|code| code.as_str());
                json!({"what": one.what, "health": health(one.health), "detail": one.detail, "code": code})
            })
            .collect();
        screen::json(&json!({"checks": checks, "bad": bad, "warnings": warnings}))?;
    } else {
        text(&checks)?;
    }
    Ok(if bad == 0 { Exit::Completed } else { Exit::Failed })
}

/// Checks the certificates of servers for clients.
fn certificates(operator: &Operator) -> Vec<Check> {
    let of_gateway = operator.gateway.certificate.as_ref().map(serve::gateway::check_certificate);
    let of_serve = operator.serve.certificate.as_ref().map(serve::http::check_certificate);
    let checked = [("gateway", of_gateway), ("serve", of_serve)];
    let checked = checked.into_iter().filter_map(|(table, checked)| Some((table, checked?)));
    checked
        .map(|(table, checked)| {
            let what = format!("certificate of [{table}]");
            match checked {
                Ok((health, detail)) => Check::new(what, health, detail),
                Err(found) => Check::new(what, Health::Bad, Failure::from(found).into_line()),
            }
        })
        .collect()
}

fn health(health: Health) -> &'static str {
    match health {
        Health::Good => "good",
        Health::Warning => "warning",
        Health::Bad => "bad",
    }
}

fn text(checks: &[Check]) -> std::io::Result<()> {
    let mut out = screen::out();
    // The rules that come with the program are many: only those with a problem have a line.
    let (folded, told): (Vec<&Check>, Vec<&Check>) =
        checks.iter().partition(|check| check.is_built_in && check.health == Health::Good);
    for check in told {
        let mark = match check.health {
            Health::Good => style::out(style::GOOD, "ok  "),
            Health::Warning => style::out(style::WARNING, "warn"),
            Health::Bad => style::out(style::BAD, "fail"),
        };
        writeln!(out, "{mark} {}: {}", style::out(style::STRONG, &check.what), flat(&check.detail))?;
    }
    if !folded.is_empty() {
        let mark = style::out(style::GOOD, "ok  ");
        let what = style::out(style::STRONG, "built-in rules");
        writeln!(out, "{mark} {what}: {} without a problem; `tidegate rules list` lists them", folded.len())?;
    }
    let count = |health| checks.iter().filter(|check| check.health == health).count() as u64;
    let all = say::count(checks.len() as u64, "check", "checks");
    let warnings = say::count(count(Health::Warning), "warning", "warnings");
    writeln!(out, "{all}: {} failed, {warnings}", count(Health::Bad))?;
    out.flush()
}
