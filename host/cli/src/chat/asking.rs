//! What is asked below the conversation, and which keys answer it.
//!
//! A key answers only what could be read when it was pressed. The question or its summary was on the screen then, nothing was being written,
//! and for [`QUIET`] no key was pressed: the first letter of a word is no answer because a question has appeared in between. What is typed
//! earlier goes to the input, where it is seen. Where the question does not fit on the screen ([`crate::ask::summary`]), every row of it was there before
//! a key approves it.

use std::time::{Duration, Instant};

use tidegate::chat::QuestionId;
use tidegate::limit::LimitRequest;

use super::bindings::{ANSWERS, plain};
use super::pager::Pager;
use crate::ask::summary::Summary;
use crate::screen::keys::Key;

/// How long nothing is typed until keys answer: longer than between two letters of a word, and long enough to notice that the screen
/// has changed.
pub(super) const QUIET: Duration = Duration::from_secs(1);

const WAIT: &str = "wait one second before answering";

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
    /// The whole question is to be shown.
    View,
    /// The key was for the page of the question and needs nothing.
    Moved,
    /// The key was for the question and is not for the input.
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
    /// What was printed of it.
    summary: Summary,
    /// All of it, while that is on the screen.
    pub(super) pager: Option<Pager>,
    /// Every row of it was on the screen.
    is_read: bool,
    /// Since when the question is on the screen, and no key was pressed. `None`: it is not drawn yet.
    quiet_since: Option<Instant>,
    /// Edited arguments that cannot be sent, because they are not JSON.
    pub(super) draft: Option<String>,
}

impl Asking {
    /// A question of which nothing is printed yet.
    pub(super) fn new(subject: Subject) -> Self {
        let (summary, pager) = (Summary::default(), None);
        Self { subject, stage: Stage::Key, summary, pager, is_read: false, quiet_since: None, draft: None }
    }

    /// Takes what is printed of it now.
    pub(super) fn print(&mut self, summary: Summary) {
        (self.summary, self.quiet_since) = (summary, None);
    }

    /// The number of rows that were printed last.
    pub(super) fn printed(&self) -> usize {
        self.summary.rows.len()
    }

    /// Shows all rows of it, which were made for so many columns.
    pub(super) fn view(&mut self, rows: Vec<String>, columns: usize) {
        match &mut self.pager {
            Some(pager) => pager.replace(rows, columns),
            None => self.pager = Some(Pager::new(rows, columns)),
        }
        self.quiet_since = None;
    }

    /// Handles a resize of the terminal: rows can be truncated or off the screen, so the question has to be read again.
    pub(super) fn resized(&mut self) {
        (self.quiet_since, self.is_read) = (None, false);
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
        self.is_read |= self.pager.as_mut().is_some_and(Pager::drawn);
    }

    /// Whether what is written is for the question and nothing else.
    pub(super) fn has_input(&self) -> bool {
        self.stage != Stage::Key
    }

    /// When keys begin to answer, if nothing is typed until then; `None`: they do already, or nothing is waited for.
    pub(super) fn wakes(&self, now: Instant) -> Option<Instant> {
        let at = self.quiet_since? + QUIET;
        (self.stage == Stage::Key && at > now).then_some(at)
    }

    /// Whether it can be approved: all that has to be read for that was on the screen.
    fn is_readable(&self) -> bool {
        self.is_read || self.summary.left_out == 0
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
        if self.pager.is_some() {
            return self.page_key(key, is_quiet);
        }
        match (self.stage, key) {
            (Stage::Key, _) if !input.is_empty() => None,
            // It approves nothing, so that nobody has to wait before they read on.
            (Stage::Key, Key::Enter) if self.summary.left_out > 0 && self.quiet_since.is_some() => Some(Reply::View),
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

    /// Takes a key while the whole question is on the screen: none of them is for the input. `None`: it cancels the turn or stops the program.
    fn page_key(&mut self, key: &Key, is_quiet: bool) -> Option<Reply> {
        let pager = self.pager.as_mut()?;
        let reply = match key {
            Key::Ctrl('c' | 'z') => return None,
            Key::Esc | Key::Char('q') => None,
            _ if pager.key(key) => return Some(Reply::Moved),
            Key::Char(letter) if is_quiet && *letter != 'v' => match self.letter(*letter) {
                None => return Some(Reply::Moved),
                reply => reply,
            },
            _ => return Some(Reply::Moved),
        };
        self.pager = None;
        // Keys answer what is printed when it could be read again.
        self.quiet_since = None;
        Some(reply.unwrap_or(Reply::Moved))
    }

    fn letter(&mut self, letter: char) -> Option<Reply> {
        let is_readable = self.is_readable();
        match (&self.subject, letter) {
            (_, 'n') => {
                self.stage = Stage::Reason;
                Some(Reply::Taken)
            }
            (_, 'y') if is_readable => Some(Reply::Approve),
            (Subject::Call { .. }, 'v') => Some(Reply::View),
            (Subject::Call { .. }, 'e') if is_readable => Some(Reply::Edit),
            (Subject::Call { offers_always: true, .. }, 'a') if is_readable => Some(Reply::Always),
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
        let mut answers = match self.stage {
            Stage::Reason => vec!["No. The reason for the model; Enter: send, Esc: back".to_owned()],
            Stage::Amount => vec!["The new limit; Enter: set it, Esc: back".to_owned()],
            Stage::Key if is_writing => {
                ["first send or clear what you have written", "Ctrl+U: clear it"].map(str::to_owned).into()
            }
            Stage::Key if !self.is_readable() => ["Enter: read all of it first", "n: no"].map(str::to_owned).into(),
            Stage::Key if !self.is_quiet(now) => vec![WAIT.to_owned()],
            Stage::Key => self.keys(),
        };
        answers.extend((more > 0).then(|| format!("({more} more)")));
        (self.head(), answers)
    }

    /// The same while the whole question is on the screen.
    pub(super) fn page_line(&self, now: Instant) -> (String, Vec<String>) {
        let Some(pager) = &self.pager else { return (self.head(), Vec::new()) };
        let mut parts = vec![pager.place()];
        match (self.is_readable(), pager.unread()) {
            (false, None) => parts.extend(["Space: read on", "n: no"].map(str::to_owned)),
            (false, Some(why)) => parts.extend([why, "n: no".to_owned()]),
            (true, _) if !self.is_quiet(now) => parts.push(WAIT.to_owned()),
            (true, _) => parts.extend(self.keys().into_iter().filter(|key| !key.starts_with("v:"))),
        }
        parts.push("q: back".to_owned());
        (self.head(), parts)
    }

    fn head(&self) -> String {
        match &self.subject {
            Subject::Call { tool, .. } => format!("Run {tool}?"),
            Subject::Limit(limit) => crate::ask::limit_question(limit),
        }
    }

    /// The keys that answer it.
    pub(super) fn keys(&self) -> Vec<String> {
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

    fn call(offers_always: bool) -> Asking {
        let id = serde_json::from_str("\"question-1\"").unwrap();
        Asking::new(Subject::Call { id, tool: "shell".into(), offers_always })
    }

    fn summary(left_out: usize) -> Summary {
        Summary { rows: vec!["row".to_owned(); 3], left_out }
    }

    fn limit() -> Asking {
        Asking::new(Subject::Limit(LimitRequest::new(1, Limit::Steps, 10.0, 10.0, 20.0)))
    }

    fn shown(mut asking: Asking, at: Instant) -> Asking {
        asking.print(summary(0));
        asking.drawn(at);
        asking
    }

    #[test]
    fn what_was_typed_before_the_question_could_be_read_is_no_answer() {
        let start = Instant::now();
        let mut asking = call(true);
        assert_eq!(asking.key(&Key::Char('y'), start, ""), None, "nothing is printed");
        asking.print(summary(0));
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
            (call(true), Key::Char('a'), Some(Reply::Always)),
            (call(false), Key::Char('a'), None),
            (call(false), Key::Char('e'), Some(Reply::Edit)),
            (call(false), Key::Char('v'), Some(Reply::View)),
            (call(false), Key::Char('Y'), None),
            (call(false), Key::Paste("y".into()), None),
            (call(false), Key::Enter, None),
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
        for mut asking in [shown(call(false), start), shown(limit(), start)] {
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

    fn view(asking: &mut Asking, now: Instant) {
        asking.view((0..25).map(|row| row.to_string()).collect(), 80);
        let _rows = asking.pager.as_mut().unwrap().rows(10);
        asking.drawn(now);
    }

    #[test]
    fn what_a_summary_cannot_show_is_read_to_its_end_before_it_is_approved() {
        let start = Instant::now();
        let mut asking = call(true);
        asking.print(summary(22));
        asking.drawn(start);
        assert_eq!(asking.line(start + QUIET, false, 2).1.join("|"), "Enter: read all of it first|n: no|(2 more)");
        for letter in ['y', 'e', 'a'] {
            assert_eq!(asking.key(&Key::Char(letter), start + QUIET * 2, ""), None);
            asking.quiet_since = Some(start);
        }
        assert_eq!(asking.key(&Key::Enter, start, ""), Some(Reply::View));
        view(&mut asking, start);
        let parts = |asking: &Asking, now| asking.page_line(now).1.join("|");
        assert_eq!(parts(&asking, start + QUIET), "1–10 of 25 rows|Space: read on|n: no|q: back");
        // The end alone is not all of it.
        for (key, shown) in [
            (Key::End, "16–25 of 25 rows|unread from row 11|n: no|q: back"),
            (Key::Char('y'), "16–25 of 25 rows|unread from row 11|n: no|q: back"),
            (Key::Home, "1–10 of 25 rows|Space: read on|n: no|q: back"),
            (Key::Char(' '), "10–19 of 25 rows|Space: read on|n: no|q: back"),
            (Key::Enter, "16–25 of 25 rows|wait one second before answering|q: back"),
        ] {
            asking.quiet_since = Some(start);
            assert_eq!(asking.key(&key, start + QUIET, ""), Some(Reply::Moved), "{key:?}");
            let _rows = asking.pager.as_mut().unwrap().rows(10);
            asking.drawn(start + QUIET);
            assert_eq!(parts(&asking, start + QUIET), shown, "{key:?}");
        }
        assert_eq!(asking.key(&Key::Char('y'), start + HALF * 3, ""), Some(Reply::Moved), "it has just appeared");
        assert_eq!(parts(&asking, start + QUIET * 4), "16–25 of 25 rows|y: yes|n: no|e: edit|a: always|q: back");
        // Back, it is read, and a key answers when it could be read again.
        assert_eq!(asking.key(&Key::Esc, start + QUIET * 4, ""), Some(Reply::Moved));
        assert!(asking.pager.is_none());
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 9, ""), None, "it is not drawn");
        asking.drawn(start + QUIET * 9);
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET * 10, ""), Some(Reply::Approve));
    }

    #[test]
    fn keys_answer_on_the_page_and_none_reaches_the_input() {
        let start = Instant::now();
        for (key, reply, stays) in [
            (Key::Char('y'), Some(Reply::Approve), false),
            (Key::Char('n'), Some(Reply::Taken), false),
            (Key::Char('v'), Some(Reply::Moved), true),
            (Key::Char('x'), Some(Reply::Moved), true),
            (Key::Paste("y".into()), Some(Reply::Moved), true),
            (Key::Char('q'), Some(Reply::Moved), false),
            (Key::Ctrl('c'), None, true),
        ] {
            let mut asking = shown(call(true), start);
            view(&mut asking, start);
            assert_eq!(asking.key(&key, start + QUIET, ""), reply, "{key:?}");
            assert_eq!(asking.pager.is_some(), stays, "{key:?}");
        }
    }

    #[test]
    fn a_page_for_another_width_is_read_anew() {
        let start = Instant::now();
        let mut asking = call(true);
        asking.print(summary(22));
        view(&mut asking, start);
        view(&mut asking, start);
        let pager = asking.pager.as_mut().unwrap();
        assert!(pager.key(&Key::End));
        let _rows = pager.rows(10);
        asking.drawn(start);
        assert!(!asking.is_readable());
    }

    #[test]
    fn what_was_read_at_another_size_is_read_anew() {
        let start = Instant::now();
        let mut asking = call(true);
        asking.print(summary(22));
        for size in [80, 40] {
            asking.view((0..25).map(|row| row.to_string()).collect(), size);
            let _rows = asking.pager.as_mut().unwrap().rows(30);
            asking.drawn(start);
            assert!(asking.is_readable());
            asking.resized();
            assert!(!asking.is_readable());
        }
        // It opens at the place where the page was left before.
        asking.view((0..25).map(|row| row.to_string()).collect(), 80);
        asking.drawn(start);
        assert_eq!(asking.key(&Key::Char('q'), start, ""), Some(Reply::Moved));
        asking.resized();
        asking.print(summary(23));
        asking.drawn(start);
        assert_eq!(asking.key(&Key::Char('y'), start + QUIET, ""), None);
    }
}
