//! Tells a person what takes time: a line when a step begins, a sign of life while it lasts, a line when it is done.
//!
//! Lines go to standard error directly, so that the test harness does not keep them back.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After this time a step first says that it is still at it; then after twice that time, and so on.
const QUIET: Duration = Duration::from_secs(20);
/// But at least this often.
const MOST_QUIET: Duration = Duration::from_secs(300);

/// Writes one line to standard error. If standard error is closed, the line is dropped.
pub fn say(line: &str) {
    let mut line = line.to_owned();
    line.push('\n');
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// A step under way; says after 20 seconds, and then less and less often, that it still is.
#[derive(Debug)]
pub struct Step {
    name: String,
    began: Instant,
    end: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Step {
    /// Begins a step and says so.
    pub fn begin(name: impl Into<String>) -> Self {
        let name = name.into();
        say(&format!("{name} …"));
        let began = Instant::now();
        let (end, ended) = channel();
        let line = name.clone();
        let ticker = std::thread::spawn(move || tick(&line, began, &ended));
        Self { name, began, end: Some(end), ticker: Some(ticker) }
    }

    /// Ends the step, says how long it took, and gives that time.
    pub fn done(mut self) -> Duration {
        self.stop();
        let took = self.began.elapsed();
        say(&format!("{}: done in {:.1} s", self.name, took.as_secs_f64()));
        took
    }

    fn stop(&mut self) {
        self.end = None;
        if let Some(ticker) = self.ticker.take() {
            drop(ticker.join());
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.stop();
    }
}

fn tick(name: &str, began: Instant, ended: &Receiver<()>) {
    let mut quiet = QUIET;
    while ended.recv_timeout(quiet) == Err(RecvTimeoutError::Timeout) {
        say(&format!("{name}: still at it after {} s", began.elapsed().as_secs()));
        quiet = (quiet * 2).min(MOST_QUIET);
    }
}
