//! How many agents can be started.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many agents a session can start, those that they start included.
const SPAWNS: u32 = 10;

/// What is left of it. What a child takes is taken from all sessions above it.
pub(super) struct Spawns {
    left: AtomicU32,
    most: u32,
    above: Option<Arc<Self>>,
}

impl Default for Spawns {
    fn default() -> Self {
        Self { left: AtomicU32::new(SPAWNS), most: SPAWNS, above: None }
    }
}

impl Spawns {
    /// Those of a child.
    pub(super) fn below(above: &Arc<Self>, most: Option<u32>) -> Self {
        let most = most.unwrap_or(SPAWNS);
        Self { left: AtomicU32::new(most), most, above: Some(Arc::clone(above)) }
    }

    /// Takes one.
    ///
    /// # Errors
    /// None is left: how many there were, here or in the session above whose are used up.
    pub(super) fn take(&self) -> Result<(), u32> {
        let one_less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).map_err(|_| self.most)?;
        let taken = self.above.as_ref().map_or(Ok(()), |above| above.take());
        if taken.is_err() {
            self.left.fetch_add(1, Ordering::SeqCst);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Spawns;

    #[test]
    fn what_children_start_is_counted_for_all_above_them() {
        let main = Arc::new(Spawns::default());
        let children = [Some(3), None].map(|most| Arc::new(Spawns::below(&main, most)));
        let taken = |spawns: &Spawns, times: usize| (0..times).map(|_| spawns.take()).collect::<Vec<_>>();
        assert_eq!(taken(&main, 2), [Ok(()); 2]);
        assert_eq!(taken(&children[0], 4), [Ok(()), Ok(()), Ok(()), Err(3)]);
        assert_eq!(taken(&children[1], 6), [Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), Err(10)]);
        assert_eq!(main.take(), Err(10));
        assert_eq!(Spawns::below(&main, Some(0)).take(), Err(0));
    }
}
