//! `rewind`: the text before the line of a match is kept as the start of the answer, sent to a model that can
//! continue from it and described to one that cannot; at every chunking, with every way of handling the text.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{
    Action, Callback, ErrorClass, Event, EventKind, ModelError, OutputMode, Role, StopReason, StreamKind, TagPattern,
    TextUnit, TurnStatus,
};
use rules::{ContextMode, Hold, RuleSet, RuleSettings};
use tidegate_kit::{CUTS, Plugin, Scene, Script, ScriptedModel, blocks, calls, rule_set, said, shown, text, tool};

const WRONG: &str = "One line.\n\nThen FORBIDDEN words.\nMore.";

fn forbidden(lines: &str, change: impl FnOnce(&mut RuleSettings)) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"FORBIDDEN\"\n{lines}\n+++\nNever say it.");
    rule_set(&[("no-forbidden", &rule)], |settings| {
        settings.context_mode = ContextMode::Rewind;
        change(settings);
    })
}

fn plain() -> Arc<RuleSet> {
    forbidden("", |_| {})
}

fn going_on(scripts: impl IntoIterator<Item = Script>, plugins: Vec<Plugin>, rules: Arc<RuleSet>) -> Scene {
    Scene::of(ScriptedModel::going_on(scripts), plugins, rules)
}

fn fired(events: &[Event]) -> Vec<Action> {
    let action = |e: &Event| if let EventKind::RuleFired { action, .. } = &e.kind { Some(*action) } else { None };
    events.iter().filter_map(action).collect()
}

/// The answers as the transcript has them: their text, and whether they came to their end.
fn answers(events: &[Event]) -> Vec<(String, bool)> {
    let answer = |event: &Event| match &event.kind {
        EventKind::CognitionOut { text, partial, .. } => Some((text.clone(), partial.is_none())),
        _ => None,
    };
    events.iter().filter_map(answer).collect()
}

#[tokio::test]
async fn the_model_goes_on_from_the_beginning() {
    for cut in CUTS {
        let mut scene = going_on([text(WRONG, cut), text("\nFine.", cut)], vec![], plain());
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "One line.\nFine."));
        // Nothing is shown twice.
        assert_eq!(shown(&events), "One line.\n\nThen \nFine.", "in pieces of {cut}");
        let request = scene.model.request(1);
        let roles: Vec<Role> = request.iter().map(|(role, _)| *role).collect();
        assert_eq!(roles, [Role::User, Role::User, Role::Assistant], "the reminder stands before the beginning");
        assert!(request[1].1.contains("Never say it.") && request[1].1.ends_with("Continue exactly where it ends."));
        assert_eq!(request[2].1, "One line.", "no white space at its end");
        let history: Vec<String> = scene.session.history().iter().map(|message| said(message)).collect();
        assert_eq!(history.len(), 3, "the beginning and what follows are one message: {history:#?}");
        assert_eq!(history[2], "One line.\nFine.");
        assert_eq!(answers(&events).pop().unwrap(), ("One line.\nFine.".to_owned(), true));
    }
}

#[tokio::test]
async fn a_model_that_cannot_is_told_what_stands() {
    for cut in CUTS {
        let mut scene = Scene::new([text(WRONG, cut), text("Fine.", cut)], vec![], plain());
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.text, "One line.\n\nFine.", "the user has the beginning too");
        assert_eq!(shown(&events), "One line.\n\nThen Fine.", "in pieces of {cut}");
        let request = scene.model.request(1);
        let roles: Vec<Role> = request.iter().map(|(role, _)| *role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        assert_eq!(request[1].1, "One line.\n\n");
        assert!(request[2].1.ends_with("Continue from there without repeating it."), "{}", request[2].1);
    }
}

/// If nothing was shown before the match, the kept prefix is shown with what follows it, or before.
#[tokio::test]
async fn what_stands_is_shown_once_also_where_all_was_held() {
    for hold in [Hold::Block, Hold::Match, Hold::Off] {
        for cut in CUTS {
            let rules = forbidden("", |settings| settings.hold = hold);
            let mut scene = going_on([text(WRONG, cut), text(" Fine.", cut)], vec![], Arc::clone(&rules));
            let (report, events) = scene.turn("go").await;
            assert_eq!(report.text, "One line. Fine.", "{hold:?} in pieces of {cut}");
            if hold == Hold::Block {
                assert_eq!(shown(&events), "One line. Fine.", "in pieces of {cut}");
            }
            let mut scene = Scene::new([text(WRONG, cut), text("Fine.", cut)], vec![], rules);
            let (report, events) = scene.turn("go").await;
            assert_eq!(report.text, "One line.\n\nFine.", "{hold:?} in pieces of {cut}");
            if hold == Hold::Block {
                assert_eq!(shown(&events), report.text, "in pieces of {cut}");
            }
        }
    }
}

/// Beginning and continuation are one block for the rules: a match may span the seam.
#[tokio::test]
async fn a_match_over_the_seam_is_a_match() {
    for cut in CUTS {
        let always = || forbidden("repeat = \"always\"", |_| {});
        let scripts = [text("First.\nA FORX\nThen FORBIDDEN.", cut), text("BIDDEN thing.", cut)];
        let (report, events) = going_on(scripts, vec![], always()).turn("go").await;
        assert_eq!(fired(&events), [Action::Interrupt], "in pieces of {cut}");
        assert_eq!(report.text, "First.\nA FORXBIDDEN thing.");

        let scripts = [text("First.\nA FOR\nThen FORBIDDEN.", cut), text("BIDDEN thing.", cut), text(" Fine.", cut)];
        let (report, events) = going_on(scripts, vec![], always()).turn("go").await;
        assert_eq!(fired(&events), [Action::Interrupt; 2], "in pieces of {cut}");
        // The line of the second match began in the beginning, which is shorter now.
        assert_eq!(report.text, "First. Fine.");
        assert!(!shown(&events).contains("FORB"), "{}", shown(&events));
        let line =
            |e: &Event| if let EventKind::RuleFired { found, .. } = &e.kind { Some(found.evidence.line) } else { None };
        assert_eq!(events.iter().filter_map(line).collect::<Vec<_>>(), [3, 2], "lines are counted from the beginning");
    }
}

#[tokio::test]
async fn what_stands_before_a_call_is_the_text_before_the_first() {
    const WRITE: &str = r#"{"path":"a","content":"FORBIDDEN"}"#;
    for cut in CUTS {
        let stopped = || {
            let said = [
                (StreamKind::Thinking, "Hm."),
                (StreamKind::Text, "I write it.\n"),
                (tool("1", "read"), r#"{"path":"a"}"#),
                (StreamKind::Text, "It is read."),
                (tool("2", "write"), WRITE),
            ];
            Script::Say(blocks(&said, cut, StopReason::ToolUse), Some(Ok(())))
        };
        let (report, events) = going_on([stopped(), text("\nOr not.", cut)], vec![], plain()).turn("go").await;
        assert_eq!((report.text.as_str(), fired(&events)), ("I write it.\nOr not.", vec![Action::Interrupt]));

        let mut scene = Scene::new([stopped(), text("Or not.", cut)], vec![], plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!(report.text, "I write it.\nOr not.", "in pieces of {cut}");
        assert_eq!(scene.model.request(1)[1].1, "I write it.\n", "neither reasoning nor a call that never ran");
    }
}

#[tokio::test]
async fn a_call_right_after_the_beginning_runs() {
    for cut in CUTS {
        let scripts = [text(WRONG, cut), calls(&[("1", "read", "{}")], cut), text("Done.", cut)];
        let mut scene = going_on(scripts, vec![], plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!(report.text, "One line.Done.", "in pieces of {cut}");
        let request = scene.model.request(2);
        assert_eq!(request[2].1, "One line.\ncall read {}");
        assert!(request[3].1.contains("read done"), "{request:?}");
    }
}

#[tokio::test]
async fn an_answer_may_add_nothing_to_its_beginning() {
    for cut in CUTS {
        let nothing = Script::Say(blocks(&[], cut, StopReason::EndTurn), Some(Ok(())));
        let mut scene = going_on([text(WRONG, cut), nothing], vec![], plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "One line."));
        assert_eq!(said(scene.session.history().last().unwrap()), "One line.");
    }
}

/// A reminder that was noted before the verdict goes with the interrupt, and is not due again in the text that is kept.
#[tokio::test]
async fn a_reminder_noted_before_the_verdict_goes_with_the_interrupt() {
    for cut in CUTS {
        let hard = "+++\ncondition = 'FORBIDDEN'\n+++\nNever.";
        let mild =
            "+++\ncondition = 'One'\ninterrupt = 'never'\nscope = 'text'\nrepeat = 'always'\n+++\nCount from zero.";
        let rules = rule_set(&[("hard", hard), ("mild", mild)], |settings| settings.context_mode = ContextMode::Rewind);
        let wrong = "Zero.\nOne line.\nThen FORBIDDEN words. One more.";
        let scripts = [text(wrong, cut), text("\nFine.", cut)];
        let mut scene = going_on(scripts, vec![], rules);
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.text, "Zero.\nOne line.\nFine.", "in pieces of {cut}");
        assert_eq!(fired(&events), [Action::Remind, Action::Interrupt], "nothing fires twice");
        let names = |e: &Event| match &e.kind {
            EventKind::TtsrInjection { rules, .. } => Some(rules.clone()),
            _ => None,
        };
        assert_eq!(events.iter().filter_map(names).collect::<Vec<_>>(), [["mild", "hard"]], "in pieces of {cut}");
        let request = scene.model.request(1);
        assert!(request[1].1.contains("Count from zero.") && request[1].1.contains("Never."), "{request:?}");
    }
}

fn handlers(mode: OutputMode) -> Vec<Plugin> {
    let callbacks = vec![
        (Callback::PlainText(TextUnit::Line.into()), 50),
        (Callback::Tag(vec![TagPattern::Exact("t".into())]), 50),
        (Callback::LlmOutput(mode), 50),
    ];
    vec![Plugin {
        id: "h",
        callbacks,
        text: Some(Box::new(|(text, _)| Ok(flow::TextAnswer::Replace(text.replace("line", "LINE"))))),
        tag: Some(Box::new(|(tag, _)| Ok(flow::TagAnswer::Content(tag.content.to_uppercase())))),
        ..Plugin::default()
    }]
}

/// Extensions that handle text and tags process the kept prefix once more, and their result is kept.
#[tokio::test]
async fn what_extensions_make_of_the_beginning_stands() {
    let wrong = "One line <t>x</t>.\nA line,\n<t>half\nThen FORBIDDEN words.";
    for (mode, cut) in
        [OutputMode::Observe, OutputMode::Rewrite].into_iter().flat_map(|mode| CUTS.map(|cut| (mode, cut)))
    {
        let scripts = [text(wrong, cut), text(" line</t> done.", cut)];
        let mut scene = going_on(scripts, handlers(mode), plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!(report.text, "One LINE <t>X</t>.\nA LINE,\n<t>HALF LINE</t> done.", "{mode:?} in pieces of {cut}");
        assert_eq!(
            said(scene.session.history().last().unwrap()),
            "One line <t>x</t>.\nA line,\n<t>half line</t> done."
        );
    }
    for cut in CUTS {
        let mut scene = Scene::new([text(wrong, cut), text("Done.", cut)], handlers(OutputMode::Observe), plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!(report.text, "One LINE <t>X</t>.\nA LINE,\n<t>half\nDone.", "in pieces of {cut}");
        // Nothing of it was seen where outputs are rewritten whole: there is no text to continue from.
        let mut scene = Scene::new([text(wrong, cut), text("Done.", cut)], handlers(OutputMode::Rewrite), plain());
        assert_eq!(scene.turn("go").await.0.text, "Done.");
    }
}

fn cut_off(words: &str) -> Script {
    let mut deltas = blocks(&[(StreamKind::Text, words)], usize::MAX, StopReason::EndTurn);
    deltas.truncate(if words.is_empty() { 1 } else { 3 });
    Script::Say(deltas, Some(Err(ModelError::new(ErrorClass::Transient, "cut off"))))
}

#[tokio::test(start_paused = true)]
async fn a_broken_attempt_is_tried_again_from_the_same_beginning() {
    let mut scene = going_on([text(WRONG, 3), cut_off(""), text("\nFine.", 3)], vec![], plain());
    let (report, _) = scene.turn("go").await;
    assert_eq!(report.text, "One line.\nFine.");
    assert_eq!(scene.model.request(1), scene.model.request(2));

    // Something was shown: the turn fails, and the conversation contains the text once.
    let mut scene = going_on([text(WRONG, 3), cut_off("\nFine")], vec![], plain());
    let (report, events) = scene.turn("go").await;
    assert!(matches!(report.status, TurnStatus::Failed { .. }), "{report:?}");
    assert_eq!(answers(&events).last().unwrap(), &("One line.\nFine".to_owned(), false));
    let last = said(scene.session.history().last().unwrap());
    assert_eq!(last, "One line.\nFine\n\n[Stream interrupted: cut off]");
}

#[tokio::test]
async fn a_model_that_refuses_a_beginning_is_told_from_then_on() {
    let refusal = ModelError { status: Some(400), ..ModelError::new(ErrorClass::Permanent, "no prefill here") };
    let rules = forbidden("repeat = \"always\"", |settings| settings.hold = Hold::Block);
    let scripts = [text(WRONG, 3), Script::Refuse(refusal), text("Fine.", 3), text(WRONG, 3), text("Fine.", 3)];
    let mut scene = going_on(scripts, vec![], rules);
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "One line.Fine."));
    assert_eq!(shown(&events), "One line.Fine.");
    let notice = |e: &Event| matches!(&e.kind, EventKind::Notice { message } if message.contains("no prefill here"));
    assert!(events.iter().any(notice));
    let request = scene.model.request(2);
    assert_eq!(request[2], (Role::Assistant, "One line.".to_owned()));
    assert!(request[3].1.starts_with("The start of your answer has been kept"), "{request:?}");
    assert_eq!(scene.turn("again").await.0.text, "One line.\n\nFine.");
    assert_eq!(scene.model.request(4).last().unwrap().0, Role::User, "it is sent none any more");

    // Where outputs are rewritten whole the user has seen nothing of it, and the answer restarts.
    let refusal = ModelError { status: Some(400), ..ModelError::new(ErrorClass::Permanent, "no prefill here") };
    let scripts = [text(WRONG, 3), Script::Refuse(refusal), text("Fine.", 3)];
    let mut scene = going_on(scripts, handlers(OutputMode::Rewrite), plain());
    assert_eq!(scene.turn("go").await.0.text, "Fine.");
    assert!(scene.model.request(2).last().unwrap().1.ends_with("Start your answer again."));
}

#[tokio::test]
async fn an_answer_that_begins_anew_has_its_beginning_again() {
    for cut in CUTS {
        let mut deltas = blocks(&[(StreamKind::Text, "\nNo, FOR")], cut, StopReason::EndTurn);
        deltas.truncate(deltas.len() - 2);
        deltas.extend(blocks(&[(StreamKind::Text, "\nFine.")], cut, StopReason::EndTurn));
        let scripts = [text(WRONG, cut), Script::Say(deltas, Some(Ok(())))];
        let mut scene = going_on(scripts, vec![], forbidden("repeat = \"always\"", |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.text.as_str(), report.interrupts), ("One line.\nFine.", 1), "in pieces of {cut}");
        assert!(answers(&events).contains(&("One line.\nNo, FOR".to_owned(), false)));
    }
}

/// Consecutive interrupts: the kept prefix grows line by line, or is discarded by a rule with that mode.
#[tokio::test]
async fn an_answer_may_be_stopped_again() {
    for cut in CUTS {
        let rules = || {
            let always = "+++\ncondition = 'FORBIDDEN'\nrepeat = 'always'\n+++\nNever.";
            let away = "+++\ncondition = 'AWAY'\ncontext = 'discard'\n+++\nNot at all.";
            let keep = "+++\ncondition = 'KEEP'\ncontext = 'keep'\n+++\nNot so.";
            rule_set(&[("always", always), ("away", away), ("keep", keep)], |settings| {
                settings.context_mode = ContextMode::Rewind;
                settings.max_interrupts_per_turn = 9;
            })
        };
        let scripts = || {
            [text("One.\nFORBIDDEN", cut), text("\nTwo.\nFORBIDDEN", cut), text("\nThree.\nAWAY", cut)]
                .into_iter()
                .chain([text("Four.\nFORBIDDEN", cut), text("\nFive.\nKEEP it", cut), text("Six.", cut)])
        };
        let mut scene = going_on(scripts(), vec![], rules());
        let (report, _) = scene.turn("go").await;
        assert_eq!((report.text.as_str(), report.interrupts), ("Six.", 5), "in pieces of {cut}");
        assert_eq!(scene.model.request(2).last().unwrap().1, "One.\nTwo.");
        assert!(!scene.model.request(3).iter().any(|(_, words)| words.contains("One.")), "discarded with the answer");
        let kept = scene.model.request(5);
        assert!(kept[kept.len() - 2].1.starts_with("Four.\nFive.\nKEEP"), "{kept:#?}");
        // For a model without prefill the kept prefixes remain messages of their own.
        let mut scene = Scene::new(scripts(), vec![], rules());
        let (report, _) = scene.turn("go").await;
        assert_eq!(report.text, "One.\n\nTwo.\nFour.\nSix.", "in pieces of {cut}");
    }
}

/// Of several rules that stop an answer together, the one that leaves least has its way.
#[tokio::test]
async fn the_strictest_context_wins() {
    for (contexts, rest) in
        [(["keep", "rewind"], "One.\nFine."), (["rewind", "discard"], "Fine."), (["keep", "discard"], "Fine.")]
    {
        for order in [[0, 1], [1, 0]] {
            let rule = |n: usize| format!("+++\ncondition = 'FORBIDDEN'\ncontext = '{}'\n+++\nNo.", contexts[order[n]]);
            let rules = rule_set(&[("a", &rule(0)), ("b", &rule(1))], |_| {});
            let mut scene = Scene::new([text("One.\nFORBIDDEN", 1), text("Fine.", 1)], vec![], rules);
            assert_eq!(scene.turn("go").await.0.text, rest, "{contexts:?} {order:?}");
        }
    }
}
