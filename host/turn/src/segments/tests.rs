//! When a stage has nothing to do: text then bypasses it, which no text that is shown can reveal.

use std::sync::Arc;
use std::time::Duration;

use flow::{
    Callback, InputAnswer, Message, ModelOutput, NoAnswer, OutputAnswer, OutputMode, Registration, Tag, TagAnswer,
    TagPattern, TagPlace, TextAnswer, TextPlace, TextUnit,
};

use super::Segments;
use crate::chain::Caller;
use crate::events::Hub;
use crate::ports::{BoxFuture, Clock, Extensions, TtsrEvent};

/// Is never called.
struct Silent;

impl Clock for Silent {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        unreachable!("nothing waits")
    }
}

type Called<'a, T> = BoxFuture<'a, Result<T, NoAnswer>>;

impl Extensions for Silent {
    fn input_messages<'a>(&'a self, _: usize, _: &'a [Message]) -> Called<'a, InputAnswer> {
        unreachable!("nothing is called")
    }

    fn plain_text<'a>(&'a self, _: usize, _: &'a str, _: &'a TextPlace) -> Called<'a, TextAnswer> {
        unreachable!("nothing is called")
    }

    fn tag<'a>(&'a self, _: usize, _: &'a Tag, _: &'a TagPlace) -> Called<'a, TagAnswer> {
        unreachable!("nothing is called")
    }

    fn llm_output<'a>(&'a self, _: usize, _: &'a ModelOutput) -> Called<'a, OutputAnswer> {
        unreachable!("nothing is called")
    }

    fn ttsr_triggered<'a>(&'a self, _: usize, _: &'a TtsrEvent) -> Called<'a, ()> {
        unreachable!("nothing is called")
    }
}

fn is_idle(callback: Callback) -> bool {
    let registration = Registration {
        plugin: "p".parse().expect("a plugin id"),
        version: "1.0.0".into(),
        callbacks: vec![callback.into()],
        required: false,
    };
    let caller = Caller::new(vec![registration], Arc::new(Silent), Arc::new(Hub::new(Arc::new(Silent))));
    Segments::new(Arc::new(caller)).is_idle()
}

#[test]
fn handlers_of_text_or_tags_keep_it_busy_and_no_others() {
    assert!(is_idle(Callback::LlmOutput(OutputMode::Rewrite)));
    assert!(is_idle(Callback::InputMessages));
    assert!(!is_idle(Callback::PlainText(TextUnit::Line.into())));
    assert!(!is_idle(Callback::Tag(vec![TagPattern::Exact("a".into())])));
}
