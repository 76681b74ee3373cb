//! A list from which something is chosen: by typing a part of it, and by arrow keys.

use std::borrow::Cow;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::print::shorten;
use crate::screen::clean::flat;
use crate::screen::terminal;
use crate::style::{self, err};

/// The most rows of a list, without the one about its keys.
const ROWS: usize = 8;
/// The most items that can be gone to. More of them are found by typing more.
const ITEMS: usize = 200;

/// Something that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// What is written where it is chosen.
    pub(super) value: String,
    /// What is shown in front of the rest.
    pub(super) label: String,
    pub(super) about: String,
}

impl Item {
    /// An item that is shown as it is written.
    pub(super) fn plain(value: impl Into<String>, about: impl Into<String>) -> Self {
        let value = value.into();
        Self { label: value.clone(), value, about: about.into() }
    }

    /// What is searched of it.
    fn text(&self) -> Cow<'_, str> {
        if self.label == self.value {
            Cow::Borrowed(&self.value)
        } else {
            Cow::Owned(format!("{} {}", self.label, self.value))
        }
    }
}

/// The items that match what is typed, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) items: Vec<Item>,
    /// How many match.
    pub(super) all: usize,
    chosen: usize,
}

impl List {
    /// The items that contain the letters of `typed`, in this order and not necessarily side by side; all of them where nothing is typed.
    pub(super) fn of(items: &[Item], typed: &str, are_paths: bool) -> Self {
        if typed.is_empty() {
            return Self { items: items.iter().take(ITEMS).cloned().collect(), all: items.len(), chosen: 0 };
        }
        let pattern = Pattern::new(typed, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let config = if are_paths { Config::DEFAULT.match_paths() } else { Config::DEFAULT };
        let (mut matcher, mut buffer) = (Matcher::new(config), Vec::new());
        let mut found: Vec<(u32, &Item)> = items
            .iter()
            .filter_map(|item| Some((pattern.score(Utf32Str::new(&item.text(), &mut buffer), &mut matcher)?, item)))
            .collect();
        // The sort is stable: items that match as well stay in their order, but of such paths the shorter is before the longer one.
        found.sort_by_key(|(score, item)| (std::cmp::Reverse(*score), if are_paths { item.value.len() } else { 0 }));
        let all = found.len();
        Self { items: found.into_iter().take(ITEMS).map(|(_, item)| item.clone()).collect(), all, chosen: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn chosen(&self) -> Option<&Item> {
        self.items.get(self.chosen)
    }

    /// Goes to the next item, or to the one before; from the last to the first.
    pub(super) fn go(&mut self, forward: bool) {
        let count = self.items.len().max(1);
        self.chosen = (self.chosen + if forward { 1 } else { count - 1 }) % count;
    }

    /// Its rows, at most so many. `is_marked`: the chosen one has a mark.
    pub(super) fn rows(&self, columns: usize, most: usize, is_marked: bool) -> Vec<String> {
        let most = most.min(ROWS);
        let first = (self.chosen + 1).saturating_sub(most);
        let shown = self.items.iter().enumerate().skip(first).take(most);
        let labels = shown.clone().map(|(_, item)| terminal::width(&flat(&item.label))).max().unwrap_or_default();
        let label = labels.min(columns.saturating_sub(4).max(1));
        shown.map(|(index, item)| row(item, is_marked && index == self.chosen, label, columns)).collect()
    }
}

fn row(item: &Item, is_chosen: bool, label: usize, columns: usize) -> String {
    let name = shorten(&item.label, label);
    let mark = if is_chosen { "▸" } else { " " };
    let gap = " ".repeat(label.saturating_sub(terminal::width(&name)));
    let left = columns.saturating_sub(label + 6);
    let about = if left < 8 { String::new() } else { format!("  {}", shorten(&item.about, left)) };
    let look = if is_chosen { style::STRONG } else { anstyle::Style::new() };
    format!("{}{gap}{}", err(look, &format!("{mark} {name}")), err(style::DIM, about.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Vec<Item> {
        names.iter().map(|name| Item::plain(*name, "")).collect()
    }

    #[test]
    fn the_best_match_is_first() {
        let names = ["docs/main.md", "src/lib.rs", "src/main.rs", "src/mapping/join.rs", "Main"];
        let cases: [(&str, &[&str]); 7] = [
            ("", &names),
            ("main.rs", &["src/main.rs", "src/mapping/join.rs"]),
            ("smain", &["src/main.rs", "docs/main.md", "src/mapping/join.rs"]),
            ("lib", &["src/lib.rs"]),
            ("xyz", &[]),
            ("Main", &["Main"]),
            ("rs lib", &["src/lib.rs"]),
        ];
        for (typed, expected) in cases {
            let list = List::of(&items(&names), typed, true);
            let found: Vec<&str> = list.items.iter().map(|item| item.value.as_str()).collect();
            assert_eq!(found, expected, "{typed}");
        }
    }

    #[test]
    fn arrows_go_around_and_the_chosen_item_is_visible() {
        let names: Vec<String> = (0..20).map(|n| format!("item-{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut list = List::of(&items(&names), "", false);
        for (forward, chosen) in [(false, "item-19"), (true, "item-00"), (true, "item-01")] {
            list.go(forward);
            assert_eq!(list.chosen().map(|item| item.value.as_str()), Some(chosen));
            let rows = list.rows(40, 5, true);
            assert!(rows.len() == 5 && rows.iter().any(|row| row.contains(&format!("▸ {chosen}"))), "{rows:?}");
        }
        assert_eq!((List::default().rows(40, 5, true), List::default().chosen()), (Vec::new(), None));
        let mut none = List::default();
        none.go(false);
    }

    #[test]
    fn a_row_fits_and_shows_no_control_character() {
        let item = Item { value: "x".into(), label: "a\u{1b}[2J title".repeat(4), about: "about it ".repeat(9) };
        let list = List { items: vec![item], all: 1, chosen: 0 };
        for columns in [1, 10, 40, 160] {
            let rows = list.rows(columns, 8, true);
            assert!(!rows[0].contains('\u{1b}'), "{rows:?}");
        }
    }
}
