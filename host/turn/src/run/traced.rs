//! The spans of a step and of its attempts around what they are about: each ends where its work ends, also where the turn is
//! cancelled in the middle of it.

use flow::{CallFailure, ErrorClass, FailureCause, PluginId, TurnStatus};
use tracing::Instrument as _;

use super::{Stop, Turn};
use crate::spans::{self, Stage};
use crate::stream::End;
use guard::Segments;
use guard::attempt::Effect;

impl Stop {
    /// How the step ends that is stopped, and a word for the error if it is one.
    fn outcome(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::State(_) => ("failed", Some("state")),
            Self::Journal(_) => ("failed", Some("journal")),
            Self::Model(error) => ("failed", Some(error.class.unwrap_or(ErrorClass::Permanent).as_str())),
            Self::Required(failure) => ("failed", Some(refused(failure))),
            Self::Rule(_) => ("stopped_by_rule", None),
            Self::Limit { .. } => ("limit_hit", None),
        }
    }
}

/// A word for an extension without which the turn cannot continue.
fn refused(failure: &CallFailure) -> &'static str {
    match failure.cause {
        FailureCause::NoInstance => failure.cause.as_str(),
        _ => "required_extension",
    }
}

impl Turn<'_> {
    /// One step: an accepted answer and the results of its calls. Returns whether the model is to be asked again.
    pub(super) async fn step(&mut self) -> Result<bool, Stop> {
        let mut stage = spans::step(self.place.step + 1);
        let again = self.one_step().instrument(stage.span()).await;
        end_step(&mut stage, &again);
        again
    }

    /// An extension's own answer is a step too.
    pub(super) async fn reply(&mut self, by: PluginId, text: String) -> Result<(), Stop> {
        let mut stage = spans::step(self.place.step + 1);
        let replied = self.one_reply(by, text).instrument(stage.span()).await;
        end_step(&mut stage, &replied);
        replied
    }

    /// One request of an attempt, from sending it to the end of its answer: what comes before and after is not the model's time.
    pub(super) async fn request(&mut self, segments: &mut Segments, effects: Vec<Effect>) -> End {
        let stage = spans::attempt(self.place.attempt);
        let span = stage.span();
        self.first_chunk = None;
        let mut request = Request { turn: self, stage, outcome: None };
        let mut end = request.turn.ask(segments, effects).instrument(span).await;
        if let End::Broken(error) = &mut end {
            let model = &request.turn.session.parts.model;
            error.facts.provider.get_or_insert_with(|| model.provider().to_owned());
        }
        request.end(&end);
        end
    }

    /// The end of the turn's span.
    pub(super) fn end_span(&self, status: &TurnStatus) {
        let error = match status {
            TurnStatus::Failed { class, .. } => Some(class.as_str()),
            TurnStatus::Cancelled => Some(status.as_str()),
            TurnStatus::Completed
            | TurnStatus::Rejected { .. }
            | TurnStatus::StoppedByRule { .. }
            | TurnStatus::StepLimit { .. }
            | TurnStatus::NoProgress { .. }
            | TurnStatus::Suspended { .. } => None,
        };
        spans::answered(&self.span, self.report.usage, self.report.stop.as_ref());
        spans::end(&self.span, status.as_str(), error);
    }
}

fn end_step<T>(stage: &mut Stage, result: &Result<T, Stop>) {
    let (outcome, error) = result.as_ref().err().map_or(("completed", None), Stop::outcome);
    stage.end(outcome, error);
}

/// A request under way. However it is dropped, its span gets what is known of the answer.
struct Request<'r, 't> {
    turn: &'r mut Turn<'t>,
    stage: Stage,
    /// How it ended, and a word for the error; `None`: it was stopped with the turn.
    outcome: Option<(&'static str, Option<String>)>,
}

impl Request<'_, '_> {
    fn end(&mut self, end: &End) {
        self.outcome = Some(match end {
            End::Complete => ("completed", None),
            End::Interrupted(stopped) => {
                self.stage.record("rules", &stopped.judgement.rules.join(","));
                ("interrupted", None)
            }
            End::Halted(_) | End::OutOfTime => ("interrupted", None),
            End::Broken(error) => {
                let code = error.code.clone().or_else(|| error.status.map(|status| status.to_string()));
                let class = self.turn.session.parts.settings.retries.classify(error).class;
                ("failed", Some(code.unwrap_or_else(|| class.as_str().to_owned())))
            }
            End::Refused(failure) => ("failed", Some(refused(failure).to_owned())),
        });
    }
}

impl Drop for Request<'_, '_> {
    fn drop(&mut self) {
        let answer = &self.turn.attempt.answer;
        if let Some(took) = self.turn.first_chunk {
            self.stage.first_chunk(took);
        }
        if let Some(model) = answer.model() {
            self.stage.record("response_model", model);
        }
        self.stage.answered(answer.usage(), answer.stop());
        if let Some((outcome, error)) = &self.outcome {
            self.stage.end(outcome, error.as_deref());
        }
    }
}
