//! The data in memory with which conversations continue that replace others, such as after a change of settings.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use super::asides::Asides;
use super::closed::Closed;
use super::left::Left;
use super::links::Links;

/// The data that those before and those after a change of settings share.
#[derive(Clone)]
pub(super) struct Inheritance {
    pub(super) links: Arc<Mutex<Links>>,
    pub(super) asides: Arc<Mutex<Asides>>,
    /// The closed conversations of a store in memory.
    pub(super) closed: Arc<Mutex<Closed>>,
    pub(super) left: Arc<Mutex<Left>>,
    /// The total size of what all of them remember, in bytes.
    pub(super) bytes: Arc<AtomicUsize>,
}

impl Inheritance {
    /// `asides_bytes`: the maximum total size of the side requests.
    pub(super) fn new(asides_bytes: usize) -> Self {
        let asides = Arc::new(Mutex::new(Asides::new(asides_bytes)));
        let (links, closed, left, bytes) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        Self { links, asides, closed, left, bytes }
    }
}
