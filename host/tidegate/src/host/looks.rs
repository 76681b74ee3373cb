//! Looks at files that many sessions ask for at once: one look answers all who asked before it began.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the looks at some files. One runs at a time.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// What somebody has asked for: a look that begins after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(u64);

impl Looks {
    pub(crate) fn ask(&self) -> Asked {
        Asked(self.begun.load(Ordering::SeqCst))
    }

    /// Whether a look has begun since, and has ended.
    pub(crate) fn is_answered(&self, asked: Asked) -> bool {
        self.ended.load(Ordering::SeqCst) > asked.0
    }

    /// Runs a look, while nobody else does.
    pub(crate) fn run<T>(&self, look: impl FnOnce() -> T) -> T {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let seen = look();
        self.ended.store(number, Ordering::SeqCst);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::Looks;

    #[test]
    fn a_look_answers_those_who_asked_before_it_began() {
        let looks = Looks::default();
        let before = looks.ask();
        assert!(!looks.is_answered(before), "nobody has looked");
        let meanwhile = looks.run(|| {
            assert!(!looks.is_answered(before), "it has not ended");
            looks.ask()
        });
        assert!(looks.is_answered(before));
        assert!(!looks.is_answered(meanwhile), "an edit can be newer than what the look has read");
        looks.run(|| ());
        assert!(looks.is_answered(meanwhile) && !looks.is_answered(looks.ask()));
    }
}
