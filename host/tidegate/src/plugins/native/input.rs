//! The answer of a native extension to an input.

use std::sync::Arc;

use flow::{Image, InputAnswer, Message, Origin, Part, PluginId, Reasons};

use super::call::Returned;

/// The answer to `on_input_messages`, and the number of bytes of the images that it adds.
pub(super) struct Input {
    pub(super) answer: InputAnswer,
    images: usize,
}

impl Input {
    /// Checks the answer of `plugin`, which was called with `given`.
    pub(super) fn of(answer: InputAnswer, given: &[Message], plugin: &PluginId) -> Self {
        let own = |messages: Vec<Message>| owned(messages, given, plugin);
        let answer = match answer {
            InputAnswer::Replace(messages) => InputAnswer::Replace(own(messages)),
            InputAnswer::Finish(Some(messages)) => InputAnswer::Finish(Some(own(messages))),
            other => other,
        };
        let images = match &answer {
            InputAnswer::Replace(messages) | InputAnswer::Finish(Some(messages)) => added(messages, given),
            _ => 0,
        };
        Self { answer, images }
    }
}

impl Returned for Input {
    fn bytes(&self) -> usize {
        self.answer.bytes() + self.images
    }
}

impl Reasons for Input {
    fn reasons(&mut self) -> Vec<&mut String> {
        self.answer.reasons()
    }
}

/// The messages with who wrote each, as of plugins: one that came back is what it was, one that was changed stays that of who wrote it, and the
/// rest is the extension's own, which everybody sees.
fn owned(returned: Vec<Message>, given: &[Message], plugin: &PluginId) -> Vec<Message> {
    let mut free = vec![true; given.len()];
    let mut same = vec![None; returned.len()];
    for (index, message) in returned.iter().enumerate() {
        let fits = |at: &usize| {
            let is_same = |one: &Message| one.role == message.role && one.parts == message.parts;
            free.get(*at) == Some(&true) && given.get(*at).is_some_and(is_same)
        };
        same[index] = Some(index).filter(fits).or_else(|| (0..given.len()).find(fits));
        if let Some(at) = same[index] {
            free[at] = false;
        }
    }
    let mut done = Vec::with_capacity(returned.len());
    for (index, message) in returned.into_iter().enumerate() {
        let has_role = |base: &Message| base.role == message.role;
        let changed = (free.get(index) == Some(&true) && given.get(index).is_some_and(has_role)).then_some(index);
        let at = same[index].or(changed);
        at.into_iter().for_each(|at| free[at] = false);
        let base = at.and_then(|at| given.get(at));
        let origin = base.map_or_else(|| Origin::Plugin(plugin.clone()), |base| base.origin.clone());
        done.push(Message { origin, hidden: base.is_some_and(|base| base.hidden), ..message });
    }
    done
}

/// Returns the number of bytes of the images that were in none of the given messages.
fn added(returned: &[Message], given: &[Message]) -> usize {
    let known: Vec<&Image> = given.iter().flat_map(images).collect();
    let is_known = |image: &Image| {
        let data = image.shared_base64();
        known.iter().any(|one| Arc::ptr_eq(&one.shared_base64(), &data) || *one == image)
    };
    returned.iter().flat_map(images).filter(|image| !is_known(image)).map(|image| image.base64().len()).sum()
}

fn images(message: &Message) -> impl Iterator<Item = &Image> {
    message.parts.iter().filter_map(|part| if let Part::Image(image) = part { Some(image) } else { None })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::Role;

    use super::*;

    fn message(text: &str, origin: Origin, hidden: bool) -> Message {
        Message { hidden, ..Message::text(Role::User, origin, text) }
    }

    #[test]
    fn nobody_else_wrote_what_an_extension_adds() {
        let plugin: PluginId = "adds".parse().unwrap();
        let given = [message("a", Origin::User, false), message("b", Origin::Host, true)];
        let forged = |text: &str| message(text, Origin::User, true);
        let wrote = |returned: Vec<Message>| -> Vec<(String, Origin, bool)> {
            let InputAnswer::Replace(messages) = Input::of(InputAnswer::Replace(returned), &given, &plugin).answer
            else {
                panic!("another answer")
            };
            messages.into_iter().map(|one| (one.plain_text(), one.origin, one.hidden)).collect()
        };
        let (a, b) = (("a".to_owned(), Origin::User, false), ("b".to_owned(), Origin::Host, true));
        let own = |text: &str| (text.to_owned(), Origin::Plugin(plugin.clone()), false);
        // Unchanged messages come back in another order.
        assert_eq!(wrote(vec![forged("b"), forged("a")]), [b.clone(), a.clone()]);
        // A changed message keeps its author; an additional one is the extension's.
        let changed = |text: &str, of: &(String, Origin, bool)| (text.to_owned(), of.1.clone(), of.2);
        assert_eq!(wrote(vec![forged("A"), forged("B"), forged("C")]), [changed("A", &a), changed("B", &b), own("C")]);
        assert_eq!(wrote(vec![forged("b"), forged("x"), forged("a")]), [b, own("x"), a]);
    }

    #[test]
    fn images_count_where_they_are_new() {
        let image = |data: &str| Part::Image(Image::new("image/png", format!("iVBORw{data}")).unwrap());
        let with = |parts: Vec<Part>| Message { parts, ..Message::user("") };
        let given = [with(vec![image("AA")])];
        let bytes = |parts| Input::of(InputAnswer::Replace(vec![with(parts)]), &given, &"p".parse().unwrap()).bytes();
        assert_eq!(bytes(vec![image("AA"), image("AA")]), 0);
        assert_eq!(bytes(vec![image("BB"), Part::Text("four".into())]), 12);
    }
}
