//! Passes the parts of a request that are not input through the callbacks that asked for them: instructions, descriptions of tools, and
//! history without a note.

use std::collections::BTreeSet;
use std::ops::Range;

use flow::{Message, Origin, Part as Content, Role};
use guard::input::{self, Input};

use super::{Stage, Stop, note};
use crate::json::{Doc, Edits, Kind, Member, Node};
use crate::memory::{About, Note};

/// Members whose strings are names, ids or data, not text.
const NAMES: [&str; 20] = [
    "type",
    "role",
    "id",
    "name",
    "model",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "item_id",
    "file_id",
    "signature",
    "encrypted_content",
    "media_type",
    "mime_type",
    "cache_control",
    "status",
    "format",
    "detail",
    "encoding",
    "namespace",
];

/// Members of a request that configure it, and that the model does not read.
const SETTINGS: [&str; 12] = [
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "previous_response_id",
    "service_tier",
    "include",
    "betas",
    "anthropic_beta",
    "container",
    "stream_options",
    "prompt_cache_retention",
];

/// The size of the batches of texts that a callback gets, in bytes.
const BATCH: usize = 64 << 10;

/// The minimum length of strings that can contain a secret.
const SHORTEST: usize = 3;

/// The minimum length of numbers that can be those of a card, a phone or an account, in characters.
const LONG_NUMBER: usize = 8;

/// A string of the request.
struct Leaf {
    at: Range<usize>,
    /// The arguments in a JSON string that contain it.
    inside: Option<usize>,
    text: String,
    role: Role,
}

/// Arguments that are JSON in a string.
struct Written {
    at: Range<usize>,
    bytes: Vec<u8>,
    edits: Edits,
}

/// The strings that were found in a request.
#[derive(Default)]
struct Found {
    leaves: Vec<Leaf>,
    written: Vec<Written>,
}

impl<'b> Stage<'_, 'b> {
    pub(super) async fn beyond(&mut self, root: &'b Node, arguments: &BTreeSet<usize>) -> Result<(), Stop> {
        if !self.caller.gets_whole_requests() {
            return Ok(());
        }
        let mut found = Found::default();
        if let Kind::Object(members) = &root.kind {
            for one in members.iter().filter(|one| !SETTINGS.contains(&one.name.as_str())) {
                if !(one.value.is_string() && NAMES.contains(&one.name.as_str())) {
                    self.collect(&one.value, Role::System, false, arguments, &mut found);
                }
            }
        }
        let mut asked = BTreeSet::new();
        let is_new = |leaf: &&Leaf| {
            let text = leaf.text.trim();
            self.known(About::Text, &[text]).is_none() && asked.insert(text.to_owned())
        };
        let new: Vec<(Role, String)> =
            found.leaves.iter().filter(is_new).map(|leaf| (leaf.role, leaf.text.trim().to_owned())).collect();
        for batch in batches(&new) {
            self.ask(batch).await?;
        }
        for leaf in &found.leaves {
            let edits = match leaf.inside {
                Some(inside) => &mut found.written[inside].edits,
                None => &mut self.edits,
            };
            if let Some(Note::Text(text)) = super::lock(self.memory).get(About::Text, &[leaf.text.trim()]) {
                edits.text(&leaf.at, &leaf.text.replacen(leaf.text.trim(), text, 1));
            }
        }
        for Written { at, bytes, edits } in found.written.into_iter().filter(|one| !one.edits.is_empty()) {
            self.edits.text(&at, &String::from_utf8_lossy(&edits.apply(&bytes)));
        }
        Ok(())
    }

    async fn ask(&self, batch: &[(Role, String)]) -> Result<(), Stop> {
        let message = |(role, text): &(Role, String)| Message {
            role: *role,
            origin: if *role == Role::Assistant { Origin::Model } else { Origin::User },
            parts: vec![Content::Text(text.clone())],
            hidden: false,
        };
        let made = match input::beyond(self.caller, batch.iter().map(message).collect()).await? {
            Input::Ask(made) => made,
            Input::Reply { by, .. } => {
                return Err(Stop::Refused(format!("the extension `{by}` replied to what is no input")));
            }
            Input::Reject { by, reason } => {
                return Err(Stop::rejected(&by, &reason));
            }
        };
        if made.len() != batch.len() {
            let cause = "the extensions made another number of messages of what is no input";
            return Err(Stop::Refused(cause.to_owned()));
        }
        for ((_, text), made) in batch.iter().zip(made) {
            self.noted(About::Text, &[text], note(text, made.plain_text()));
        }
        Ok(())
    }

    /// Collects the strings of a value. `keys`: whether it is in arguments, where names of members and long numbers are collected, too.
    fn collect(&self, node: &Node, role: Role, keys: bool, arguments: &BTreeSet<usize>, found: &mut Found) {
        if self.seen.contains(&node.at.start) || self.without.contains(&node.at.start) {
            return;
        }
        let keys = keys || (arguments.contains(&node.at.start) && !node.is_string());
        match &node.kind {
            Kind::Object(members) => {
                let role = self.role(node).unwrap_or(role);
                for one in members {
                    // Arguments can have members with any name.
                    if !keys && one.value.is_string() && self.is_no_text(node, one) {
                        continue;
                    }
                    if keys && one.name.len() >= SHORTEST {
                        let (at, text) = (one.key.clone(), one.name.clone());
                        found.leaves.push(Leaf { at, inside: None, text, role });
                    }
                    let keys = keys || (one.name == "input" && !one.value.is_array());
                    self.collect(&one.value, role, keys, arguments, found);
                }
            }
            Kind::Array(items) => items.iter().for_each(|item| self.collect(item, role, keys, arguments, found)),
            Kind::String => {
                let text = self.doc.text(node).unwrap_or_default();
                if arguments.contains(&node.at.start) && inner(&node.at, &text, found) {
                    return;
                }
                if text.len() >= SHORTEST && !text.trim().is_empty() {
                    found.leaves.push(Leaf { at: node.at.clone(), inside: None, text, role });
                }
            }
            Kind::Other => {
                let number = long_number(self.doc, node).filter(|_| keys);
                found.leaves.extend(number.map(|text| Leaf { at: node.at.clone(), inside: None, text, role }));
            }
        }
    }

    /// Returns whether a member that is a string is a name, an id, or the data of a picture or a file.
    fn is_no_text(&self, object: &Node, one: &Member) -> bool {
        let text = || self.doc.text(&one.value).unwrap_or_default();
        match one.name.as_str() {
            "data" => self.doc.text_of(object, "type").as_deref() != Some("text") && is_base64(&text()),
            "url" | "image_url" | "file_data" => is_data_url(&text()),
            name => NAMES.contains(&name),
        }
    }

    /// Returns the author if a value is a message.
    fn role(&self, node: &Node) -> Option<Role> {
        let kind = || self.doc.text_of(node, "type");
        match self.doc.text_of(node, "role").as_deref() {
            Some("assistant") => Some(Role::Assistant),
            Some("user") => Some(Role::User),
            Some("tool") => Some(Role::Tool),
            Some(_) => Some(Role::System),
            None => kind().filter(|kind| kind.ends_with("_call")).map(|_| Role::Assistant),
        }
    }
}

/// Collects the strings of arguments that are JSON in a string. Returns whether they are JSON.
fn inner(at: &Range<usize>, text: &str, found: &mut Found) -> bool {
    fn strings(doc: Doc<'_>, node: &Node, inside: usize, leaves: &mut Vec<Leaf>) {
        let mut leaf = |at: &Range<usize>, text: String| {
            if text.len() >= SHORTEST && !text.trim().is_empty() {
                leaves.push(Leaf { at: at.clone(), inside: Some(inside), text, role: Role::Assistant });
            }
        };
        match &node.kind {
            Kind::Object(members) => {
                members.iter().for_each(|one| leaf(&one.key, one.name.clone()));
                members.iter().for_each(|one| strings(doc, &one.value, inside, leaves));
            }
            Kind::Array(items) => items.iter().for_each(|item| strings(doc, item, inside, leaves)),
            Kind::String => leaf(&node.at, doc.text(node).unwrap_or_default()),
            Kind::Other => leaf(&node.at, long_number(doc, node).unwrap_or_default()),
        }
    }
    let bytes = text.as_bytes().to_vec();
    let Some((doc, root)) = Doc::read(&bytes).filter(|(_, root)| !root.is_string()) else { return false };
    strings(doc, &root, found.written.len(), &mut found.leaves);
    found.written.push(Written { at: at.clone(), bytes, edits: Edits::default() });
    true
}

/// Returns a number as it is written, if it is a long one.
fn long_number(doc: Doc<'_>, node: &Node) -> Option<String> {
    let literal = std::str::from_utf8(&doc.bytes[node.at.clone()]).ok()?;
    let is_number = matches!(node.kind, Kind::Other) && literal.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    (is_number && literal.len() >= LONG_NUMBER).then(|| literal.to_owned())
}

/// Returns whether a text is `data:TYPE;base64,…` and nothing else.
fn is_data_url(text: &str) -> bool {
    let parts = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let is_type =
        |kind: &str| kind.len() < 100 && kind.chars().all(|c| c.is_ascii_alphanumeric() || "/+-.".contains(c));
    parts.is_some_and(|(kind, data)| is_type(kind) && is_base64(data))
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
}

/// Splits texts into batches of about the same number of bytes.
fn batches(texts: &[(Role, String)]) -> Vec<&[(Role, String)]> {
    let (mut batches, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, (_, text)) in texts.iter().enumerate() {
        if at > from && bytes + text.len() > BATCH {
            batches.push(&texts[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += text.len();
    }
    if from < texts.len() {
        batches.push(&texts[from..]);
    }
    batches
}
