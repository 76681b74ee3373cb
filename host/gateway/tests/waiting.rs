//! Bytes that are held back, and what the client gets meanwhile.

use std::sync::Arc;
use std::time::Duration;

use flow::{Callback, OutputAnswer, OutputMode};
use rules::RuleSession;
use tidegate_gateway::{Exchange, Filtered, HeldLimits, Next, Then, watches};
use tidegate_kit::{ready, rule_set};
use wire::Wire;

use crate::plugins::{caller, none, plugin};
use crate::script::{Said, WIRES, read, request, stream};

#[test]
fn bytes_are_held_back_for_as_long_as_the_settings_say() {
    let rule = "+++\ncondition = \"A.*Z\"\n+++\nNever.";
    for wire in WIRES {
        let set = rule_set(&[("endless", rule)], |settings| settings.hold_max_ms = 1_500);
        let mut exchange = Exchange::new(wire, request(wire).into(), "m", RuleSession::new(set));
        exchange.begin(true);
        let answer = stream(wire, 1, &[Said::Text("x A rest of it")], 1);
        // The last frames, from the end of the text on, come later.
        let end = answer.len() - answer.len() / 5;
        let Next { send: mut got, then } = exchange.receive(&answer[..end], Duration::from_secs(1));
        assert!(then == Then::More && !String::from_utf8_lossy(&got).contains("\"A\""), "{wire:?}");
        assert_eq!(exchange.deadline(), Some(Duration::from_millis(2_500)));
        assert!(exchange.release(Duration::from_millis(2_400)).is_empty());
        got.extend(exchange.release(Duration::from_millis(2_500)));
        assert!(String::from_utf8_lossy(&got).contains("\"A\""), "{wire:?}");
        let Next { send, then } = exchange.receive(&answer[end..], Duration::from_secs(3));
        got.extend(send);
        assert_eq!((read(wire, &got).0.as_str(), then), ("x A rest of it", Then::End));
    }
}

#[test]
fn without_a_rule_nothing_is_watched() {
    let watched = |specs: &[(&str, &str)]| watches(&rule_set(specs, |_| ()), "main");
    assert!(!watched(&[]) && watched(&[("no", "+++\ncondition = \"x\"\n+++\nNever.")]));
}

#[test]
fn a_sign_of_life_changes_nothing() {
    for wire in WIRES {
        let set = rule_set(&[("rare", "+++\ncondition = \"zyzzyva\"\n+++\nNever.")], |_| ());
        let mut exchange = Exchange::new(wire, request(wire).into(), "m", RuleSession::new(set));
        exchange.begin(true);
        let mut got = exchange.keep_alive().to_vec();
        for frame in stream(wire, 1, &[Said::Text("Fine.")], 2).split_inclusive(|byte| *byte == b'\n') {
            let Next { send, .. } = exchange.receive(frame, Duration::ZERO);
            let between = !send.is_empty();
            got.extend(send);
            if between {
                got.extend_from_slice(exchange.keep_alive());
            }
        }
        assert_eq!(read(wire, &got).0, "Fine.", "{}", String::from_utf8_lossy(&got));
        assert!(wire != Wire::Anthropic || String::from_utf8_lossy(&got).contains("event: ping"));
    }
}

/// What waits for callbacks counts as what waits for rules does.
#[test]
fn what_waits_for_callbacks_is_bounded() {
    for wire in WIRES {
        for held in [HeldLimits { bytes: 4_000, frames: 100_000 }, HeldLimits { bytes: 32 << 20, frames: 50 }] {
            let mut own = plugin(Callback::LlmOutput(OutputMode::Rewrite));
            own.output = Some(Box::new(|_| Ok(OutputAnswer::default())));
            let exchange = Exchange::new(wire, request(wire).into(), "m", RuleSession::new(none())).holding(held);
            let mut own = Filtered::new(exchange, "m", Some(caller(vec![own], false)), Arc::default());
            own.begin(true);
            let (mut got, mut most, mut then) = (Vec::new(), 0, Then::More);
            for bytes in stream(wire, 1, &[Said::Text(&"word ".repeat(200))], 5).chunks(100) {
                let next = ready(own.receive(bytes, Duration::ZERO));
                got.extend(next.send);
                (then, most) = (next.then, most.max(own.held_bytes()));
                if then != Then::More {
                    break;
                }
            }
            let text = String::from_utf8(got).unwrap();
            assert!(then == Then::End && text.contains("because too much of it waits to be checked"), "{text}");
            assert!((1_000..32 << 10).contains(&most) && own.held_bytes() == 0, "{most}");
        }
    }
}
