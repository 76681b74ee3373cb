//! The links in memory, by which conversations are found.

use std::collections::HashMap;

use flow::SessionId;

/// The maximum number of links in memory; beyond it, the older half is dropped, and found in the store.
const MOST: usize = 100_000;

/// A point of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) id: SessionId,
    /// The number of turns that had ended there.
    pub(super) completed: u64,
    /// The name of the point; empty at the beginning of the conversation.
    pub(super) point: String,
}

impl Link {
    /// Returns the line under which stores keep it.
    pub(super) fn line(&self) -> String {
        format!("{} {} {}", self.id, self.completed, self.point)
    }

    /// Parses a line; returns `None` if it is invalid.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let (id, completed) = (words.next().filter(|id| !id.is_empty())?, words.next()?.parse().ok()?);
        Some(Self { id: SessionId::new(id), completed, point: words.next()?.to_owned() })
    }
}

/// Links by their names.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: HashMap<String, (Link, u64)>,
    used: u64,
}

impl Links {
    /// Returns the first of these names that is known, with its index.
    pub(super) fn first(&mut self, names: &[String]) -> Option<(usize, Link)> {
        self.used += 1;
        let used = self.used;
        names.iter().enumerate().find_map(|(at, name)| {
            let (link, last) = self.all.get_mut(name)?;
            *last = used;
            Some((at, link.clone()))
        })
    }

    pub(super) fn insert(&mut self, name: &str, link: Link) {
        if self.all.len() >= MOST {
            let mut used: Vec<u64> = self.all.values().map(|(_, used)| *used).collect();
            let middle = used.len() / 2;
            let (_, median, _) = used.select_nth_unstable(middle);
            let median = *median;
            self.all.retain(|_, (_, used)| *used > median);
        }
        self.used += 1;
        self.all.insert(name.to_owned(), (link, self.used));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for point in ["", "0af3"] {
            let link = Link { id: SessionId::new("gateway-1"), completed: 7, point: point.to_owned() };
            assert_eq!(Link::parse(&link.line()), Some(link));
        }
        for line in ["", " 1 a", "id", "id x a", "id 1"] {
            assert_eq!(Link::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten_first() {
        let mut links = Links::default();
        let link = |at: usize| Link { id: SessionId::new(at.to_string()), completed: 0, point: String::new() };
        for at in 0..MOST {
            links.insert(&at.to_string(), link(at));
        }
        assert_eq!(links.first(&["0".to_owned()]), Some((0, link(0))));
        links.insert("one more", link(MOST));
        assert_eq!(links.first(&["0".to_owned()]), Some((0, link(0))), "it was used");
        assert_eq!(links.first(&["1".to_owned(), "one more".to_owned()]), Some((1, link(MOST))));
        assert!(links.all.len() <= MOST / 2 + 1);
    }
}
