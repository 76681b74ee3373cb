//! Handlers: they race with front ends, and what they do wrong ends no turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{BoxFuture, Confirm, Durability, Journal, JournalError, JournalProgress, Question};
use flow::{Answer, Event, EventKind, TurnStatus};
use tidegate_kit::say;

use super::world::{Setup, decided, write, writes};

/// Answers with what a function says, and counts what it was asked and how many of its questions are open.
struct Handler<F> {
    answer: F,
    asked: AtomicUsize,
    open: Arc<AtomicUsize>,
    refused: Mutex<Vec<String>>,
}

impl<F: Fn(&Question) -> Option<Answer> + Send + Sync> Handler<F> {
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { answer, asked: AtomicUsize::new(0), open: Arc::default(), refused: Mutex::default() })
    }
}

/// Counts down when it is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<F: Fn(&Question) -> Option<Answer> + Send + Sync> Confirm for Handler<F> {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        self.refused.lock().unwrap().extend(question.refused.clone());
        let open = Open(Arc::clone(&self.open));
        Box::pin(async move {
            let _open = open;
            match (self.answer)(question) {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn name(&self) -> &str {
        "the dialog"
    }
}

fn setup(confirm: Arc<dyn Confirm>) -> Setup {
    Setup { confirm, ..Setup::new([writes(&[("a", "1"), ("b", "2")]), say("done")]) }
}

#[tokio::test]
async fn an_answer_from_elsewhere_ends_the_question_of_the_handler() {
    let handler = Handler::new(|_: &Question| None);
    let mut place = setup(handler.clone()).open().await;
    let open = Arc::clone(&handler.open);
    let (_, events) = place
        .turn(|desk| async move {
            let pending = desk.open(2).await;
            while open.load(Ordering::SeqCst) < 2 {
                tokio::task::yield_now().await;
            }
            desk.answer(&pending[0], Answer::Approve).unwrap();
            while open.load(Ordering::SeqCst) > 1 {
                tokio::task::yield_now().await;
            }
            desk.answer(&pending[1], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(handler.asked.load(Ordering::SeqCst), 2);
    assert_eq!(decided(&events)[0], ("question-1".to_owned(), "approved", "Ada".to_owned()));
}

#[tokio::test]
async fn a_handler_that_panics_denies_its_call_and_no_other() {
    let handler = Handler::new(|question: &Question| {
        assert!(!question.call.arguments.contains("\"a\""), "no dialog");
        Some(Answer::Approve)
    });
    let mut place = setup(handler).open().await;
    let (report, events) = place.turn(|_| async {}).await;
    assert_eq!(report.status, TurnStatus::Completed);
    let words: Vec<_> = decided(&events).into_iter().map(|(_, word, by)| (word, by)).collect();
    assert_eq!(words, [("unavailable", String::new()), ("approved", "the dialog".to_owned())]);
    assert_eq!(place.written(), [("b".to_owned(), "2".to_owned())]);
    assert!(place.results(1).contains("the confirmation handler panicked: no dialog"), "{}", place.results(1));
}

#[tokio::test]
async fn a_handler_whose_edit_is_refused_is_asked_again_but_not_for_ever() {
    let handler = Handler::new(|question: &Question| {
        let is_second_try = question.refused.is_some() && question.call.arguments.contains("\"b\"");
        let path = if is_second_try { "open/b" } else { "denied/b" };
        Some(Answer::Edit { arguments: write(path, "x") })
    });
    let mut place = setup(handler.clone()).open().await;
    let (_, events) = place.turn(|_| async {}).await;
    let words: Vec<_> = decided(&events).into_iter().map(|(_, word, _)| word).collect();
    assert_eq!(words.iter().filter(|word| **word == "unavailable").count(), 1, "{words:?}");
    assert_eq!(place.written(), [("open/b".to_owned(), "x".to_owned())]);
    assert_eq!(handler.asked.load(Ordering::SeqCst), 5 + 2);
    assert!(handler.refused.lock().unwrap().iter().all(|why| why.contains("`denied/b` is denied")));
}

/// A disk that is full from the nth question on.
struct FullFrom {
    question: usize,
    asked: AtomicUsize,
}

impl Journal for FullFrom {
    fn append(&self, event: &Event) -> Durability {
        let is_question = matches!(event.kind, EventKind::ToolConfirmationRequested { .. });
        self.asked.fetch_add(usize::from(is_question), Ordering::SeqCst);
        Durability::Droppable
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        let is_full = self.asked.load(Ordering::SeqCst) >= self.question;
        let full = || Err(JournalError::Full { path: "t.jsonl".into() });
        Box::pin(std::future::ready(if is_full { full() } else { Ok(()) }))
    }

    fn watch(&self, _: Box<dyn Fn(JournalProgress) + Send + Sync>) {}

    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.durable()
    }
}

/// The first call changes what the second is about, so that it is asked about again when the disk is full.
#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_recorded_ends_the_turn() {
    for question in [1, 3] {
        let handler = Handler::new(|_| Some(Answer::Approve));
        let confirm = Arc::<Handler<_>>::clone(&handler);
        let journal = Arc::new(FullFrom { question, asked: AtomicUsize::new(0) });
        let setup = Setup::new([writes(&[("a", "1"), ("a", "2")]), say("done")]);
        let mut place = Setup { confirm, journal, ..setup }.open().await;
        let turn = tokio::time::timeout(Duration::from_secs(1), place.turn(|_| async {})).await;
        let (report, _) = turn.unwrap_or_else(|_| panic!("the turn waits for an answer to question {question}"));
        let TurnStatus::Failed { message, .. } = &report.status else { panic!("{report:?}") };
        assert!(message.contains("the disk is full"), "{message}");
        assert_eq!(handler.asked.load(Ordering::SeqCst), question - 1, "nobody is asked what is not recorded");
        assert_eq!(place.written().len(), usize::from(question == 3));
    }
}

/// Whoever waits for the disk later waits less long.
#[derive(Default)]
struct Backwards(AtomicUsize);

impl Journal for Backwards {
    fn append(&self, _: &Event) -> Durability {
        Durability::Droppable
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        let ms = 1_000 - self.0.fetch_add(1, Ordering::SeqCst) as u64;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(())
        })
    }

    fn watch(&self, _: Box<dyn Fn(JournalProgress) + Send + Sync>) {}

    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.durable()
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_questions_in_the_order_of_their_calls() {
    let paths = ["a", "b", "c", "d", "e"];
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let confirm = Handler::new(move |question: &Question| {
        seen.lock().unwrap().push(question.id.to_string());
        Some(Answer::Approve)
    });
    let setup = Setup::new([writes(&paths.map(|path| (path, "1"))), say("done")]);
    let mut place = Setup { confirm, journal: Arc::new(Backwards::default()), ..setup }.open().await;
    let (report, _) = place.turn(|_| async {}).await;
    assert_eq!((report.status, place.written().len()), (TurnStatus::Completed, 5));
    assert_eq!(*asked.lock().unwrap(), ["question-1", "question-2", "question-3", "question-4", "question-5"]);
}
