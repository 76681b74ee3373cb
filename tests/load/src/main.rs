//! `tidegate-load`: many sessions with real plugins on recorded streams, while plugins are reloaded and the state's server restarts.
//! Every session has a secret in its input, its stream and its state, and nothing of any other session is allowed to contain it.
//!
//! `cargo xtask load --help` has the flags. The exit code is 1 where something was wrong; times decide nothing.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

mod disturb;
mod memory;
mod place;
mod plan;
mod program;
mod recorded;
mod tally;
mod worker;

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use crate::place::Place;
use crate::plan::Plan;
use crate::tally::Tally;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = match Plan::parse(&arguments) {
        Ok(plan) => plan,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{}", plan::HELP);
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(measured(&plan)));
    match done {
        Ok((text, problems)) => {
            println!("{text}");
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What a run has measured, and what was wrong.
async fn measured(plan: &Plan) -> Result<(String, Vec<String>)> {
    if let Some(program) = &plan.program {
        if let Some(browsers) = plan.browsers {
            let served = program::serve(plan, program, browsers).await?;
            return Ok((served.to_string(), served.problems()));
        }
        let measured = program::run(plan, program.clone()).await?;
        return Ok((measured.to_string(), measured.problems()));
    }
    let tally = run(plan).await?;
    Ok((tally.to_string(), tally.problems()))
}

async fn run(plan: &Plan) -> Result<Arc<Tally>> {
    let place = Arc::new(Place::open(plan).await?);
    let tally = Arc::new(Tally::default());
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let mut workers = JoinSet::new();
    for number in 0..plan.sessions {
        workers.spawn(worker::work(number, plan.clone(), Arc::clone(&place), Arc::clone(&tally), end));
    }
    let watch = tokio::spawn(memory::watch(plan.seconds, Arc::clone(&tally)));
    let restart = tokio::spawn(disturb::restart(plan.clone(), Arc::clone(&place), Arc::clone(&tally), end));
    let done = all(workers, disturb::reload(plan.reload, &place, &tally)).await?;
    restart.await??;
    watch.await??;
    // Read by nobody's session: what is stored once all are closed.
    for one in &done {
        place.check_stored(one, &tally).await?;
    }
    place.check_metrics(&tally);
    Ok(tally)
}

/// What all sessions did. They wait for reloads, which therefore have no end of their own, and without which some would wait for ever.
///
/// # Errors
/// The first error of a session, or that of the reloads.
async fn all<T: 'static>(
    mut workers: JoinSet<Result<T>>,
    reload: impl Future<Output = Result<Infallible>>,
) -> Result<Vec<T>> {
    let mut reload = std::pin::pin!(reload);
    let mut done = Vec::new();
    loop {
        tokio::select! {
            worker = workers.join_next() => match worker {
                Some(one) => done.push(one??),
                None => return Ok(done),
            },
            ended = &mut reload => match ended.context("plugins cannot be reloaded")? {},
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use anyhow::bail;
    use tokio::task::JoinSet;

    use super::{Result, all};

    #[tokio::test]
    async fn reloads_that_end_end_the_sessions_that_wait_for_them() {
        let mut workers = JoinSet::<Result<()>>::new();
        workers.spawn(async { Ok(()) });
        workers.spawn(std::future::pending());
        let reload = async {
            tokio::task::yield_now().await;
            bail!("the disk is full")
        };
        let error = all(workers, reload).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "plugins cannot be reloaded: the disk is full");
    }
}
