//! What front ends cost a session: events to many subscribers, compared with a broadcast channel.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{BoxFuture, Clock, EventSink as _};
use flow::{Event, EventKind, RunPosition};
use tokio::sync::broadcast;
use turn::Hub;

use crate::support::{Aim, Lane, Table, criterion, race, ready};

const SUBSCRIBERS: usize = 1_000;
/// Deltas between two moments at which subscribers read.
const DELTAS: u32 = 16;

pub(crate) fn bench() {
    let mut table = Table::new("front-ends");
    let (hub, channel) = (hub_round(SUBSCRIBERS), channel_round(SUBSCRIBERS));
    let alone = hub_round(1);
    let lanes = vec![
        Lane::new("broadcast channel", channel),
        Lane::new("events of a session", hub),
        Lane::new("one subscriber", alone),
    ];
    let times = race(&mut criterion(), "subscribers", 101, lanes);
    let deltas = SUBSCRIBERS as f64 * f64::from(DELTAS);
    table.row("a delta to 1,000 subscribers ÷ tokio's broadcast channel", Aim::None, times.ratio(1, 0), "×");
    table.row("– for each of 1,000 subscribers", Aim::None, times.of(1) / deltas, "ns");
    table.row("– for each receiver of the channel", Aim::None, times.of(0) / deltas, "ns");
    table.row("– with one subscriber", Aim::None, times.of(2) / f64::from(DELTAS), "ns");
    table.finish();
}

fn delta(index: u32) -> EventKind {
    EventKind::CognitionOutDelta { text: "word".into(), index, is_final: false }
}

/// Emits deltas, and then every subscriber reads them.
fn hub_round(subscribers: usize) -> impl FnMut() {
    let hub = Hub::new(Arc::new(Stopped));
    let mut subscriptions: Vec<_> = (0..subscribers).map(|_| hub.subscribe()).collect();
    move || {
        (0..DELTAS).for_each(|index| hub.emit(delta(index)));
        for subscription in &mut subscriptions {
            for _ in 0..DELTAS {
                assert!(black_box(ready(subscription.next())).is_some());
            }
        }
    }
}

/// The same with a channel that keeps the last events for all receivers, and loses what a slow one has not read.
fn channel_round(receivers: usize) -> impl FnMut() {
    let (sender, first) = broadcast::channel(DELTAS as usize);
    let mut all = vec![first];
    all.resize_with(receivers, || sender.subscribe());
    let mut seq = 0;
    move || {
        for index in 0..DELTAS {
            assert!(sender.send(Event::new(seq, 0, RunPosition::default(), delta(index))).is_ok());
            seq += 1;
        }
        for receiver in &mut all {
            for _ in 0..DELTAS {
                assert!(black_box(ready(receiver.recv())).is_ok());
            }
        }
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
