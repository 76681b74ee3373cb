//! What is asked below the conversation, and which keys answer it.
//!
//! A key answers only what could be read when it was pressed. The whole question was on the screen then, nothing was being written, and
//! for [`QUIET`] no key was pressed: the first letter of a word is no answer because a question has appeared in between. What is typed
//! earlier goes to the input, where it is seen.

use std::ops::Range;
use std::time::{Duration, Instant};

use tidegate::chat::QuestionId;
use tidegate::limit::LimitRequest;

use super::bindings::{ANSWERS, plain};
use crate::screen::keys::Key;

/// How long nothing is typed until keys answer: longer than between two letters of a word, and long enough to notice that the screen
/// has changed.
pub(super) const QUIET: Duration = Duration::from_secs(1);

/// What an answer is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    Call { id: QuestionId, tool: String, offers_always: bool },
    Limit(LimitRequest),
}

/// What a key means for the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Approve,
    Always,
    Edit,
    /// With what was written as the reason.
    Deny(String),
    /// The limit is to be this.
    Raise(String),
    /// The next lines of the question are to be printed.
    More,
    /// The question is to be printed again.
    Again,
    /// The key was for the question and needs nothing.
    Taken,
}

/// How the question is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A key answers.
    Key,
    /// The input is the reason for a no.
    Reason,
    /// The input is the new limit.
    Amount,
}

/// A question on the screen.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) subject: Subject,
    stage: Stage,
    lines: Vec<String>,
    /// The lines that were printed last.
    page: Range<usize>,
    /// Since when the page is on the screen, and no key was pressed. `None`: it is not drawn yet.
    quiet_since: Option<Instant>,
    /// Edited arguments that cannot be sent, because they are not JSON.
    pub(super) draft: Option<String>,
}

impl Asking {
    /// A question of which nothing is printed yet.
    pub(super) fn new(subject: Subject, lines: Vec<String>) -> Self {
        Self { subject, stage: Stage::Key, lines, page: 0..0, quiet_since: None, draft: None }
    }

    /// Returns the next lines to be printed, as many as fit at once.
    pub(super) fn next_page(&mut self, rows: usize) -> &[String] {
        self.print(self.page.end, rows)
    }

    /// Returns the first lines to be printed again.
    pub(super) fn again(&mut self, rows: usize) -> &[String] {
        self.print(0, rows)
    }

    /// Returns the lines to be printed again that were printed last, because other lines are where they were.
    pub(super) fn last_page(&mut self, rows: usize) -> &[String] {
        self.print(self.page.start, rows)
    }

    fn print(&mut self, start: usize, rows: usize) -> &[String] {
        self.page = start..(start + rows.max(1)).min(self.lines.len());
        self.quiet_since = None;
        &self.lines[self.page.clone()]
    }

    /// The number of lines that were printed last.
    pub(super) fn page_len(&self) -> usize {
        self.page.len()
    }

    /// The terminal has another size: the page may be off the screen, and is to be read anew.
    pub(super) fn resized(&mut self) {
        self.quiet_since = None;
    }

    /// Begins anew with lines of another width.
    pub(super) fn replace(&mut self, lines: Vec<String>) {
        (self.lines, self.page, self.quiet_since) = (lines, 0..0, None);
    }

    /// Takes a request for a limit that is made again under the same id. Another amount must be read before a key answers.
    pub(super) fn renew(&mut self, request: &LimitRequest) {
        if let Subject::Limit(limit) = &mut self.subject
            && limit.id == request.id
            && limit != request
        {
            request.clone_into(limit);
            self.quiet_since = None;
        }
    }

    /// The screen is drawn, with all that was printed.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.quiet_since.get_or_insert(now);
    }

    /// Whether what is written is for the question and nothing else.
    pub(super) fn has_input(&self) -> bool {
        self.stage != Stage::Key
    }

    /// When keys begin to answer, if nothing is typed until then; `None`: they do already, or nothing is waited for.
    pub(super) fn wakes(&self, now: Instant) -> Option<Instant> {
        let at = self.quiet_since? + QUIET;
        (self.stage == Stage::Key && !self.has_more() && at > now).then_some(at)
    }

    fn has_more(&self) -> bool {
        self.page.end < self.lines.len()
    }

    fn is_quiet(&self, at: Instant) -> bool {
        self.quiet_since.is_some_and(|since| at.saturating_duration_since(since) >= QUIET)
    }

    /// Takes a key that was pressed at a time while the input was as given. `None`: it is not for the question.
    pub(super) fn key(&mut self, key: &Key, at: Instant, input: &str) -> Option<Reply> {
        if *key == Key::Resize {
            return None;
        }
        let is_quiet = self.is_quiet(at);
        // What is not drawn yet is not read either.
        self.quiet_since = self.quiet_since.map(|since| since.max(at));
        match (self.stage, key) {
            (Stage::Key, _) if !input.is_empty() => None,
            // It approves nothing, so that nobody has to wait before they turn a page.
            (Stage::Key, Key::Enter) if self.has_more() && self.quiet_since.is_some() => Some(Reply::More),
            (Stage::Key, Key::Char(letter)) if is_quiet => self.letter(*letter),
            (Stage::Reason, Key::Enter) => Some(Reply::Deny(input.trim().to_owned())),
            (Stage::Amount, Key::Enter) => Some(Reply::Raise(input.trim().to_owned())),
            (Stage::Reason | Stage::Amount, Key::Esc) => {
                self.stage = Stage::Key;
                Some(Reply::Taken)
            }
            _ => None,
        }
    }

    fn letter(&mut self, letter: char) -> Option<Reply> {
        let has_more = self.has_more();
        match (&self.subject, letter) {
            (_, 'n') => {
                self.stage = Stage::Reason;
                Some(Reply::Taken)
            }
            (_, 'y') if !has_more => Some(Reply::Approve),
            (Subject::Call { .. }, 'v') => Some(Reply::Again),
            (Subject::Call { .. }, 'e') if !has_more => Some(Reply::Edit),
            (Subject::Call { offers_always: true, .. }, 'a') if !has_more => Some(Reply::Always),
            (Subject::Limit(_), '$' | '0'..='9') => {
                self.stage = Stage::Amount;
                // The input takes the digit.
                None
            }
            _ => None,
        }
    }

    /// What the input begins with.
    pub(super) fn prompt(&self) -> &'static str {
        match self.stage {
            Stage::Key => "› ",
            Stage::Reason => "why not: ",
            Stage::Amount => "up to: ",
        }
    }

    /// The question in a few words, and what answers it now, part by part. `more`: questions that wait behind it.
    pub(super) fn line(&self, now: Instant, is_writing: bool, more: usize) -> (String, Vec<String>) {
        let head = match &self.subject {
            Subject::Call { tool, .. } => format!("Run {tool}?"),
            Subject::Limit(limit) => crate::ask::limit_question(limit),
        };
        let mut answers = match self.stage {
            Stage::Reason => vec!["No. The reason for the model; Enter: send, Esc: back".to_owned()],
            Stage::Amount => vec!["The new limit; Enter: set it, Esc: back".to_owned()],
            Stage::Key if is_writing => {
                ["first send or clear what you have written", "Ctrl+U: clear it"].map(str::to_owned).into()
            }
            Stage::Key if self.has_more() => {
                let shown = format!("{} of {} lines are shown", self.page.end, self.lines.len());
                vec![shown, "Enter: more".to_owned(), "n: no".to_owned()]
            }
            Stage::Key if !self.is_quiet(now) => vec!["press no key for one second to answer".to_owned()],
            Stage::Key => self.keys(),
        };
        answers.extend((more > 0).then(|| format!("({more} more)")));
        (head, answers)
    }

    fn keys(&self) -> Vec<String> {
        let Subject::Call { offers_always, .. } = &self.subject else {
            return ["y: yes", "n: no", "a number: up to that"].map(str::to_owned).into();
        };
        let offered = ANSWERS.iter().filter(|answer| *offers_always || answer.label != "always");
        offered.map(|answer| format!("{}: {}", plain(answer.key), answer.label)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tidegate::limit::Limit;

    use super::*;

    const HALF: Duration = Duration::from_millis(500);

    fn call(lines: usize, offers_always: bool) -> Asking {
        let lines = (0..lines).map(|line| line.to_string()).collect();
        let id = serde_json::from_str("\"question-1\"").unwrap();
        Asking::new(Subject::Call { id, tool: "shell".into(), offers_always }, lines)
    }

    fn limit() -> Asking {
        Asking::new(Subject::Limit(LimitRequest::new(1, Limit::Steps, 10.0, 10.0, 20.0)), Vec::new())
    }

    fn shown(mut asking: Asking, at: Instant) -> Asking {
        let _printed = asking.next_page(10);
        asking.drawn(at);
        asking
    }

    #[test]
    fn what_was_typed_before_the_question_could_be_read_is_no_answer() {
        let start = Instant::now();
        let mut asking = call(3, true);
        assert_eq!(asking.key(&Key::Char('y'), start, ""), None, "nothing is printed");
        let _printed = asking.next_page(10);
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 9, ""), None, "it is not drawn");
        asking.drawn(start);
        assert_eq!(asking.key(&Key::Char('y'), start + HALF, ""), None, "it has just appeared");
        assert_eq!(asking.key(&Key::Char('y'), start + HALF * 2, ""), None, "somebody types");
        assert_eq!(asking.wakes(start + HALF * 2), Some(start + HALF * 4));
        assert_eq!(asking.key(&Key::Char('y'), start + HALF * 4, "y"), None, "something is written");
        assert_eq!(asking.key(&Key::Backspace, start + HALF * 6, "y"), None);
        assert_eq!(asking.key(&Key::Char('y'), start + HALF * 7, ""), None, "it was being written");
        // A key that was pressed before the last one, and is read late, does not shorten the time.
        assert_eq!(asking.key(&Key::Char('x'), start, ""), None);
        assert_eq!(asking.wakes(start + HALF * 9), None);
        assert_eq!(asking.key(&Key::Char('y'), start + HALF * 9, ""), Some(Reply::Approve));
    }

    #[test]
    fn each_key_has_its_answer() {
        let cases: [(Asking, Key, Option<Reply>); 10] = [
            (call(3, true), Key::Char('a'), Some(Reply::Always)),
            (call(3, false), Key::Char('a'), None),
            (call(3, false), Key::Char('e'), Some(Reply::Edit)),
            (call(3, false), Key::Char('v'), Some(Reply::Again)),
            (call(3, false), Key::Char('Y'), None),
            (call(3, false), Key::Paste("y".into()), None),
            (call(3, false), Key::Enter, None),
            (limit(), Key::Char('y'), Some(Reply::Approve)),
            (limit(), Key::Char('a'), None),
            (limit(), Key::Char('/'), None),
        ];
        for (asking, key, expected) in cases {
            let start = Instant::now();
            let mut asking = shown(asking, start);
            assert_eq!(asking.key(&key, start + QUIET, ""), expected, "{:?} {key:?}", asking.subject);
            assert!(!asking.has_input());
        }
    }

    #[test]
    fn a_reason_and_a_number_are_written() {
        let start = Instant::now();
        for mut asking in [shown(call(1, false), start), shown(limit(), start)] {
            assert_eq!(asking.key(&Key::Char('n'), start + QUIET, ""), Some(Reply::Taken));
            assert_eq!((asking.prompt(), asking.has_input()), ("why not: ", true));
            assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 9, ""), None, "a letter of the reason");
            assert_eq!(asking.key(&Key::Enter, start + QUIET, " later "), Some(Reply::Deny("later".into())));
            assert_eq!(asking.key(&Key::Esc, start + QUIET, "la"), Some(Reply::Taken));
            assert_eq!(asking.prompt(), "› ");
        }
        let mut asking = shown(limit(), start);
        assert_eq!(asking.key(&Key::Char('3'), start + QUIET, ""), None, "the input takes the digit");
        assert_eq!(asking.prompt(), "up to: ");
        assert_eq!(asking.key(&Key::Enter, start + QUIET, "30"), Some(Reply::Raise("30".into())));
    }

    #[test]
    fn another_amount_is_read_before_it_is_approved() {
        let start = Instant::now();
        let mut asking = shown(limit(), start);
        let request = |number, proposed| LimitRequest::new(number, Limit::Steps, 10.0, 10.0, proposed);
        for same in [request(1, 20.0), request(2, 30.0)] {
            asking.renew(&same);
            assert!(asking.is_quiet(start + QUIET));
        }
        asking.renew(&request(1, 30.0));
        assert_eq!(asking.subject, Subject::Limit(request(1, 30.0)));
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET, ""), None, "it is not drawn");
        asking.drawn(start + QUIET);
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 2, ""), Some(Reply::Approve));
        // A reason that is being written stays one.
        assert_eq!(asking.key(&Key::Char('n'), start + QUIET * 3, ""), Some(Reply::Taken));
        asking.renew(&request(1, 40.0));
        assert!(asking.has_input());
    }

    #[test]
    fn a_long_question_is_read_to_its_end_before_it_is_approved() {
        let start = Instant::now();
        let mut asking = shown(call(25, true), start);
        assert_eq!(asking.page, 0..10);
        let parts = |asking: &Asking, now, more| asking.line(now, false, more).1.join("|");
        assert_eq!(parts(&asking, start + QUIET, 2), "10 of 25 lines are shown|Enter: more|n: no|(2 more)");
        for letter in ['y', 'e', 'a'] {
            assert_eq!(asking.key(&Key::Char(letter), start + QUIET * 2, ""), None);
            asking.quiet_since = Some(start);
        }
        assert_eq!(asking.key(&Key::Enter, start + HALF, ""), Some(Reply::More));
        assert_eq!(asking.next_page(10), &["10", "11", "12", "13", "14", "15", "16", "17", "18", "19"]);
        assert_eq!(asking.key(&Key::Enter, start + QUIET, ""), None, "the page is not drawn");
        assert_eq!(asking.last_page(10)[0], "10");
        asking.drawn(start + QUIET);
        assert_eq!(asking.next_page(10), &["20", "21", "22", "23", "24"]);
        asking.drawn(start + QUIET);
        assert_eq!(parts(&asking, start + QUIET, 0), "press no key for one second to answer");
        assert_eq!(parts(&asking, start + QUIET * 2, 1), "y: yes|n: no|e: edit|a: always|v: view again|(1 more)");
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 2, ""), Some(Reply::Approve));
        assert_eq!(asking.again(10)[0], "0");
    }
}
