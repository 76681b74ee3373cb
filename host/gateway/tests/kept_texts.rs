//! Where only what the client was shown is kept, no event has what the model wrote.

use std::sync::Arc;
use std::time::Duration;

use flow::{Callback, EventKind, KeptText, Retained, TextAnswer, TextUnit};
use guard::Caller;
use rules::{RuleSession, RuleSet};
use tidegate_gateway::{Exchange, Filtered, Then};
use tidegate_kit::{ready, rule_set};
use wire::Wire;

use crate::plugins::{caller, first, none, plugin};
use crate::script::{Said, WIRES, stream, whole};

/// Changes `secret`, and fails at `bad`. `keeps_shown`: what is kept of that.
fn changing(keeps_shown: bool) -> Arc<Caller> {
    let mut own = plugin(Callback::PlainText(TextUnit::Line.into()));
    (own.keeps_shown, own.required) = (keeps_shown, true);
    own.text = Some(Box::new(|(text, _)| {
        let replaced = || TextAnswer::Replace(text.replace("secret", "***"));
        if text.contains("bad") { Err("it trapped".to_owned()) } else { Ok(replaced()) }
    }));
    caller(vec![own], false)
}

/// Returns the events of an exchange in which each request gets the next of `answers`.
fn events(wire: Wire, set: &Arc<RuleSet>, answers: &[Vec<Said<'_>>], is_stream: bool) -> Vec<EventKind> {
    events_of(changing(true), wire, set, answers, is_stream)
}

fn events_of(
    caller: Arc<Caller>,
    wire: Wire,
    set: &Arc<RuleSet>,
    answers: &[Vec<Said<'_>>],
    is_stream: bool,
) -> Vec<EventKind> {
    let exchange = Exchange::new(wire, first(wire).into(), "m", RuleSession::new(Arc::clone(set)));
    let mut own = Filtered::new(exchange, "m", Some(caller), Arc::default());
    let mut events = Vec::new();
    for (number, said) in answers.iter().enumerate() {
        own.begin(is_stream);
        let answer = if is_stream { stream(wire, number + 1, said, 3) } else { whole(wire, said) };
        let mut next = ready(own.receive(&answer, Duration::ZERO));
        if next.then == Then::More {
            next = ready(own.end(Duration::ZERO));
        }
        events.extend(own.take_events());
        let expected = if number + 1 == answers.len() { Then::End } else { Then::Ask };
        assert_eq!(next.then, expected, "{wire:?} {number}");
    }
    events
}

/// Returns the texts of the model's answers, each with how much of it is kept of the conversation.
fn texts(events: &[EventKind]) -> Vec<(&str, &Retained)> {
    let texts = events.iter().filter_map(|event| match event {
        EventKind::CognitionOut { text, keep: KeptText::Shown, retained, .. } => Some((text.as_str(), retained)),
        EventKind::CognitionOut { .. } => panic!("{event:?}"),
        _ => None,
    });
    texts.collect()
}

#[test]
fn an_answer_that_was_stopped_is_kept_as_it_was_shown() {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
    let answers = [vec![Said::Text("A secret.\nNow forbidden")], vec![Said::Text("Fine, secret.")]];
    for wire in WIRES {
        let whole = events(wire, &set, &answers, false);
        assert_eq!(texts(&whole), [("", &Retained::Nothing), ("Fine, ***.", &Retained::Answer)], "{wire:?}");
        let streamed = events(wire, &set, &answers, true);
        let kept = Retained::Start { bytes: "A ***.\n".len() as u64 };
        let all = ("A ***.\nFine, ***.", &Retained::Answer);
        assert_eq!(texts(&streamed), [("A ***.\n", &kept), all], "{wire:?}");
        assert!(!format!("{whole:?}{streamed:?}").contains("secret"), "{whole:?} {streamed:?}");
    }
}

#[test]
fn an_answer_whose_callback_failed_is_not_kept() {
    for (wire, is_stream) in WIRES.into_iter().flat_map(|wire| [(wire, true), (wire, false)]) {
        let events = events(wire, &none(), &[vec![Said::Text("A secret.\nNow bad")]], is_stream);
        assert_eq!(texts(&events), [("", &Retained::Nothing)], "{wire:?} {is_stream}");
        assert!(!format!("{events:?}").contains("secret"), "{events:?}");
    }
}

/// How much of each answer that did not complete its client has.
fn shown(events: &[EventKind]) -> Vec<u64> {
    let partial = |event: &EventKind| match event {
        EventKind::CognitionOut { partial, .. } => Some(partial.as_ref()?.shown_bytes),
        _ => None,
    };
    events.iter().filter_map(partial).collect()
}

#[test]
fn what_was_shown_of_a_stopped_answer_is_counted() {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
    for wire in WIRES {
        let exchange = Exchange::new(wire, first(wire).into(), "m", RuleSession::new(Arc::clone(&set)));
        let mut own = Filtered::new(exchange, "m", None, Arc::default());
        own.begin(true);
        let answer = stream(wire, 1, &[Said::Text("Hello.\nNow forbidden")], 3);
        let next = ready(own.receive(&answer, Duration::ZERO));
        assert_eq!(next.then, Then::Ask, "{wire:?}");
        let sent = "Hello.\nNow ".len() as u64;
        let counts = shown(&own.take_events());
        assert!(counts.len() == 1 && (1..=sent).contains(&counts[0]), "{wire:?}: {counts:?}");
    }
    let answers = [vec![Said::Text("A secret.\nNow forbidden")], vec![Said::Text("Fine.")]];
    assert_eq!(shown(&events(WIRES[0], &set, &answers, true)), ["A ***.\n".len() as u64]);
}

/// The client has one message of all attempts: the text of each begins with what it has of those before.
#[test]
fn an_answer_begins_with_what_is_kept_of_earlier_ones() {
    let rule = "+++\ncondition = \"forbidden\"\nrepeat = \"always\"\n+++\nNever say it.";
    let set = rule_set(&[("no", rule)], |_| ());
    let first_ones = ["A long first line.\n", "B.\n"];
    let answers = [
        first_ones[0].to_owned() + "Now forbidden",
        first_ones[1].to_owned() + "Again forbidden",
        "Fine.\n".to_owned(),
    ];
    let expected = [first_ones[0].to_owned(), first_ones.concat(), first_ones.concat() + "Fine.\n"];
    for wire in WIRES {
        let said: Vec<_> = answers.iter().map(|text| vec![Said::Text(text)]).collect();
        let events = events(wire, &set, &said, true);
        let kept = expected.iter().map(|text| text.len() as u64);
        assert_eq!(shown(&events), kept.clone().take(2).collect::<Vec<_>>(), "{wire:?}");
        let texts = texts(&events);
        assert_eq!(texts.iter().map(|(text, _)| *text).collect::<Vec<_>>(), expected, "{wire:?}");
        let starts = kept.map(|bytes| Retained::Start { bytes }).take(2);
        assert_eq!(
            texts.iter().map(|(_, retained)| **retained).take(2).collect::<Vec<_>>(),
            starts.collect::<Vec<_>>()
        );
    }
}

/// Where the model's text is kept, what the client has is next to it, without what an extension took out or put in.
#[test]
fn what_the_client_has_is_noted_next_to_the_text_of_the_model() {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
    let stopped = [vec![Said::Text("One.\nA secret.\nNow forbidden")], vec![Said::Text("Fine, secret.\nTwo.\n")]];
    let failed = [vec![Said::Text("One.\nA secret.\nbad\n")]];
    let all = "One.\n[changed by an extension]\n[changed by an extension]\nTwo.\n";
    let passed = [vec![Said::Text("One.\nTwo.\n")]];
    for wire in WIRES {
        for (answers, expected) in [
            (&stopped[..], &[Some("One.\n[changed by an extension]\n"), Some(all)][..]),
            (&failed[..], &[Some("One.\n[changed by an extension]\n")]),
            (&passed[..], &[None]),
        ] {
            let events = events_of(changing(false), wire, &set, answers, true);
            let noted = events.iter().filter_map(|event| match event {
                EventKind::CognitionOut { text, shown, .. } => {
                    assert!(text.contains("secret") || expected == [None], "{wire:?}: {text}");
                    Some(shown.as_deref())
                }
                _ => None,
            });
            assert_eq!(noted.collect::<Vec<_>>(), expected, "{wire:?}");
        }
    }
}
