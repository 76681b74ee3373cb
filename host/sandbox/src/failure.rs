//! What went wrong in a guest, as a cause, one line and frames.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use flow::FailureCause;
use rustix::io::Errno;
use wasmtime::{Store, Trap, WasmBacktrace};

use crate::engine::MAX_FRAMES;
use crate::guest::Guest;
use crate::meter::Meter;

/// How a call failed, before it has words.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The engine ended it: a trap, a limit, a value that does not lift.
    Engine(wasmtime::Error),
    /// The guest returned an error.
    Returned(String),
    /// What it returned is too large.
    Size { bytes: usize, max: usize },
    /// The host panicked while it served the call.
    HostPanic(String),
    /// Its answer follows the types of the contract and means nothing to this host.
    Unusable(String),
    /// The export does not exist.
    Missing,
}

/// Runs a call, each poll as a stretch of the meter; a panic of the host over a value from the guest becomes a fault. What
/// the call touched is dropped with its store, so that nothing half-done is seen afterwards.
pub(crate) async fn caught<T>(meter: &Meter, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let mut call = pin!(call);
    std::future::poll_fn(|cx| match meter.stretch(|| catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)))) {
        Ok(polled) => polled,
        Err(payload) => Poll::Ready(Err(panicked(payload.as_ref()))),
    })
    .await
}

/// Takes over the payload of a caught panic.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Fault {
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Fault::HostPanic(text.unwrap_or_else(|| "no message".to_owned()))
}

/// A failure with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) cause: FailureCause,
    pub(crate) message: String,
    pub(crate) frames: Vec<String>,
}

impl Described {
    pub(crate) fn new(cause: FailureCause, message: String) -> Self {
        Self { cause, message, frames: Vec::new() }
    }
}

/// Puts a fault into words. `store` is the one it happened in; `millis` is the time the call had.
pub(crate) fn describe(fault: Fault, store: &mut Store<Guest>, millis: u128) -> Described {
    let guest = store.data_mut();
    match fault {
        Fault::Returned(message) => Described::new(FailureCause::Returned, guest.plugin.words(message)),
        Fault::Size { bytes, max } => {
            Described::new(FailureCause::Size, format!("returned {bytes} bytes, the limit is {max}"))
        }
        Fault::HostPanic(text) => {
            let text = guest.plugin.words(text);
            Described::new(FailureCause::Host, format!("the host panicked while it served this call: {text}"))
        }
        Fault::Unusable(why) => {
            let why = guest.plugin.words(why);
            Described::new(FailureCause::Malformed, format!("its answer cannot be used: {why}"))
        }
        Fault::Missing => Described::new(FailureCause::Start, "the component does not export this callback".to_owned()),
        Fault::Engine(error) => engine(&error, guest, millis),
    }
}

fn engine(error: &wasmtime::Error, guest: &mut Guest, millis: u128) -> Described {
    let (refused, exhausted) = (guest.limiter.take_refused(), guest.limiter.take_exhausted());
    let trap = error.downcast_ref::<Trap>();
    let (cause, message) = if guest.call.timed_out {
        (FailureCause::Timeout, format!("took longer than {millis} ms"))
    } else if let (Some(bytes), true) = (refused, trap.is_some() || guest.call.panic.is_some()) {
        (FailureCause::Memory, memory_words(bytes, guest))
    } else if let Some(why) = exhausted.or_else(|| out_of_memory(error)) {
        (FailureCause::NoInstance, format!("the system has no memory left for an instance of the plugin ({why})"))
    } else if let Some(panic) = guest.call.panic.take() {
        (FailureCause::Panic, format!("panicked at {}: {}", panic.place, guest.plugin.words(panic.message)))
    } else if let Some(trap) = trap {
        (FailureCause::Trap, trap_words(*trap))
    } else if is_crossing_limit(error) {
        let max = guest.plugin.limits.crossing_bytes();
        (FailureCause::Size, format!("passed more than {max} bytes to the host at once"))
    } else {
        (FailureCause::Malformed, format!("does not conform to the contract: {}", error.root_cause()))
    };
    Described { cause, message, frames: frames(error) }
}

fn memory_words(bytes: usize, guest: &Guest) -> String {
    format!("requested {bytes} bytes of memory, the limit is {}", guest.plugin.limits.memory_bytes)
}

/// Why the system refused memory to the engine, where that is the error. It says nothing about the plugin.
fn out_of_memory(error: &wasmtime::Error) -> Option<String> {
    let errno = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => error.raw_os_error().map(Errno::from_raw_os_error),
        None => cause.downcast_ref::<Errno>().copied(),
    };
    error.chain().filter_map(errno).find(|errno| *errno == Errno::NOMEM).map(|errno| errno.to_string())
}

/// The engine has no type for this error that could be named here; a test pins its message.
fn is_crossing_limit(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted")
}

fn trap_words(trap: Trap) -> String {
    match trap {
        Trap::UnreachableCodeReached => "trapped (`unreachable`) without a message".to_owned(),
        Trap::StackOverflow => "used up its call stack: endless or too deep recursion".to_owned(),
        other => other.to_string(),
    }
}

/// The functions that were running, innermost first; a function that calls itself is one entry.
fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let names = trace.frames().iter().map(|frame| match frame.func_name() {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    });
    // A panic passes through the machinery of the standard library first, which is of no use to an author.
    let names = names.skip_while(|name| PANIC_MACHINERY.iter().any(|start| name.starts_with(start)));
    let mut runs: Vec<(String, u32)> = Vec::new();
    for name in names {
        match runs.last_mut() {
            Some((last, times)) if *last == name => *times += 1,
            _ => runs.push((name, 1)),
        }
    }
    // Beyond the limit there may be any number of frames.
    let is_cut = trace.frames().len() >= MAX_FRAMES;
    let last = runs.len().saturating_sub(1);
    let run = |(at, (name, times))| match times {
        1 => name,
        times if is_cut && at == last => format!("{name} (at least {times} frames)"),
        times => format!("{name} ({times} frames)"),
    };
    runs.into_iter().enumerate().map(run).collect()
}

const PANIC_MACHINERY: [&str; 5] =
    ["__rustc::", "std::panicking::", "std::sys::backtrace::", "core::panicking::", "core::result::unwrap_failed"];

/// An instance could not be created: too little memory, a failing start function, a limit during instantiation.
pub(crate) fn describe_start(error: &wasmtime::Error, store: &mut Store<Guest>, millis: u128) -> Described {
    let guest = store.data_mut();
    // Memory that an instance is born with is refused without a trap.
    let refused = guest.limiter.take_refused();
    let mut described = engine(error, guest, millis);
    if let Some(bytes) = refused {
        (described.cause, described.message) = (FailureCause::Memory, memory_words(bytes, guest));
    } else if described.cause == FailureCause::Timeout {
        described.message = format!("could not be started: {}", described.message);
    } else if described.cause != FailureCause::NoInstance {
        described.message = format!("could not be started: {:#}", error.root_cause());
        described.cause = FailureCause::Start;
    }
    described
}
