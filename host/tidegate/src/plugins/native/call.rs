//! One call of a native extension: breaker, thread, time limit, and what a panic becomes.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Clock, EventSink, SessionView};
use flow::{
    CallAnswer, CallFailure, CallbackKind, Called, EventKind, FailureCause, InputAnswer, Message, NoAnswer,
    OutputAnswer, Part, PluginId, Reasons, ResultAnswer, SessionId, TagAnswer, TextAnswer,
};
use sandbox::{BreakerChange, SessionBreakers};
use tokio::sync::Mutex;
use tracing::Span;

use super::threads::{MOST, NoReturn, Threads};
use super::{CallError, LEFT_OUT, Native, NativeCall, NativeExtension};

/// Bytes of an error or of a panic's message that are kept.
const MESSAGE_BYTES: usize = 4 << 10;

/// A native extension in one session.
pub(super) struct Slot {
    pub(super) native: Native,
    call: NativeCall,
    threads: Threads,
    /// One callback at a time.
    lane: Mutex<()>,
    breakers: SessionBreakers,
    clock: Arc<dyn Clock>,
    output_bytes: u64,
}

/// What the sessions of a host have in common.
#[derive(Clone)]
pub(super) struct Limits {
    pub(super) clock: Arc<dyn Clock>,
    /// The most bytes that a call gives back.
    pub(super) output_bytes: u64,
}

impl Slot {
    pub(super) fn new(
        native: &Native,
        session: &SessionId,
        view: &Arc<dyn SessionView>,
        events: &Arc<dyn EventSink>,
        limits: &Limits,
    ) -> Self {
        let report = reporter(native.id().clone(), Arc::clone(events));
        let breakers = SessionBreakers::new(Arc::clone(native.breakers()), session.clone(), report);
        let (call, lane) = (NativeCall(Arc::clone(view)), Mutex::default());
        let Limits { clock, output_bytes } = limits.clone();
        let threads = Threads::default();
        Self { native: native.clone(), call, threads, lane, breakers, clock, output_bytes }
    }

    /// Makes one call, where the breakers permit it.
    pub(super) async fn call<A: Returned>(
        &self,
        callback: CallbackKind,
        call: impl FnOnce(&dyn NativeExtension, &NativeCall) -> Result<A, CallError> + Send + 'static,
    ) -> Result<A, NoAnswer> {
        let _lane = match callback {
            CallbackKind::TtsrTriggered => None,
            _ => Some(self.lane.lock().await),
        };
        let called = Called::Callback(callback);
        let admission = self.breakers.admit(&called, || self.clock.now_ms()).map_err(NoAnswer::NotPermitted)?;
        let ended = run(self, call).await.and_then(|answer| {
            let (bytes, max) = (answer.bytes() as u64, self.output_bytes);
            let too_large = || (FailureCause::Size, format!("returned {bytes} bytes, the limit is {max}"));
            if bytes > max { Err(too_large()) } else { Ok(answer) }
        });
        match ended {
            Ok(mut answer) => {
                admission.succeeded();
                if self.native.is_discreet() {
                    answer.leave_out(LEFT_OUT);
                }
                Ok(answer)
            }
            Err((cause, message)) => {
                admission.failed(self.clock.now_ms());
                let plugin = self.native.id().clone();
                Err(CallFailure { plugin, called, cause, message, frames: Vec::new() }.into())
            }
        }
    }
}

/// Runs a call. After its time limit its result is ignored.
async fn run<A: Send + 'static>(
    slot: &Slot,
    call: impl FnOnce(&dyn NativeExtension, &NativeCall) -> Result<A, CallError> + Send + 'static,
) -> Result<A, (FailureCause, String)> {
    let native = &slot.native;
    let (extension, session, span, time) =
        (Arc::clone(&native.extension), slot.call.clone(), Span::current(), native.time);
    let work = move || {
        let _inside = span.enter();
        call(&*extension, &session).map_err(|error| error.to_string())
    };
    match slot.threads.run(time, work).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err((FailureCause::Returned, native.words(cut(error)))),
        Err(NoReturn::Panic(panic)) => {
            Err((FailureCause::Panic, format!("panicked: {}", native.words(cut(words(&*panic))))))
        }
        Err(NoReturn::Late) => Err((FailureCause::Timeout, took_longer(time))),
        Err(NoReturn::Busy) => {
            Err((FailureCause::Timeout, format!("was not called: {MOST} earlier calls of it in the session run on")))
        }
        Err(NoReturn::NoThread(error)) => Err((FailureCause::Host, format!("could not be run: {error}"))),
    }
}

fn took_longer(time: Duration) -> String {
    format!("took longer than {} ms, and runs on: native code cannot be stopped", time.as_millis())
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    message
}

/// Changes of its breakers are events of the session.
fn reporter(plugin: PluginId, events: Arc<dyn EventSink>) -> sandbox::BreakerReport {
    Box::new(move |BreakerChange { scope, state, called, reason, retry_after_ms, .. }| {
        let plugin = plugin.clone();
        events.emit(EventKind::ExtensionBreaker { plugin, called, scope, state, reason, retry_after_ms });
    })
}

/// What a callback gives back, by its size.
pub(super) trait Returned: Reasons + Send + 'static {
    fn bytes(&self) -> usize;
}

impl Returned for () {
    fn bytes(&self) -> usize {
        0
    }
}

impl Returned for InputAnswer {
    fn bytes(&self) -> usize {
        match self {
            Self::Pass => 0,
            Self::Replace(messages) | Self::Finish(Some(messages)) => messages.iter().map(size).sum(),
            Self::Finish(None) => 0,
            Self::Reply(text) | Self::Reject(text) | Self::Ignored(text) => text.len(),
        }
    }
}

/// Returns the size of a message's text in bytes.
fn size(message: &Message) -> usize {
    message.parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum()
}

impl Returned for TextAnswer {
    fn bytes(&self) -> usize {
        match self {
            Self::Pass => 0,
            Self::Replace(text) | Self::Ignored(text) => text.len(),
        }
    }
}

impl Returned for TagAnswer {
    fn bytes(&self) -> usize {
        match self {
            Self::Keep => 0,
            Self::Content(text) | Self::Replace(text) | Self::Ignored(text) => text.len(),
        }
    }
}

impl Returned for OutputAnswer {
    fn bytes(&self) -> usize {
        self.replace.as_ref().map_or(0, String::len) + noted(&self.annotations)
    }
}

fn noted(annotations: &[flow::Annotation]) -> usize {
    annotations.iter().map(|one| one.key.len() + one.value.to_string().len()).sum()
}

impl Returned for CallAnswer {
    fn bytes(&self) -> usize {
        match self {
            Self::Pass => 0,
            Self::Replace(text) | Self::Ignored(text) => text.len(),
            Self::Deny { reason, shown } => reason.len() + shown.as_ref().map_or(0, String::len),
        }
    }
}

impl Returned for ResultAnswer {
    fn bytes(&self) -> usize {
        let replaced = self.replace.as_ref().map_or(0, |(blocks, diff)| {
            blocks.iter().map(String::len).sum::<usize>() + diff.as_ref().map_or(0, String::len)
        });
        replaced + noted(&self.annotations)
    }
}
