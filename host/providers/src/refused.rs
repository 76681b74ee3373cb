//! Parts of a conversation that a provider has refused: sealed reasoning, as after a change of the model, and images. The request is sent
//! again without them, and no later one has them: what is refused once is refused every time, and the session could not go on.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use flow::{Message, ModelError, Part, Prompt};

/// The text that the model reads in place of an image.
const NO_IMAGE: &str = "[An image was left out here, because the provider refused it.]";

/// Words of a refusal that is about sealed reasoning.
const REASONING: [&str; 4] = ["signature", "thinking", "reasoning", "encrypted"];

/// The statuses of requests that are refused for what is in them; 404 and 500 are those of servers whose model reads no images.
const REFUSED: [u16; 2] = [400, 422];
const NO_IMAGES: [u16; 4] = [404, 413, 415, 500];

/// The parts that are left out, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<HashSet<u64>>);

/// What may be wrong with a request.
pub(crate) struct Doubt {
    parts: HashSet<u64>,
    what: &'static str,
}

impl Refused {
    /// The conversation without what was refused before; `None` where it has nothing of it.
    pub(crate) fn without(&self, prompt: &Prompt) -> Option<Prompt> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_empty() { None } else { without(prompt, &refused) }
    }

    pub(crate) fn add(&self, doubt: Doubt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(doubt.parts);
    }
}

impl Doubt {
    /// What a refusal can be about, the least first.
    pub(crate) fn of(error: &ModelError, prompt: &Prompt) -> Vec<Self> {
        let Some(status) = error.status else { return Vec::new() };
        let said = format!("{} {}", error.message, error.code.as_deref().unwrap_or_default()).to_lowercase();
        let mut doubts = Vec::new();
        if REFUSED.contains(&status) && REASONING.iter().any(|word| said.contains(word)) {
            doubts.push(Self { parts: sealed(&prompt.messages), what: "reasoning" });
        }
        if (REFUSED.contains(&status) || NO_IMAGES.contains(&status)) && said.contains("image") {
            // Those that were accepted before are not at fault, unless the model has changed.
            let newest = prompt.messages.iter().rev().map(|message| images([message])).find(|found| !found.is_empty());
            let all = images(&prompt.messages);
            doubts.extend(newest.filter(|newest| newest.len() < all.len()).map(|parts| Self { parts, what: "image" }));
            doubts.push(Self { parts: all, what: "image" });
        }
        doubts.retain(|doubt| !doubt.parts.is_empty());
        doubts
    }

    /// The conversation without it.
    pub(crate) fn without(&self, prompt: &Prompt) -> Option<Prompt> {
        without(prompt, &self.parts)
    }

    /// What was left out and why, for the user.
    pub(crate) fn note(&self, error: &ModelError) -> String {
        let count = self.parts.len();
        let what = match (self.what, count) {
            ("image", 1) => "an image".to_owned(),
            ("image", _) => format!("{count} images"),
            _ => "the model's earlier reasoning".to_owned(),
        };
        format!("the provider has refused {what}, and is not sent it any more: {}", error.message)
    }
}

/// The mark of a part that can be refused.
fn mark(part: &Part) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match part {
        Part::Thinking { signature: Some(signature), .. } => signature.hash(&mut hasher),
        Part::Image(image) => image.base64().hash(&mut hasher),
        _ => return None,
    }
    Some(hasher.finish())
}

fn sealed(messages: &[Arc<Message>]) -> HashSet<u64> {
    marks(messages, |part| matches!(part, Part::Thinking { .. }))
}

fn images<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>) -> HashSet<u64> {
    marks(messages, |part| matches!(part, Part::Image(_)))
}

fn marks<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>, is: impl Fn(&Part) -> bool) -> HashSet<u64> {
    messages.into_iter().flat_map(|message| &message.parts).filter(|part| is(part)).filter_map(mark).collect()
}

fn without(prompt: &Prompt, refused: &HashSet<u64>) -> Option<Prompt> {
    let is_refused = |part: &Part| mark(part).is_some_and(|mark| refused.contains(&mark));
    if !prompt.messages.iter().any(|message| message.parts.iter().any(is_refused)) {
        return None;
    }
    let keep = |part: &Part| match part {
        Part::Image(_) if is_refused(part) => Some(Part::Text(NO_IMAGE.to_owned())),
        _ => (!is_refused(part)).then(|| part.clone()),
    };
    let less = |message: &Arc<Message>| {
        let is_whole = !message.parts.iter().any(is_refused);
        if is_whole {
            return Arc::clone(message);
        }
        Arc::new(Message { parts: message.parts.iter().filter_map(keep).collect(), ..Message::clone(message) })
    };
    Some(Prompt { messages: prompt.messages.iter().map(less).collect(), ..prompt.clone() })
}
