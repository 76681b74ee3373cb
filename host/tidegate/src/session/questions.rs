//! Questions about tool calls: those of a session and of the agents that it has started, answered by any front end.

use flow::ports::Question;
use flow::{Answer, QuestionId, SessionId};
use turn::AnswerError;

use crate::Session;

impl Session {
    /// The questions about tool calls that wait for an answer: its own, oldest first, and then those of its agents, each with the
    /// agent's session and name. The id of an agent's question begins with the agent's session.
    pub fn pending_questions(&self) -> Vec<Question> {
        let mut all = self.questions().pending();
        for child in self.children() {
            all.extend(child.pending_questions().into_iter().map(|mut question| {
                question.id = question.id.of_child(child.id());
                question
            }));
        }
        all
    }

    /// Waits until all announced questions are open: those about one batch of calls together, and those that another process
    /// has left ([`Session::interrupted`]), which the next turn asks again, a request for a higher limit included. The latter waits until a
    /// turn has begun.
    pub async fn questions_settled(&self) {
        self.questions().settled().await;
    }

    /// Answers a question of the session, or of one of its agents. The first answer counts, wherever it comes from: events, and the
    /// error that a later one gets, say whose it was. `by`: who answers, for the record. A question of an agent is named as
    /// [`Session::pending_questions`] does, or with the agent's session alone before its own id.
    ///
    /// # Errors
    /// The question is not open. Or the answer cannot be taken, such as edited arguments that the schema of the tool, a stream rule
    /// or a permission forbids: the question stays open then.
    ///
    /// ```no_run
    /// # fn answer(session: &tidegate::Session) -> Result<(), tidegate::question::AnswerError> {
    /// use tidegate::question::Answer;
    ///
    /// for question in session.pending_questions() {
    ///     let reason = "only in this folder".to_owned();
    ///     session.answer(&question.id, Answer::Deny { reason }, "Ada")?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn answer(&self, question: &QuestionId, answer: Answer, by: &str) -> Result<(), AnswerError> {
        let child = question.as_str().split_once('/').map(|(child, own)| (SessionId::new(child), QuestionId::new(own)));
        match child {
            None => self.questions().answer(question, answer, by),
            Some((id, own)) => match self.child(&id) {
                Some(child) => child.answer(&own, answer, by).map_err(|error| of_child(error, &id)),
                None => Err(AnswerError::NotOpen { id: question.clone(), by: None }),
            },
        }
    }

    /// What a person has allowed for the rest of the session, by [`Answer::Always`]. It continues when the session is resumed; agents
    /// that the session starts have their own.
    pub fn allowed_always(&self) -> Vec<String> {
        self.questions().always()
    }

    /// The session of an agent that this one has started, as long as it works; also of one that its agents have started. A front end
    /// subscribes to it to show what the agent does. `None` also in the moment between
    /// [`EventKind::ChildThreadStarted`](crate::EventKind::ChildThreadStarted) and the child's first event.
    pub fn child(&self, id: &SessionId) -> Option<Self> {
        let children = self.children();
        children
            .iter()
            .find(|child| child.id() == id)
            .cloned()
            .or_else(|| children.iter().find_map(|child| child.child(id)))
    }
}

/// An error of a child's question, with the id that the parent has for it.
fn of_child(error: AnswerError, child: &SessionId) -> AnswerError {
    match error {
        AnswerError::NotOpen { id, by } => AnswerError::NotOpen { id: id.of_child(child), by },
        AnswerError::Edit { id, error } => AnswerError::Edit { id: id.of_child(child), error },
        AnswerError::NoAlways { id } => AnswerError::NoAlways { id: id.of_child(child) },
        other => other,
    }
}
