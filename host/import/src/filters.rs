//! What narrows down the matches of a scanner: keywords and allow lists. What can have no effect on a rule is not mentioned for it.

use regex_syntax::hir::{Hir, HirKind};

use crate::language::{self, Language, always_has, can_contain};
use crate::set::{AllowList, Detector, Expression, Part, Target};
use crate::{Feature, LeftOut};

/// The allow lists of a detector, as far as they have an effect.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    /// What is left out in any case.
    left_out: Vec<LeftOut>,
    /// What look-around can say, where it is left out after all.
    otherwise: Vec<LeftOut>,
    /// The expressions that look-around can say.
    pub(crate) excluded: Vec<String>,
}

impl Allowed {
    /// What is left out; less where the rule has look-around for `excluded`.
    pub(crate) fn left_out(&self, excludes: bool) -> Vec<LeftOut> {
        let otherwise: &[LeftOut] = if excludes { &[] } else { &self.otherwise };
        self.left_out.iter().chain(otherwise).cloned().collect()
    }
}

/// The condition for `all` that asks for the keywords; `None` where every match has one of them.
pub(crate) fn keywords(detector: &Detector) -> Option<String> {
    let words: Vec<String> = detector.keywords.iter().filter(|word| !word.is_empty()).cloned().collect();
    if words.is_empty() || words.len() < detector.keywords.len() {
        return None;
    }
    let has = |one: &Expression| language::parse(&one.text).is_some_and(|hir| always_has(&hir, &words));
    if detector.expressions.iter().all(has) {
        return None;
    }
    let words: Vec<String> = words.iter().map(|word| regex_syntax::escape(word)).collect();
    Some(if words.len() == 1 { format!("(?i){}", words[0]) } else { format!("(?i)(?:{})", words.join("|")) })
}

/// The allow lists that have an effect on the detector.
pub(crate) fn allowed(detector: &Detector, of_set: &[AllowList]) -> Allowed {
    let mut out = Allowed::default();
    let parsed: Vec<Hir> = detector.expressions.iter().filter_map(|one| language::parse(&one.text)).collect();
    let matches: Vec<Language> = parsed.iter().filter_map(Language::of).collect();
    let secrets: Vec<Language> =
        parsed.iter().flat_map(|hir| secrets(hir, detector.part)).filter_map(|hir| Language::of(&hir)).collect();
    let texts = |target| if target == Target::Secret { &secrets } else { &matches };
    for list in &detector.allowed {
        if !list.paths.is_empty() {
            out.left_out.push(LeftOut::new(Feature::AllowedFiles, list.paths.join(", ")));
        }
        if list.commits > 0 {
            out.left_out.push(LeftOut::new(Feature::Commits, list.commits.to_string()));
        }
        let found = effective(list, texts(list.target));
        let about = about(Feature::AllowList, &found, list.target);
        if !found.is_empty() && list.is_about_secret_alone() {
            out.excluded.extend(list.expressions.iter().cloned());
            out.otherwise.extend(about);
        } else {
            out.left_out.extend(about);
        }
    }
    for list in of_set.iter().filter(|list| list.target != Target::Line && !detector.expressions.is_empty()) {
        let found = effective(list, texts(list.target));
        out.left_out.extend(about(Feature::SetAllowList, &found, list.target));
    }
    out
}

/// The expressions of a list that can be found in one of the texts; none where another kind of the list must be true as well and cannot.
fn effective(list: &AllowList, texts: &[Language]) -> Vec<Hir> {
    let can =
        |hir: &Hir| list.target == Target::Line || texts.is_empty() || texts.iter().any(|text| can_contain(text, hir));
    let expressions: Vec<Hir> = list.expressions.iter().filter_map(|one| language::parse(one)).filter(can).collect();
    let unread = list.expressions.iter().filter(|one| language::parse(one).is_none()).count();
    let word = |word: &String| language::parse(&format!("(?i){}", regex_syntax::escape(word)));
    let words: Vec<Hir> = list.words.iter().filter_map(word).filter(can).collect();
    let never = |given: usize, left: usize| given > 0 && left == 0;
    if list.all && (never(list.expressions.len(), expressions.len() + unread) || never(list.words.len(), words.len())) {
        return Vec::new();
    }
    let any = (0..unread).map(|_| Hir::empty());
    expressions.into_iter().chain(any).chain(words).collect()
}

fn about(feature: Feature, found: &[Hir], target: Target) -> Option<LeftOut> {
    let of = match target {
        Target::Secret => "about the secret",
        Target::Match => "about the match",
        Target::Line => "about the line",
    };
    let many = if found.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", found.len()) };
    (!found.is_empty()).then(|| LeftOut::new(feature, format!("{many} {of}")))
}

/// What the secret of a match can be.
fn secrets(hir: &Hir, part: Part) -> Vec<Hir> {
    let (mut groups, mut stack) = (Vec::new(), vec![hir]);
    while let Some(hir) = stack.pop() {
        if let HirKind::Capture(group) = hir.kind() {
            groups.push((group.index as usize, (*group.sub).clone()));
        }
        stack.extend(hir.kind().subs());
    }
    match part {
        Part::Group(number) => groups.retain(|(known, _)| *known == number),
        Part::FirstGroup => {}
        Part::Match => groups.clear(),
    }
    if groups.is_empty() { vec![hir.clone()] } else { groups.into_iter().map(|(_, hir)| hir).collect() }
}
