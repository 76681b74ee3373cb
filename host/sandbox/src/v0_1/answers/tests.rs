//! Tests the conversion of messages through a guest, without a guest.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use flow::{Message, Origin, OutputMode, Part, Role};

use super::super::convert::{history, message_out};
use super::{
    ContentResult, PartResult, RoleResult, exports, imports, input_size, message_size, output, part_size,
    returned_messages,
};

fn signed(text: &str, signature: &str) -> Part {
    Part::Thinking { text: text.into(), signature: Some(signature.into()), redacted: false, shown: None }
}

fn hidden_thoughts() -> Message {
    let redacted =
        |data: &str| Part::Thinking { text: String::new(), signature: Some(data.into()), redacted: true, shown: None };
    Message {
        role: Role::Assistant,
        origin: Origin::Model,
        parts: vec![signed("same", "S1"), signed("same", "S2"), redacted("R1"), redacted("R2"), Part::Text("t".into())],
        hidden: true,
    }
}

#[test]
fn unchanged_messages_come_back_whole_in_any_order() {
    let plugin = "p".parse().unwrap();
    let given = [Message::user("a"), hidden_thoughts(), Message::user("a")];
    let mut shown: Vec<_> = given.iter().map(message_out).collect();
    shown.reverse();
    shown.truncate(2);
    let back = returned_messages(shown, &given, &plugin).unwrap();
    assert_eq!(back, [given[2].clone(), given[1].clone()]);
}

#[test]
fn a_changed_message_keeps_its_signatures_origin_and_hiddenness() {
    let plugin = "p".parse().unwrap();
    let given = [hidden_thoughts()];
    let mut shown: Vec<_> = given.iter().map(message_out).collect();
    shown[0].parts[4] = PartResult::Text("new".into());
    let back = returned_messages(shown.clone(), &given, &plugin).unwrap();
    let mut wanted = given[0].clone();
    wanted.parts[4] = Part::Text("new".into());
    assert_eq!(back, [wanted]);
    shown[0].parts[0] = PartResult::Thinking("changed".into());
    let back = returned_messages(shown, &given, &plugin).unwrap();
    assert_eq!(
        back[0].parts[0],
        Part::Thinking { text: "changed".into(), signature: None, redacted: false, shown: None }
    );
    assert_eq!(back[0].parts[1], signed("same", "S1"), "the same words keep a signature that was given with them");
}

#[test]
fn a_new_message_is_the_plugins_own_and_unknown_things_are_told() {
    let plugin: flow::PluginId = "p".parse().unwrap();
    let given = [Message::user("a")];
    let mut shown = vec![message_out(&Message::user("new")), message_out(&given[0])];
    let back = returned_messages(shown.clone(), &given, &plugin).unwrap();
    assert_eq!(back[0], Message::text(Role::User, Origin::Plugin(plugin.clone()), "new"));
    assert_eq!(back[1], given[0]);
    shown[0].parts.push(PartResult::Other("image".into()));
    let why = returned_messages(shown.clone(), &given, &plugin).unwrap_err();
    assert_eq!(why, "message 0: a part of the kind `image` that was not in the message it came with");
    shown[0].parts.pop();
    let (id, media_type) = ("b1".into(), "image/png".into());
    shown[0].parts.push(PartResult::Blob(imports::types::BlobResult { id, media_type, size: 1, attributes: vec![] }));
    let why = returned_messages(shown.clone(), &given, &plugin).unwrap_err();
    assert_eq!(why, "message 0: a blob that was not in the message it came with");
    shown[0].parts.pop();
    shown[1].role = RoleResult::Other("narrator".into());
    let why = returned_messages(shown, &given, &plugin).unwrap_err();
    assert_eq!(why, "message 1: the role `narrator` is not known to this version of the contract");
}

#[test]
fn reasons_for_what_is_not_used_are_bounded() {
    use exports::on_llm_output::{Annotation, OutputAnswer, OutputChange};
    let annotations = (0..100_000).map(|_| Annotation { key: String::new(), value: String::new() }).collect();
    let answer = OutputAnswer { change: OutputChange::Pass, annotations, attributes: Vec::new() };
    let done = output(answer, OutputMode::Observe);
    assert_eq!((done.annotations.len(), done.ignored.len()), (0, 33));
    assert_eq!(done.ignored[32], "99968 more annotations");
}

/// Bytes of text on top of what the values themselves take.
#[test]
fn all_that_a_guest_returns_counts() {
    let attribute = || ("ab".to_owned(), "cde".to_owned());
    let pair = size_of::<(String, String)>() + 5;
    let text = PartResult::Text("12345".into());
    assert_eq!(part_size(&text), size_of::<Part>() + 5);
    let call = imports::types::ToolCallResult {
        id: "1".into(),
        name: "22".into(),
        arguments: "333".into(),
        attributes: vec![attribute()],
    };
    assert_eq!(part_size(&PartResult::ToolCall(call)), size_of::<Part>() + 6 + pair);
    let result = imports::types::ToolResultResult {
        id: "1".into(),
        content: vec![ContentResult::Text("22".into()), ContentResult::Text("333".into())],
        is_error: false,
        attributes: vec![attribute(), attribute()],
    };
    let content = 5 + 2 * size_of::<ContentResult>();
    assert_eq!(part_size(&PartResult::ToolResult(result)), size_of::<Part>() + 1 + content + 2 * pair);
    let blob = imports::types::BlobResult {
        id: "1".into(),
        media_type: "22".into(),
        size: 1 << 30,
        attributes: vec![attribute()],
    };
    assert_eq!(part_size(&PartResult::Blob(blob)), size_of::<Part>() + 3 + pair);
    let message = super::MessageResult {
        id: "7".into(),
        role: RoleResult::Other("four".into()),
        parts: vec![text],
        attributes: vec![attribute()],
    };
    let whole = size_of::<Message>() + 1 + 4 + size_of::<Part>() + 5 + pair;
    assert_eq!(message_size(&message), whole);
    use exports::on_input_messages::{InputAnswer, InputChange};
    let size = |change, attributes| input_size(&InputAnswer { change, attributes });
    assert_eq!(size(InputChange::Finish(Some(vec![message.clone(), message])), vec![]), 2 * whole);
    assert_eq!(size(InputChange::Finish(None), vec![attribute()]), pair);
    assert_eq!((size(InputChange::Reject("ab".into()), vec![]), size(InputChange::Pass, vec![])), (2, 0));
}

#[test]
fn the_history_is_bounded_in_bytes() {
    let message = |size: usize| Arc::new(Message::user("x".repeat(size)));
    let sizes = |messages: &[(u64, Arc<Message>)], bytes| {
        let one = |message: &super::MessageResult| {
            let PartResult::Text(text) = &message.parts[0] else { panic!() };
            (message.id.clone(), text.len(), message.attributes.clone())
        };
        history(messages, bytes).iter().map(one).collect::<Vec<_>>()
    };
    let plain = |id: &str, size| (id.to_owned(), size, Vec::new());
    let three = [(4, message(60)), (5, message(40)), (9, message(1))];
    assert_eq!(sizes(&three, 101), [plain("4", 60), plain("5", 40), plain("9", 1)]);
    assert_eq!(sizes(&three, 100), [plain("4", 60), plain("5", 40)]);
    assert_eq!(sizes(&three, 99), [plain("4", 60)]);
    let cut = |size: &str| vec![("tidegate.cut".to_owned(), size.to_owned())];
    assert_eq!(sizes(&three, 59), [("4".to_owned(), 59, cut("60"))], "the first is always there");
    let two_bytes = [(0, Arc::new(Message::user("äö")))];
    assert_eq!(sizes(&two_bytes, 3), [("0".to_owned(), 2, cut("4"))], "cut at a character");
}
