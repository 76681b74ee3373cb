//! Parts of a request that a provider has refused: sealed reasoning, as after a change of the model, images, tools, and what an error names
//! by its path in the body. The request is sent again without them, and no later one of the conversation has them: what is refused once is
//! refused every time, and the session could not continue.

mod named;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use flow::{Message, ModelError, Origin, Part, Prompt, ToolResult, ToolSpec};
use serde_json::Value;

use self::named::Named;

/// The text that the model reads in place of an image.
const NO_IMAGE: &str = "[Image omitted: the provider rejected it.]";

/// The text that the model reads in place of a text or a result.
const NO_TEXT: &str = "[Text omitted: the provider rejected it.]";

/// Words of a refusal that is about sealed reasoning.
const REASONING: [&str; 4] = ["signature", "thinking", "reasoning", "encrypted"];

/// Words before the number of tools that a provider accepts.
const MOST_TOOLS: [&str; 4] = ["maximum length", "maximum number of", "maximum of", "at most"];

/// The statuses of requests that are refused for what is in them; 404 and 500 are those of servers whose model reads no images.
const REFUSED: [u16; 2] = [400, 422];
const NO_IMAGES: [u16; 4] = [404, 413, 415, 500];

/// What is left out of the requests of a model.
#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<HashSet<Mark>>);

/// Something that is left out of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    /// A part or a tool, by its hash.
    One { conversation: u64, hash: u64 },
    /// All tools after the first ones.
    ToolsAfter { conversation: u64, first: usize },
}

/// What may be wrong with a request.
#[derive(Debug)]
pub(crate) struct Doubt {
    conversation: u64,
    marks: HashSet<Mark>,
    /// For the user.
    what: Vec<String>,
}

impl Refused {
    /// The conversation without what was refused before; `None` where it has nothing of it.
    pub(crate) fn without(&self, prompt: &Prompt) -> Option<Prompt> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_empty() { None } else { without(prompt, conversation(prompt), &refused) }
    }

    pub(crate) fn add(&self, doubt: Doubt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(doubt.marks);
    }
}

impl Doubt {
    /// Nothing yet. `whole`: the prompt before anything was left out of it.
    pub(crate) fn none(whole: &Prompt) -> Self {
        Self { conversation: conversation(whole), marks: HashSet::new(), what: Vec::new() }
    }

    /// The reasoning of what was sent of a prompt, if the error can be about it.
    pub(crate) fn of_reasoning(error: &ModelError, whole: &Prompt, sent: &Prompt) -> Option<Self> {
        let is_sealed = |part: &Part| matches!(part, Part::Thinking { signature: Some(_), .. });
        let is_about = is_refused(error) && REASONING.iter().any(|word| words(error).contains(word));
        let doubt = Self::none(whole).with(&sent.messages, is_sealed, |_| "the model's earlier reasoning".to_owned());
        doubt.filter(|_| is_about)
    }

    /// What the error is about if it names nothing by its path, the least first: images, and tools that are too many.
    pub(crate) fn of_kind(error: &ModelError, whole: &Prompt, sent: &Prompt) -> Vec<Self> {
        let can_be_images = is_refused(error) || error.status.is_some_and(|status| NO_IMAGES.contains(&status));
        let mut doubts = Vec::new();
        if can_be_images && words(error).contains("image") {
            let is_image = |part: &Part| matches!(part, Part::Image(_));
            let images = |messages| {
                let counted = |count| if count == 1 { "an image".to_owned() } else { format!("{count} images") };
                Self::none(whole).with(messages, is_image, counted)
            };
            let all = images(&sent.messages);
            // Those that were accepted before are not at fault, unless the model has changed.
            let newest = sent.messages.iter().rev().find_map(|message| images(std::slice::from_ref(message)));
            let is_part = |newest: &Self| all.as_ref().is_some_and(|all| newest.marks.len() < all.marks.len());
            doubts.extend(newest.filter(is_part));
            doubts.extend(all);
        }
        if is_refused(error) {
            doubts.extend(Self::of_too_many_tools(error, whole, sent));
        }
        doubts
    }

    /// The tools after those that the provider accepts: `'tools': array too long. Expected an array with maximum length 128, but got 150`.
    fn of_too_many_tools(error: &ModelError, whole: &Prompt, sent: &Prompt) -> Option<Self> {
        let (said, tools) = (words(error), &sent.tools);
        if named::names(&error.message) || !["tools", "functions"].iter().any(|word| said.contains(word)) {
            return None;
        }
        let number = |words: &&str| {
            let rest = &said[said.find(*words)? + words.len()..];
            rest.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse::<usize>().ok()
        };
        let first = MOST_TOOLS.iter().find_map(number).filter(|most| (1..tools.len()).contains(most))?;
        let mut doubt = Self::none(whole);
        doubt.marks.insert(Mark::ToolsAfter { conversation: doubt.conversation, first });
        let left = tools.len() - first;
        doubt.what.push(format!("{left} tools after the first {first}, beginning with `{}`", tools[first].name));
        Some(doubt)
    }

    /// The parts of messages that are such; `None` without any.
    fn with(
        mut self,
        messages: &[Arc<Message>],
        is: impl Fn(&Part) -> bool,
        what: impl Fn(usize) -> String,
    ) -> Option<Self> {
        let parts = messages.iter().flat_map(|message| message.parts.iter().map(move |part| (message, part)));
        self.marks =
            parts.filter(|(_, part)| is(part)).filter_map(|(m, part)| mark(self.conversation, m, part)).collect();
        self.what = vec![what(self.marks.len())];
        (!self.marks.is_empty()).then_some(self)
    }

    /// Adds what an error names by its path in the body of the request, if it can be left out. `body`: the request of a prompt.
    pub(crate) fn add_named(
        &mut self,
        error: &ModelError,
        prompt: &Prompt,
        body: &dyn Fn(&Prompt) -> Option<Value>,
    ) -> bool {
        if !is_refused(error) {
            return false;
        }
        let (input, conversation) = (newest_input(&prompt.messages), self.conversation);
        let can_be_left_out = |message: usize, part: usize| {
            let (of, part) = (&prompt.messages[message], &prompt.messages[message].parts[part]);
            !is_input(input, message, part) && mark(conversation, of, part).is_some()
        };
        let found = match named::find(&error.message, prompt, &can_be_left_out, body) {
            Some(Named::Tool(index)) => {
                let tool = &prompt.tools[index];
                Some((mark_of_tool(conversation, tool), format!("the tool `{}`", tool.name)))
            }
            Some(Named::Part { message, part }) => {
                let (of, part) = (&prompt.messages[message], &prompt.messages[message].parts[part]);
                mark(conversation, of, part).map(|mark| (mark, described(part)))
            }
            None => None,
        };
        let Some((mark, what)) = found else { return false };
        self.what.push(what);
        self.marks.insert(mark)
    }

    /// The conversation without it.
    pub(crate) fn without(&self, prompt: &Prompt) -> Option<Prompt> {
        without(prompt, self.conversation, &self.marks)
    }

    /// What was left out and why, for the user.
    pub(crate) fn note(&self, error: &ModelError) -> String {
        format!("the provider has refused {}; later requests are without that: {}", self.what.join(", "), error.message)
    }
}

/// Whether the request is refused for what is in it.
pub(crate) fn is_refused(error: &ModelError) -> bool {
    error.status.is_some_and(|status| REFUSED.contains(&status))
}

/// The provider's own words, in lower case.
fn words(error: &ModelError) -> String {
    let said = error.facts.said.as_deref().unwrap_or(&error.message);
    format!("{said} {}", error.code.as_deref().unwrap_or_default()).to_lowercase()
}

fn described(part: &Part) -> String {
    match part {
        Part::Text(_) => "a text of the conversation".to_owned(),
        Part::Image(_) => "an image".to_owned(),
        Part::Thinking { .. } => "the model's earlier reasoning".to_owned(),
        Part::ToolCall(call) => format!("a call of the tool `{}`", call.name),
        Part::ToolResult(_) => "a result of a tool".to_owned(),
    }
}

/// What identifies the conversation of a prompt among those of a model: its first message.
fn conversation(prompt: &Prompt) -> u64 {
    let parts = prompt.messages.first().map(|first| first.parts.as_slice()).unwrap_or_default();
    hash(&parts.iter().map(hash_of).collect::<Vec<_>>())
}

/// The mark of a part; `None` where it is left out already.
fn mark(conversation: u64, message: &Message, part: &Part) -> Option<Mark> {
    let is_left_out = match part {
        Part::Text(text) => text == NO_TEXT || text == NO_IMAGE,
        Part::ToolResult(result) => result.content == [NO_TEXT],
        _ => false,
    };
    (!is_left_out).then(|| Mark::One { conversation, hash: hash(&(message.role, hash_of(part))) })
}

fn hash_of(part: &Part) -> u64 {
    match part {
        Part::Text(text) => hash(&("text", text)),
        Part::Thinking { text, signature, .. } => hash(&("thinking", text, signature)),
        Part::Image(image) => hash(&("image", image.base64())),
        Part::ToolCall(call) => hash(&("call", call.id.as_str(), &call.name, &call.arguments)),
        Part::ToolResult(result) => hash(&("result", result.call.as_str(), &result.content)),
    }
}

fn mark_of_tool(conversation: u64, tool: &ToolSpec) -> Mark {
    let hash = hash(&("tool", &tool.name, &tool.description, tool.parameters.to_string()));
    Mark::One { conversation, hash }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The user's last words: without these a request has no sense.
fn newest_input(messages: &[Arc<Message>]) -> Option<usize> {
    let is_input = |message: &Arc<Message>| {
        message.origin == Origin::User && message.parts.iter().any(|part| matches!(part, Part::Text(_)))
    };
    messages.iter().rposition(is_input)
}

/// Whether a part is a text of the newest input.
fn is_input(input: Option<usize>, at: usize, part: &Part) -> bool {
    input == Some(at) && matches!(part, Part::Text(_))
}

fn without(prompt: &Prompt, conversation: u64, refused: &HashSet<Mark>) -> Option<Prompt> {
    let input = newest_input(&prompt.messages);
    let is_refused = |at: usize, message: &Message, part: &Part| {
        !is_input(input, at, part) && mark(conversation, message, part).is_some_and(|mark| refused.contains(&mark))
    };
    let limits = refused.iter().filter_map(|mark| match mark {
        Mark::ToolsAfter { conversation: of, first } if *of == conversation => Some(*first),
        _ => None,
    });
    let most = limits.min().unwrap_or(usize::MAX);
    let is_offered = |tool: &&ToolSpec| !refused.contains(&mark_of_tool(conversation, tool));
    let tools: Vec<ToolSpec> = prompt.tools.iter().filter(is_offered).take(most).cloned().collect();
    let is_whole = |at: usize, message: &Message| !message.parts.iter().any(|part| is_refused(at, message, part));
    let mut messages = prompt.messages.iter().enumerate();
    if tools.len() == prompt.tools.len() && messages.all(|(at, message)| is_whole(at, message)) {
        return None;
    }
    let less = |(at, message): (usize, &Arc<Message>)| {
        if is_whole(at, message) {
            return Arc::clone(message);
        }
        let keep = |part| if is_refused(at, message, part) { omitted(part) } else { Some(part.clone()) };
        Arc::new(Message { parts: message.parts.iter().filter_map(keep).collect(), ..Message::clone(message) })
    };
    Some(Prompt { messages: prompt.messages.iter().enumerate().map(less).collect(), tools, ..prompt.clone() })
}

/// What takes the place of a part that is left out.
fn omitted(part: &Part) -> Option<Part> {
    match part {
        Part::Image(_) => Some(Part::Text(NO_IMAGE.to_owned())),
        Part::Text(_) => Some(Part::Text(NO_TEXT.to_owned())),
        Part::ToolResult(result) => {
            Some(Part::ToolResult(ToolResult { content: vec![NO_TEXT.to_owned()], ..result.clone() }))
        }
        // The result of a call is sent as a text then.
        Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}
