//! How many instances there may be at once, which idle one gives way to a call, and how long a call waits for one.
//!
//! An instance is a cache: what a plugin keeps is in its state. An idle one can therefore be dropped for a call of another session, and is
//! made again when its own session needs it. Only instances in which calls run at this moment cannot be had.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use flow::ports::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::options::InstanceCounts;
use crate::slot::{Live, Slot};

/// While calls wait, one of them looks this often for instances that became idle.
const LOOK: Duration = Duration::from_millis(10);

/// The instances of an engine.
#[derive(Debug)]
pub(crate) struct Instances {
    seats: Arc<Semaphore>,
    limit: u32,
    patience: Duration,
    waiting: AtomicUsize,
    waits: AtomicU64,
    reclaimed: AtomicU64,
    /// Locked by the call that looks for idle instances, for all that wait.
    looking: tokio::sync::Mutex<()>,
    /// Lanes with an instance that was idle when it was seen last, each at most once.
    idle: Mutex<VecDeque<Weak<Slot>>>,
}

/// The right to have one instance, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(#[expect(dead_code, reason = "held for its end")] OwnedSemaphorePermit);

/// What the list of idle instances knows about a slot.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// The slot is in the list.
    listed: AtomicBool,
    /// Its instance was used since the list was last searched: it gets a second chance (the CLOCK algorithm).
    used: AtomicBool,
}

/// No instance came free in time; the string says it to the operator.
#[derive(Debug)]
pub(crate) struct NoInstance(pub(crate) String);

/// Counts a call that waits, also where it is dropped meanwhile.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Instances {
    pub(crate) fn new(limit: u32, patience: Duration) -> Self {
        let limit = limit.max(1);
        let seats = usize::try_from(limit).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self {
            seats: Arc::new(Semaphore::new(seats)),
            limit,
            patience,
            waiting: AtomicUsize::new(0),
            waits: AtomicU64::new(0),
            reclaimed: AtomicU64::new(0),
            looking: tokio::sync::Mutex::new(()),
            idle: Mutex::default(),
        }
    }

    /// Returns the right to make an instance: at once where there are fewer than the limit or one is idle, which is dropped then, else as
    /// soon as a call has ended.
    pub(crate) async fn seat(&self, clock: &dyn Clock) -> Result<Seat, NoInstance> {
        loop {
            // A call that waits is the next one: it must not be overtaken.
            if let Some(seat) = self.free() {
                return Ok(seat);
            }
            // Another call can take what was dropped for this one.
            if !self.reclaim() {
                return self.wait(clock).await;
            }
        }
    }

    fn free(&self) -> Option<Seat> {
        Arc::clone(&self.seats).try_acquire_owned().ok().map(Seat)
    }

    async fn wait(&self, clock: &dyn Clock) -> Result<Seat, NoInstance> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        self.waits.fetch_add(1, Ordering::Relaxed);
        let mut seat = pin!(Arc::clone(&self.seats).acquire_owned());
        let mut look = pin!(self.look(clock));
        let mut patience = clock.sleep(self.patience);
        let found = poll_fn(|cx| {
            if let Poll::Ready(found) = seat.as_mut().poll(cx) {
                return Poll::Ready(found.ok());
            }
            let Poll::Pending = look.as_mut().poll(cx);
            patience.as_mut().poll(cx).map(|()| None)
        });
        found.await.map(Seat).ok_or_else(|| NoInstance(self.shortage()))
    }

    /// Drops instances that became idle for the calls that wait. One of them does it, and the next one when that has its own.
    async fn look(&self, clock: &dyn Clock) -> Infallible {
        let _looking = self.looking.lock().await;
        loop {
            clock.sleep(LOOK).await;
            for _ in 0..self.waiting.load(Ordering::SeqCst) {
                if !self.reclaim() {
                    break;
                }
            }
            // On a clock whose time passes at once, the end of the patience has to be seen, too.
            tokio::task::yield_now().await;
        }
    }

    /// An instance in the lane is idle from now on. Where calls wait, it is dropped for one of them.
    pub(crate) fn keep(&self, slot: &Arc<Slot>, lane: &mut Option<Box<Live>>, live: Box<Live>) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.reclaimed.fetch_add(1, Ordering::Relaxed);
            return drop(live);
        }
        *lane = Some(live);
        slot.idle.used.store(true, Ordering::Relaxed);
        if !slot.idle.listed.load(Ordering::Relaxed) {
            slot.idle.listed.store(true, Ordering::Relaxed);
            let mut idle = self.idle();
            idle.push_back(Arc::downgrade(slot));
            // Sessions that have ended leave their entries, so that these are removed each time that the list has doubled.
            if idle.len().is_power_of_two() {
                idle.retain(|slot| slot.strong_count() > 0);
            }
        }
    }

    /// Drops an instance that is idle, preferably one that has not been used for long. Returns whether there was one.
    fn reclaim(&self) -> bool {
        let mut idle = self.idle();
        // Twice: the first look takes the second chance.
        for _ in 0..2 * idle.len() {
            let Some(slot) = idle.pop_front().and_then(|slot| slot.upgrade()) else { continue };
            let Ok(mut lane) = slot.main.try_lock() else {
                // A call runs in it.
                idle.push_back(Arc::downgrade(&slot));
                continue;
            };
            if lane.is_some() && slot.idle.used.swap(false, Ordering::Relaxed) {
                idle.push_back(Arc::downgrade(&slot));
                continue;
            }
            // Changed by nobody else while the lane is locked.
            slot.idle.listed.store(false, Ordering::Relaxed);
            let Some(live) = lane.take() else { continue };
            drop(lane);
            drop(idle);
            drop(live);
            self.reclaimed.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        false
    }

    /// Drops all instances that are idle. Returns whether there was one.
    pub(crate) fn reclaim_all(&self) -> bool {
        let mut any = false;
        while self.reclaim() {
            any = true;
        }
        any
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Weak<Slot>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a call got no instance, and what to do.
    fn shortage(&self) -> String {
        let Self { limit, patience, .. } = self;
        format!(
            "all instances of plugins are in use ({limit}), and none came free within {patience:?}; `instances` under `[limits]` in \
             tidegate.toml raises their number"
        )
    }

    /// As [`Instances::shortage`], for components with more memories or tables than others, which the engine has too few of.
    pub(crate) fn exhausted(&self, error: &wasmtime::Error) -> String {
        let limit = self.limit;
        format!(
            "the memory that was set aside for {limit} instances of plugins is in use ({error}); `instances` under `[limits]` in \
             tidegate.toml raises their number"
        )
    }

    pub(crate) fn counts(&self) -> InstanceCounts {
        let free = u64::try_from(self.seats.available_permits()).unwrap_or(u64::MAX);
        let limit = u64::from(self.limit);
        InstanceCounts {
            in_use: limit.saturating_sub(free),
            limit,
            waiting: u64::try_from(self.waiting.load(Ordering::SeqCst)).unwrap_or(u64::MAX),
            waits: self.waits.load(Ordering::Relaxed),
            reclaimed: self.reclaimed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use flow::ports::{BoxFuture, Clock};

    use super::{Instances, LOOK};

    /// A clock on which no time passes, and which notes who waits for it.
    #[derive(Default)]
    struct Stopped(Mutex<Vec<Duration>>);

    impl Clock for Stopped {
        fn now_ms(&self) -> u64 {
            0
        }

        fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(time);
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn one_of_many_calls_that_wait_looks_for_idle_instances() {
        let (clock, instances) = (Stopped::default(), Instances::new(1, Duration::from_secs(10)));
        let looks = || clock.0.lock().map(|slept| slept.iter().filter(|time| **time == LOOK).count()).ok();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = Box::pin(instances.seat(&clock));
        let Poll::Ready(Ok(seat)) = first.as_mut().poll(&mut cx) else { panic!("it is free") };
        let mut waiting: Vec<_> = (0..9).map(|_| Box::pin(instances.seat(&clock))).collect();
        for call in &mut waiting {
            assert!(call.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!((instances.counts().waiting, looks()), (9, Some(1)));
        // Its turn is cancelled: the next one looks.
        drop(waiting.remove(0));
        for call in &mut waiting {
            assert!(call.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!((instances.counts().waiting, looks()), (8, Some(2)));
        drop(seat);
        let mut next = pin!(&mut waiting[0]);
        assert!(matches!(next.as_mut().poll(&mut cx), Poll::Ready(Ok(_))), "first come, first served");
    }
}
