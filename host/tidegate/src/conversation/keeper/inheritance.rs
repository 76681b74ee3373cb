//! The data in memory that conversations share with those that they replace, such as after a change of settings.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use super::closed::Closed;
use super::links::Links;
use super::side_requests::SideRequests;

/// The data that conversations share with those that they replace.
#[derive(Clone)]
pub(super) struct Inheritance {
    pub(super) links: Arc<Mutex<Links>>,
    pub(super) side_requests: Arc<Mutex<SideRequests>>,
    /// The closed conversations of a store in memory.
    pub(super) closed: Arc<Mutex<Closed>>,
    /// The total size of the data of all conversations, in bytes.
    pub(super) bytes: Arc<AtomicUsize>,
}

impl Inheritance {
    /// `side_bytes`: the maximum total size of the side requests.
    pub(super) fn new(side_bytes: usize) -> Self {
        let side_requests = Arc::new(Mutex::new(SideRequests::new(side_bytes)));
        let (links, closed, bytes) = (Arc::default(), Arc::default(), Arc::default());
        Self { links, side_requests, closed, bytes }
    }
}
