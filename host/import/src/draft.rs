//! A rule file that is being put together and tried.

use flow::{Diagnostic, DiagnosticCode as Code};
use rules::engine::Pattern;

use crate::hide::{self, Hiding, NoPart};
use crate::set::{Detector, Part};
use crate::{Feature, LeftOut, files, filters, language, sample, trial};

/// Ordinary code and text: a rule that fires on it is of no use without the filters of its scanner.
const ORDINARY: &str = include_str!("ordinary.txt");

/// The name under which a file is tried.
const PROBE: &str = "imported";

/// The conditions of a rule file.
pub(crate) struct Conditions {
    pub(crate) list: Vec<String>,
    /// Why all of a match is hidden although the scanner names a part.
    pub(crate) no_part: Option<NoPart>,
    /// Whether they exclude what the allow lists exclude.
    pub(crate) excludes: bool,
}

impl Conditions {
    /// Why the dialect refuses one of them.
    pub(crate) fn refused(&self) -> Option<NoPart> {
        self.list.iter().find_map(|one| Pattern::new(one).err()).map(|error| NoPart::Refused(error.message))
    }
}

/// A rule file that is being put together.
pub(crate) struct Draft<'d> {
    pub(crate) detector: &'d Detector,
    /// Where it comes from, for a comment.
    pub(crate) origin: String,
    /// What else has to be in the same text.
    pub(crate) all: Vec<String>,
    pub(crate) globs: Vec<String>,
    pub(crate) left_out: Vec<LeftOut>,
    /// The ordinary code on which it fires.
    pub(crate) disabled: Option<String>,
}

impl<'d> Draft<'d> {
    /// A draft with the files and further expressions of a detector.
    ///
    /// # Errors
    /// It is about paths that no glob means.
    pub(crate) fn new(detector: &'d Detector, origin: String, allowed: Vec<LeftOut>) -> Result<Self, Box<Diagnostic>> {
        let left_out = [detector.left_out.clone(), allowed].concat();
        let mut draft = Self { detector, origin, all: Vec::new(), globs: Vec::new(), left_out, disabled: None };
        draft.narrow_to_files()?;
        draft.all.extend(detector.also.iter().map(|one| one.text.clone()));
        Ok(draft)
    }

    fn narrow_to_files(&mut self) -> Result<(), Box<Diagnostic>> {
        if let Some(path) = &self.detector.path {
            match files::globs(&path.text) {
                Some(globs) => {
                    self.globs = globs;
                    self.left_out.push(LeftOut::new(Feature::Streams, ""));
                }
                None if self.detector.expressions.is_empty() => {
                    let message = "the rule is about paths alone, and no glob means the same as the expression";
                    return Err(Box::new(
                        Diagnostic::warning(Code::RuleNoCondition, message).at(path.place.clone(), ""),
                    ));
                }
                None => self.left_out.push(LeftOut::new(Feature::Files, path.text.clone())),
            }
        }
        Ok(())
    }

    /// Asks for the keywords where the rule fires on ordinary code without them, and names what becomes of them. A keyword in `all` has to be
    /// in the same block of text or the same argument, and a scanner looks for it in the whole file.
    fn narrow_to_keywords(&mut self, conditions: &[String]) {
        self.disabled = self.ordinary(conditions);
        if let Some(keywords) = filters::keywords(self.detector) {
            if self.disabled.is_some() {
                self.all.insert(0, keywords);
                self.disabled = self.ordinary(conditions);
            } else {
                self.left_out.push(LeftOut::new(Feature::Keywords, self.detector.keywords.join(", ")));
            }
        }
        if !self.all.is_empty() {
            self.left_out.push(LeftOut::new(Feature::Nearby, self.all.join("  ")));
        }
        self.left_out.sort_by_key(|one| one.feature);
    }

    /// The conditions, with the group `hide` if it is wanted. A rule about paths alone is about all that is written there.
    pub(crate) fn conditions(&self, excluded: &[String], hides: bool) -> Conditions {
        if self.detector.expressions.is_empty() {
            return Conditions { list: vec!["(?s).".to_owned()], no_part: None, excludes: false };
        }
        let part = if hides { self.detector.part } else { Part::Match };
        let all = self.detector.expressions.iter().map(|one| hide::hiding(&one.text, part, excluded));
        let all: Vec<Hiding> = all.collect();
        Conditions {
            no_part: all.iter().find_map(|one| one.no_part.clone()),
            excludes: all.iter().all(|one| one.excludes),
            list: all.into_iter().map(|one| one.condition).collect(),
        }
    }

    pub(crate) fn is_about_files(&self) -> bool {
        self.detector.expressions.is_empty()
    }

    /// The text with examples that were tried.
    pub(crate) fn tried(&mut self, written: &Conditions) -> Result<String, Box<Diagnostic>> {
        let Conditions { list: conditions, excludes, .. } = written;
        // What the dialect refuses, such as a count that is too large, is refused before texts are made for it.
        if let Some(fault) = trial::fault(PROBE, &self.text(conditions, &[], None)) {
            return Err(fault);
        }
        self.narrow_to_keywords(conditions);
        let fires = conditions.iter().map(|condition| self.example(condition)).collect::<Option<Vec<_>>>();
        let Some(fires) = fires else {
            let message = "no text was found on which it fires";
            return Err(Box::new(Diagnostic::warning(Code::RuleExampleFailed, message)));
        };
        if !excludes {
            self.compare(conditions)?;
        }
        let text = self.text(conditions, &fires, self.quiet(written, &fires).as_deref());
        match trial::fault(PROBE, &text) {
            None => Ok(text),
            Some(fault) => Err(fault),
        }
    }

    /// Checks that the rule fires on texts which the expressions of the scanner match as another parser reads them, of each alternative.
    fn compare(&self, conditions: &[String]) -> Result<(), Box<Diagnostic>> {
        let parsed = self.detector.expressions.iter().filter_map(|one| language::parse(&one.text));
        // An assertion can be false for a text that is made from the expression.
        let without_assertions = parsed.filter(|hir| hir.properties().look_set().is_empty());
        let texts: Vec<String> =
            without_assertions.flat_map(|hir| sample::alone(&hir)).map(|text| self.with_others(&text)).collect();
        let fault = trial::fault(PROBE, &self.text(conditions, &texts, None));
        fault.map_or(Ok(()), |fault| {
            let message =
                format!("its condition matches less than the expression of the scanner: it {}", fault.message);
            Err(Box::new(Diagnostic::warning(Code::RuleExampleFailed, message)))
        })
    }

    /// The line of ordinary code on which the rule fires.
    fn ordinary(&self, conditions: &[String]) -> Option<String> {
        let fires = |text: &str| {
            let fault = trial::fault(PROBE, &self.text(conditions, &[], Some(text)));
            fault.is_some_and(|fault| trial::is_of_example(&fault))
        };
        if self.is_about_files() || !fires(ORDINARY) {
            return None;
        }
        let line = ORDINARY.lines().find(|line| !line.is_empty() && fires(line));
        Some(line.unwrap_or("several lines of it").trim().to_owned())
    }

    /// Texts for a condition, with what else has to be in the same text.
    fn samples(&self, condition: &str) -> Vec<String> {
        let texts = language::loose(condition).map(|hir| sample::texts(&hir)).unwrap_or_default();
        texts.into_iter().map(|text| self.with_others(&text)).collect()
    }

    fn with_others(&self, text: &str) -> String {
        let others = self.all.iter().filter_map(|one| sample::texts(&language::loose(one)?).into_iter().next());
        let others: String = others.map(|other| other + "\n").collect();
        format!("{others}{text}")
    }

    /// A text on which the rule fires for this condition.
    fn example(&self, condition: &str) -> Option<String> {
        let alone = [condition.to_owned()];
        let fires = |text: &String| trial::fault(PROBE, &self.text(&alone, std::slice::from_ref(text), None)).is_none();
        self.samples(condition).into_iter().find(fires)
    }

    /// A text on which the rule does not fire: one that is excluded, or the first half of an example.
    fn quiet(&self, conditions: &Conditions, fires: &[String]) -> Option<String> {
        let samples = if conditions.excludes { self.samples(conditions.list.first()?) } else { Vec::new() };
        let half = |text: &String| text[..text.floor_char_boundary(text.len() / 2)].trim_end().to_owned();
        let mut all = samples.into_iter().take(1).chain(fires.iter().map(half)).filter(|text| !text.is_empty());
        all.find(|text| trial::fault(PROBE, &self.text(&conditions.list, &[], Some(text))).is_none())
    }
}
