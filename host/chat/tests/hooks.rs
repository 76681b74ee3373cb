//! What a front end sees of events next to the chat, and primitives whose commands are carried out without one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use flow::{Event, EventKind, Message, RunPosition, TurnStatus};
use tidegate_chat::{
    ChatOptions, ChatSession, ChildThread, Command, CommandSource, MessageSteering, Policy, ToolConfirmations,
};

fn event(seq: u64, kind: EventKind) -> Event {
    Event::new(seq, 0, RunPosition { turn: 1, step: 0, attempt: 0 }, kind)
}

fn asked(id: &str) -> EventKind {
    EventKind::ToolConfirmationRequested {
        question: flow::QuestionId::new(id),
        call: flow::CallId::new("c"),
        tool: "shell".into(),
        arguments: "{}".into(),
        reason: "it asks".into(),
        preview: flow::Preview::default(),
        always: None,
        timeout_ms: None,
    }
}

/// Each event once, the thread's own and those of children, before the chat has changed by it.
#[test]
fn a_hook_gets_each_event_before_the_chat_processes_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let seen = Arc::clone(&seen);
        move |child: Option<&ChildThread>, event: &Event| {
            let child = child.map(|child| child.id.to_string()).unwrap_or_default();
            seen.lock().unwrap().push(format!("{child}{}:{}", event.seq, event.kind.name()));
        }
    };
    let mut chat = ChatSession::new(ChatOptions::default().on_event(hook));
    let child = ChildThread::new("child-", "worker");
    let notice = || EventKind::Notice { message: "no primitive uses it".into() };
    for (of_child, event) in [
        (false, event(0, EventKind::TurnStart)),
        (false, event(0, EventKind::TurnStart)),
        (true, event(0, notice())),
        (false, event(1, notice())),
        (false, event(2, EventKind::TurnFinish { status: TurnStatus::Completed })),
    ] {
        let _changed = if of_child { chat.process_child(&child, &event) } else { chat.process(&event) };
    }
    assert_eq!(*seen.lock().unwrap(), ["0:turn_start", "child-0:notice", "1:notice", "2:turn_finish"]);
}

/// The hook is called first: it can see the state from before, and a panic of it leaves the event to be processed again.
#[test]
fn an_event_whose_hook_fails_is_not_lost() {
    let fails = Arc::new(Mutex::new(true));
    let hook = {
        let fails = Arc::clone(&fails);
        move |_: Option<&ChildThread>, _: &Event| assert!(!std::mem::replace(&mut *fails.lock().unwrap(), false))
    };
    let mut chat = ChatSession::new(ChatOptions::default().on_event(hook));
    let start = event(0, EventKind::TurnStart);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| chat.process(&start)));
    assert!(failed.is_err());
    fails.clear_poison();
    assert!(chat.process(&start).is_yes());
    assert!(chat.snapshot().steering.is_executing());
}

/// What carries out the commands of a chat does so for one primitive, too.
#[test]
fn a_primitive_alone_gives_commands_and_takes_refusals() {
    fn driven(source: &mut impl CommandSource, refuse: bool) -> Vec<Command> {
        let commands = source.take_commands();
        for command in commands.iter().filter(|_| refuse) {
            if let Command::Answer { question, .. } = command {
                let _changed = source.answer_failed(question, "it is decided");
            }
        }
        commands
    }
    let mut questions = ToolConfirmations::with_policy(|_| Policy::APPROVE);
    let _changed = questions.process(&event(0, asked("q-1")));
    assert!(matches!(driven(&mut questions, true).as_slice(), [Command::Answer { .. }]));
    let open: Vec<_> = questions.state().pending().cloned().collect();
    assert_eq!(open[0].error.as_deref(), Some("it is decided"));

    let mut steering = MessageSteering::default();
    steering.submit("Hello", Vec::new());
    assert!(matches!(driven(&mut steering, true).as_slice(), [Command::Prompt { .. }]));
    let message = Arc::new(Message::user("Hello"));
    let delivered = event(0, EventKind::InputReceived { id: Some(flow::InputId::new("user-1")), message });
    assert!(steering.process(&delivered).is_yes());
}
