//! From a rule of a set to a rule file.

use std::sync::Arc;

use flow::{Diagnostic, DiagnosticCode as Code, SourceFile};

use crate::draft::{Conditions, Draft};
use crate::hide::NoPart;
use crate::names::Names;
use crate::set::{AllowList, Detector, Format};
use crate::{Feature, LeftOut, filters, trial};

/// The part of its matches that a rule hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// From the secret on: the condition has the group `hide`.
    Secret,
    /// All of the match.
    Match,
}

/// A rule as a rule file.
#[derive(Clone, Debug)]
pub struct RuleText {
    /// The name of the file without its extension.
    pub name: String,
    /// Its name in the rule set.
    pub id: String,
    /// The line of the rule set where it is.
    pub line: usize,
    /// The whole file.
    pub text: String,
    /// The ordinary code on which it fires, so that it has `enabled = false`.
    pub disabled: Option<String>,
    /// The part of its matches that it hides.
    pub hidden: Hidden,
    /// The filters and other features of the scanner that the file does not have.
    pub left_out: Vec<LeftOut>,
}

/// The values that the rules of a set have in common.
pub(crate) struct Context<'s> {
    pub(crate) format: Format,
    /// The allow lists of the set.
    pub(crate) allowed: &'s [AllowList],
    pub(crate) source: &'s Arc<SourceFile>,
}

/// The additions to an expression that the file is to have. The dialect can refuse either of them where it takes the expression.
#[derive(Clone, Copy)]
struct Attempt {
    /// Look-around for allow lists.
    excludes: bool,
    /// The group `hide`.
    hides: bool,
}

const ATTEMPTS: [Attempt; 3] = [
    Attempt { excludes: true, hides: true },
    Attempt { excludes: false, hides: true },
    Attempt { excludes: false, hides: false },
];

/// Writes the rule file of a detector. The file has been loaded and tried.
///
/// # Errors
/// Why there is none.
pub(crate) fn write(
    detector: &Detector,
    context: &Context<'_>,
    names: &mut Names,
) -> Result<RuleText, Box<Diagnostic>> {
    let allowed = filters::allowed(detector, context.allowed);
    let (mut fault, mut refused): (Option<Box<Diagnostic>>, Option<NoPart>) = (None, None);
    for attempt in ATTEMPTS.into_iter().filter(|one| !one.excludes || !allowed.excluded.is_empty()) {
        let mut draft = Draft::new(detector, context.origin(detector), allowed.left_out(attempt.excludes))?;
        let conditions = draft.conditions(if attempt.excludes { &allowed.excluded } else { &[] }, attempt.hides);
        if attempt.excludes && !conditions.excludes {
            continue;
        }
        if let Some(why) = conditions.no_part.clone().or(refused.take_if(|_| !attempt.hides)) {
            draft.left_out.push(LeftOut::new(Feature::SecretPart, why.to_string()));
        }
        match draft.tried(&conditions) {
            Ok(text) => return Ok(done(draft, text, &conditions, names)),
            Err(why) if trial::is_of_example(&why) && !attempt.excludes => return Err(refusal(detector, &why)),
            Err(why) => {
                refused = Some(conditions.refused().unwrap_or_else(|| NoPart::Refused(why.message.clone())));
                fault = Some(refusal(detector, &why));
            }
        }
    }
    Err(fault.unwrap_or_else(|| Box::new(Diagnostic::warning(Code::RuleNoCondition, "it has no condition"))))
}

fn done(draft: Draft<'_>, text: String, conditions: &Conditions, names: &mut Names) -> RuleText {
    let hides = conditions.list.iter().any(|one| one.contains("(?P<hide>"));
    RuleText {
        name: names.take(&draft.detector.id),
        id: draft.detector.id.clone(),
        line: draft.detector.place.line(),
        text,
        disabled: draft.disabled,
        hidden: if hides { Hidden::Secret } else { Hidden::Match },
        left_out: draft.left_out,
    }
}

/// Why there is no rule file, at the place in the rule set.
fn refusal(detector: &Detector, fault: &Diagnostic) -> Box<Diagnostic> {
    let place = detector.expressions.first().map_or(&detector.place, |one| &one.place);
    let mut why = Diagnostic::warning(fault.code, fault.message.clone()).at(place.clone(), "");
    why.help = fault.help.clone();
    Box::new(why)
}

impl Context<'_> {
    /// Where a rule comes from.
    fn origin(&self, detector: &Detector) -> String {
        let file = self.source.path.file_name().unwrap_or(self.source.path.as_os_str()).to_string_lossy();
        format!("{}, `{}` in line {} of {file}", self.format, detector.id, detector.place.line())
    }
}
