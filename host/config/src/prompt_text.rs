//! The text that a plugin adds to the prompt: what people read before it is used, and its limit.

use flow::{PromptAddition, PromptText};
use rules::{Bucket, Rule};

use crate::digest::Parts;
use crate::document::{Document, Step, steps};
use crate::typed::ManifestFile;
use crate::{Code, Diagnostic, Manifest};

/// The most bytes of text that one plugin adds to the prompt: 64 KiB, some 16,000 tokens of every request.
pub const MAX_PROMPT_BYTES: usize = 64 << 10;

/// What a digest begins with. It changes with the way blocks are hashed or written: texts are then shown again.
const DIGEST_FORMAT: &str = "tidegate prompt 1";

impl Manifest {
    /// Returns all text that the plugin adds to the prompt, in the order of declaration: that of its additions, the bodies of
    /// rules that always apply, and of the others the descriptions with which the rulebook lists them and the bodies that the model
    /// reads there. Rules that were refused are left out. The body of a stream rule is not among them: it is shown when the rule fires.
    pub fn prompt_texts(&self) -> Vec<PromptText> {
        let of_rule = |rule: &Rule| match rule.bucket {
            // The model reads the body when it asks for it.
            Bucket::Rulebook => {
                let (place, description) = of_rule(rule)?;
                Some(PromptText::new(place, format!("{description}\n{}", rule.body)))
            }
            Bucket::AlwaysApply | Bucket::Stream => of_rule(rule).map(|(place, text)| PromptText::new(place, text)),
        };
        self.prompts.iter().map(of_addition).chain(self.rules.iter().filter_map(of_rule)).collect()
    }

    /// Returns the guidance on tools as it is shown to people: the lists of the manifest. `None` where it gives none. It requires no
    /// power.
    pub fn guidance_text(&self) -> Option<PromptText> {
        let guidance = &self.guidance;
        let lists = [
            ("lists first", &guidance.preferred),
            ("lists last", &guidance.avoided),
            ("suggests the order", &guidance.order),
        ];
        let lists = lists.iter().filter(|(_, names)| !names.is_empty());
        let lines: Vec<String> = lists.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
        (!lines.is_empty()).then(|| PromptText::new("guidance on tools", lines.join("\n")))
    }
}

/// Returns the digest of what a plugin adds: SHA-256 in 64 hexadecimal digits, over every place and text. Equal digests mean that the
/// shown text is the same, so nobody has to read it again. `None` where the plugin adds nothing.
pub fn prompt_digest(texts: &[PromptText]) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    let mut parts = Parts::new(DIGEST_FORMAT);
    texts.iter().flat_map(|one| [&one.place, &one.text]).for_each(|string| parts.add(string));
    Some(parts.digest())
}

fn of_addition(addition: &PromptAddition) -> PromptText {
    let mut place = addition.position.as_str().to_owned();
    for (index, condition) in addition.when.iter().enumerate() {
        place.push_str(if index == 0 { " when " } else { ", " });
        place.push_str(&condition.to_string());
    }
    PromptText::new(place, &*addition.text)
}

/// Which rule it is, and its text.
fn of_rule(rule: &Rule) -> Option<(String, &str)> {
    let (kind, text) = match rule.bucket {
        Bucket::AlwaysApply => ("rule", rule.body.as_str()),
        Bucket::Rulebook => ("rulebook entry", rule.description.as_deref().unwrap_or_default()),
        Bucket::Stream => return None,
    };
    Some((format!("{kind} {:?}", rule.name), text))
}

/// Checks that the text of a manifest stays within [`MAX_PROMPT_BYTES`]. The error is at the block with which it exceeds it.
pub(crate) fn check_size(
    document: &mut Document<'_>,
    typed: &ManifestFile,
    additions: &[PromptAddition],
    rules: &[Rule],
) {
    let of_additions = (0..).zip(additions).map(|(index, one)| (one.text.len(), steps!["prompt", index, "content"]));
    let of_rules = rules.iter().filter_map(|rule| {
        let index = typed.rule.iter().position(|spec| spec.name.as_deref().map(str::trim) == Some(rule.name.as_str()));
        Some((of_rule(rule)?.1.len(), steps!["rule", index.unwrap_or_default(), "body"]))
    });
    let (mut total, mut exceeds): (usize, Option<[Step; 3]>) = (0, None);
    for (bytes, at) in of_additions.chain(of_rules) {
        total = total.saturating_add(bytes);
        if total > MAX_PROMPT_BYTES {
            exceeds.get_or_insert(at);
        }
    }
    let Some(at) = exceeds else { return };
    let message = format!("the plugin adds {total} bytes of text to the prompt, the limit is {MAX_PROMPT_BYTES}");
    // The key, since the value can have a thousand lines.
    let place = document.key_place(&at);
    let error = Diagnostic::error(Code::ManifestPromptTooLarge, message).at(place, "exceeds the limit");
    document.found.push(error.help("shorten it: the text is part of every request"));
}
