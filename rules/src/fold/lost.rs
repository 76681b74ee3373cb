//! Characters of a condition that no folded text contains.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::Fold;
use crate::dialect;

/// What a condition looks for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) character: String,
    /// What a text has in its place.
    pub(crate) folded: String,
    /// The condition as a whole can never match for want of it.
    pub(crate) is_all: bool,
}

/// A class of more characters than these was not written character by character.
const MOST: u32 = 64;

impl Fold {
    /// The first character of a condition that is in no folded text, and neither is what it is folded to what the condition looks for.
    pub(crate) fn lost_in(self, condition: &str) -> Option<Lost> {
        if self.is_none() {
            return None;
        }
        let hir = dialect::parse(&self.condition(condition)).ok()?;
        let mut search = Search { fold: self, lost: None };
        let can_match = search.hir(&hir);
        search.lost.map(|character| Lost { folded: self.text(&character).into_owned(), character, is_all: !can_match })
    }
}

struct Search {
    fold: Fold,
    lost: Option<String>,
}

impl Search {
    /// Whether a folded text can match; assertions aside.
    fn hir(&mut self, hir: &Hir) -> bool {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) | HirKind::Capture(_) => true,
            HirKind::Literal(literal) => std::str::from_utf8(&literal.0).map_or(true, |text| self.is_kept(text)),
            HirKind::Class(_) => self.class(hir),
            HirKind::Repetition(repeated) => {
                let fits = self.hir(&repeated.sub);
                fits || repeated.min == 0
            }
            HirKind::Alternation(branches) => self.each(branches).contains(&true),
            HirKind::Concat(parts) => {
                !self.each(parts).contains(&false) && parts.windows(2).all(|pair| self.pair(&pair[0], &pair[1]))
            }
        }
    }

    /// All are looked at, so that what is lost in one of them is found.
    fn each(&mut self, parts: &[Hir]) -> Vec<bool> {
        parts.iter().map(|part| self.hir(part)).collect()
    }

    fn is_kept(&mut self, text: &str) -> bool {
        let is_kept = self.fold.text(text) == text;
        if !is_kept {
            let ends = || text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
            let pairs = ends().zip(ends().skip(1)).map(|((from, _), (_, to))| (from, to));
            let changed =
                ends().chain(pairs).map(|(from, to)| &text[from..to]).find(|part| self.fold.text(part) != **part);
            self.lost.get_or_insert_with(|| changed.unwrap_or(text).to_owned());
        }
        is_kept
    }

    fn class(&mut self, hir: &Hir) -> bool {
        let Some(all) = members(hir) else { return true };
        let kept = |one: &String| self.fold.text(one) == *one;
        let in_vain = all.iter().find(|one| !kept(one) && !all.contains(&self.fold.text(one).into_owned()));
        let any = all.iter().any(kept);
        self.lost = self.lost.take().or_else(|| in_vain.cloned());
        any
    }

    /// Whether one of the first characters can be before one of the second: a letter and its accent can be one in every text.
    fn pair(&mut self, first: &Hir, second: &Hir) -> bool {
        let ends = |hir: &Hir, last: bool| match hir.kind() {
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                let one = if last { text.chars().next_back() } else { text.chars().next() };
                one.map(|one| vec![one.to_string()])
            }
            HirKind::Class(_) => members(hir),
            _ => None,
        };
        let (Some(firsts), Some(seconds)) = (ends(first, true), ends(second, false)) else { return true };
        let pairs = || firsts.iter().flat_map(|one| seconds.iter().map(move |other| format!("{one}{other}")));
        let is_kept = |pair: &String| self.fold.text(pair) == *pair;
        // Characters that are lost alone were reported alone.
        if pairs().any(|pair| is_kept(&pair)) {
            return true;
        }
        self.lost = self.lost.take().or_else(|| pairs().next());
        false
    }
}

/// The characters of a class that has few.
fn members(hir: &Hir) -> Option<Vec<String>> {
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else { return None };
    let count = class.iter().map(|range| u32::from(range.end()) - u32::from(range.start()) + 1).sum::<u32>();
    (count <= MOST).then(|| class.iter().flat_map(|range| range.start()..=range.end()).map(String::from).collect())
}
