//! A persistent list: clones share everything, and a change copies one path of a shallow tree.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Entries of a node. A change of an entry that a clone shares copies this many entries for each level.
const WIDTH: usize = 16;

/// A list whose clones share their entries. Cloning takes constant time; adding and changing an entry takes constant time up to a
/// logarithm to the base 16, also while clones exist.
#[derive(Clone)]
pub struct List<T> {
    /// Full leaves, as a radix tree of `height` levels above them.
    root: Option<Arc<Node<T>>>,
    height: u32,
    /// The last entries, fewer than `WIDTH`.
    tail: Arc<Vec<T>>,
    len: usize,
}

#[derive(Clone)]
enum Node<T> {
    Branch(Vec<Arc<Node<T>>>),
    Leaf(Vec<T>),
}

impl<T> List<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entry at `index`, from 0.
    pub fn get(&self, index: usize) -> Option<&T> {
        let in_tree = self.len - self.tail.len();
        if index >= in_tree {
            return self.tail.get(index - in_tree);
        }
        let mut node = self.root.as_deref()?;
        for level in (0..=self.height).rev() {
            match node {
                Node::Branch(nodes) => node = nodes.get(slot(index, level))?,
                Node::Leaf(entries) => return entries.get(slot(index, 0)),
            }
        }
        None
    }

    /// Returns the last entry.
    pub fn last(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|index| self.get(index).unwrap_or_else(|| unreachable!("an index below the length")))
    }

    /// Whether both are the same list in memory, so that they need not be compared.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let root = match (&self.root, &other.root) {
            (None, None) => true,
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        root && self.len == other.len && Arc::ptr_eq(&self.tail, &other.tail)
    }
}

impl<T> List<Shared<T>> {
    /// The indices of the entries that are another value in memory than in `before`, or are not in it, in order. What both lists share is not
    /// visited.
    pub fn differing(&self, before: &Self) -> Vec<usize> {
        let mut found = Vec::new();
        let in_tree = self.len - self.tail.len();
        let same_shape = self.height == before.height;
        match (&self.root, &before.root) {
            (Some(node), Some(old)) if same_shape => node.differing(old, 0, self.height, &mut found),
            _ => found.extend((0..in_tree).filter(|index| !self.is_same_at(before, *index))),
        }
        if !Arc::ptr_eq(&self.tail, &before.tail) {
            found.extend((in_tree..self.len).filter(|index| !self.is_same_at(before, *index)));
        }
        found
    }

    fn is_same_at(&self, other: &Self, index: usize) -> bool {
        matches!((self.get(index), other.get(index)), (Some(one), Some(two)) if one.is_same(two))
    }
}

impl<T> Node<Shared<T>> {
    /// Adds the indices of entries that differ from those of a node of the same level, the first of which is `first`.
    fn differing(self: &Arc<Self>, before: &Arc<Self>, first: usize, level: u32, found: &mut Vec<usize>) {
        if Arc::ptr_eq(self, before) {
            return;
        }
        match (&**self, &**before) {
            (Node::Branch(nodes), Node::Branch(old)) => {
                for (at, node) in nodes.iter().enumerate() {
                    let first = first + (at << (4 * level));
                    match old.get(at) {
                        Some(old) => node.differing(old, first, level.saturating_sub(1), found),
                        None => node.all(first, level.saturating_sub(1), found),
                    }
                }
            }
            (Node::Leaf(entries), Node::Leaf(old)) => {
                let differs = |at: &usize| !old.get(*at).is_some_and(|old| old.is_same(&entries[*at]));
                found.extend((0..entries.len()).filter(differs).map(|at| first + at));
            }
            _ => self.all(first, level, found),
        }
    }

    /// Adds the indices of all entries.
    fn all(&self, first: usize, level: u32, found: &mut Vec<usize>) {
        match self {
            Node::Branch(nodes) => {
                for (at, node) in nodes.iter().enumerate() {
                    node.all(first + (at << (4 * level)), level.saturating_sub(1), found);
                }
            }
            Node::Leaf(entries) => found.extend(first..first + entries.len()),
        }
    }
}

impl<T: Clone> List<T> {
    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        let tail = Arc::make_mut(&mut self.tail);
        if tail.capacity() == 0 {
            tail.reserve_exact(WIDTH.min(4));
        }
        tail.push(entry);
        self.len += 1;
        if tail.len() == WIDTH {
            let leaf = Arc::new(Node::Leaf(std::mem::take(tail)));
            self.graft(leaf);
        }
    }

    /// Returns the entry at `index` to change it. What clones share is copied first.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let in_tree = self.len - self.tail.len();
        if index >= in_tree {
            return Arc::make_mut(&mut self.tail).get_mut(index - in_tree);
        }
        let mut node = Arc::make_mut(self.root.as_mut()?);
        let mut level = self.height;
        loop {
            match node {
                Node::Branch(nodes) => node = Arc::make_mut(nodes.get_mut(slot(index, level))?),
                Node::Leaf(entries) => return entries.get_mut(slot(index, 0)),
            }
            level = level.saturating_sub(1);
        }
    }

    /// Returns the last entry to change it.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.get_mut(self.len.checked_sub(1)?)
    }

    /// Appends a full leaf to the tree, whose leaves before it are all full.
    fn graft(&mut self, leaf: Arc<Node<T>>) {
        let Some(root) = &mut self.root else {
            (self.root, self.height) = (Some(leaf), 0);
            return;
        };
        let index = self.len - WIDTH;
        if index == WIDTH << (4 * self.height) {
            let old = Arc::clone(root);
            *root = Arc::new(Node::Branch(vec![old, chain(leaf, self.height)]));
            self.height += 1;
            return;
        }
        let mut level = self.height;
        let mut node = Arc::make_mut(root);
        while let Node::Branch(nodes) = node {
            let at = slot(index, level);
            if at == nodes.len() {
                nodes.push(chain(leaf, level - 1));
                return;
            }
            level -= 1;
            node = Arc::make_mut(&mut nodes[at]);
        }
    }
}

/// A leaf below `levels` branches of one entry.
fn chain<T>(leaf: Arc<Node<T>>, levels: u32) -> Arc<Node<T>> {
    (0..levels).fold(leaf, |node, _| Arc::new(Node::Branch(vec![node])))
}

/// The entry of a node of `level` on the path to `index`: four bits of it.
fn slot(index: usize, level: u32) -> usize {
    (index >> (4 * level)) % WIDTH
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { root: None, height: 0, tail: Arc::new(Vec::new()), len: 0 }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: Clone> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de, T: Clone + Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::deserialize(from)?.into_iter().collect())
    }
}

/// A value that clones share: a clone counts a reference, and a change of a value that is shared copies it first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Whether both are the same value in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the value to change it.
    pub fn make_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(from).map(Self::new)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_at_every_size() {
        let mut list = List::default();
        for size in 0..5_000 {
            assert_eq!(list.len(), size);
            assert_eq!(list.get(size), None);
            list.push(size);
            assert_eq!(list.last(), Some(&size));
            assert_eq!(list.get(size / 2), Some(&(size / 2)));
        }
        assert!(list.iter().copied().eq(0..5_000));
        assert!(list.iter().rev().copied().eq((0..5_000).rev()));
    }

    #[test]
    fn a_change_is_not_seen_by_clones() {
        let mut list: List<usize> = (0..1_000).collect();
        let before = list.clone();
        for index in [0, 15, 16, 255, 256, 991, 992, 999] {
            *list.get_mut(index).unwrap() += 1_000;
            assert_eq!(list.get(index), Some(&(index + 1_000)));
        }
        assert!(list.get_mut(1_000).is_none());
        assert!(before.iter().copied().eq(0..1_000));
        assert!(list != before && before == (0..1_000).collect());
    }

    #[test]
    fn a_list_with_a_clone_shares_all_but_the_end() {
        let mut list: List<Shared<usize>> = (0..4_096).map(Shared::new).collect();
        let before = list.clone();
        list.push(Shared::new(0));
        let same = list.iter().zip(before.iter()).filter(|(one, two)| one.is_same(two)).count();
        assert_eq!(same, 4_096);
        let mut changed = before.clone();
        for index in [7, 4_000] {
            *changed.get_mut(index).unwrap() = Shared::new(1);
        }
        changed.push(Shared::new(2));
        assert_eq!(changed.differing(&before), [7, 4_000, 4_096]);
        assert!(changed.differing(&changed.clone()).is_empty());
        assert_eq!(before.differing(&List::default()).len(), 4_096);
        let mut grown = List::default();
        for size in 0..600 {
            let smaller = grown.clone();
            grown.push(Shared::new(size));
            let differing = grown.differing(&smaller);
            assert!(differing.contains(&size), "{size}");
            // One entry, or the leaf that it has completed.
            assert!(differing.len() <= WIDTH || size == 271, "{size}: {differing:?}");
        }
        assert_eq!(serde_json::to_string(&(0..3).collect::<List<u8>>()).unwrap(), "[0,1,2]");
        assert_eq!(serde_json::from_str::<List<u8>>("[0,1,2]").unwrap(), (0..3).collect());
    }
}
