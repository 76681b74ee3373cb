//! A request that is refused for a part of it is sent again without that part.

use std::sync::atomic::Ordering;

use flow::ports::ModelStream;
use flow::{ModelError, Prompt};

use super::{AnswerStream, WireModel};
use crate::refused::{Doubt, is_refused};
use wire::Wire;

/// The most requests that are sent again because errors name parts by their paths.
const MAX_NAMED: usize = 16;

impl WireModel {
    /// The answer, if need be without parts of the request that the provider refuses.
    pub(super) async fn negotiate(&self, prompt: &Prompt) -> Result<Box<dyn ModelStream>, ModelError> {
        let reduced = self.refused.without(prompt);
        let sent = reduced.as_ref().unwrap_or(prompt);
        let error = match self.answer(sent).await {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => error,
        };
        if let Some(stream) = self.without_marks(sent, &error).await? {
            return Ok(stream);
        }
        if let Some(doubt) = Doubt::of_reasoning(&error, prompt, sent)
            && let Some(stream) = self.attempt(doubt, sent, &error).await?
        {
            return Ok(stream);
        }
        if let Some(stream) = self.without_named(prompt, sent, &error).await? {
            return Ok(stream);
        }
        for doubt in Doubt::of_kind(&error, prompt, sent) {
            if let Some(stream) = self.attempt(doubt, sent, &error).await? {
                return Ok(stream);
            }
        }
        Err(error)
    }

    /// The answer without marks for the provider's prompt cache, if the error names them.
    async fn without_marks(
        &self,
        sent: &Prompt,
        error: &ModelError,
    ) -> Result<Option<Box<dyn ModelStream>>, ModelError> {
        let is_marked = self.wire == Wire::Anthropic && !self.unmarked.load(Ordering::Relaxed);
        if !is_marked || !is_refused(error) || !error.message.contains("cache_control") {
            return Ok(None);
        }
        self.unmarked.store(true, Ordering::Relaxed);
        match self.answer(sent).await {
            Ok(mut stream) => {
                stream.note = Some(format!(
                    "the provider has refused marks for its prompt cache; later requests are without them: {}",
                    error.message
                ));
                Ok(Some(Box::new(stream)))
            }
            Err(other) => {
                self.unmarked.store(false, Ordering::Relaxed);
                if other.status == error.status { Ok(None) } else { Err(other) }
            }
        }
    }

    /// The answer without the parts that errors name, one after the other: each error names one.
    async fn without_named(
        &self,
        whole: &Prompt,
        sent: &Prompt,
        first: &ModelError,
    ) -> Result<Option<Box<dyn ModelStream>>, ModelError> {
        let mut doubt = Doubt::none(whole);
        let (mut error, mut less) = (first.clone(), sent.clone());
        for _ in 0..MAX_NAMED {
            let Some(named) = self.named(doubt, &error, &less).await else { return Ok(None) };
            doubt = named;
            let Some(without) = doubt.without(sent) else { return Ok(None) };
            less = without;
            match self.answer(&less).await {
                Ok(stream) => return Ok(Some(self.accepted(stream, doubt, first))),
                Err(other) if other.status == first.status => error = other,
                Err(other) => return Err(other),
            }
        }
        Ok(None)
    }

    /// What an error names in addition; `None`: nothing that can be left out. Bodies are written for it, off the runtime's threads.
    async fn named(&self, mut doubt: Doubt, error: &ModelError, prompt: &Prompt) -> Option<Doubt> {
        let (error, prompt) = (error.clone(), prompt.clone());
        let (wire, name, options) = (self.wire, self.name.clone(), self.options());
        let find = move || {
            let body =
                |prompt: &Prompt| serde_json::from_slice(&wire::encode(wire, prompt, &name, &options).ok()?).ok();
            doubt.add_named(&error, &prompt, &body).then_some(doubt)
        };
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// The answer without something; `None`: that is refused as well.
    async fn attempt(
        &self,
        doubt: Doubt,
        sent: &Prompt,
        error: &ModelError,
    ) -> Result<Option<Box<dyn ModelStream>>, ModelError> {
        let Some(less) = doubt.without(sent) else { return Ok(None) };
        match self.answer(&less).await {
            Ok(stream) => Ok(Some(self.accepted(stream, doubt, error))),
            Err(other) if other.status == error.status => Ok(None),
            // Whether it is refused is not known.
            Err(other) => Err(other),
        }
    }

    /// An answer to a request without something.
    fn accepted(&self, mut stream: AnswerStream, without: Doubt, error: &ModelError) -> Box<dyn ModelStream> {
        stream.note = Some(without.note(error));
        self.refused.add(without);
        Box::new(stream)
    }
}
