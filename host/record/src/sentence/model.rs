//! Sentences about requests to the model, and about what it reads.

use super::Sentence;
use crate::figures::{of, took_ms};
use crate::{
    ContextCompactionEnd, ContextCompactionStart, CustomMessage, ErrorClassified, RetryScheduled, RetrySucceeded,
};

impl ErrorClassified {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let text = format!("The model failed: {} ({})", self.category, self.error_code);
        Sentence::new(text).with(self.metadata["message"].as_str().unwrap_or_default())
    }
}

impl RetryScheduled {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let delay = took_ms(self.delay_ms);
        let asked = if self.asked_by_provider { ", as the provider asked" } else { "" };
        Sentence::new(format!("Retry {} of at most {} after {delay}{asked}", self.retry, self.max_retries))
    }
}

impl RetrySucceeded {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (retries, waited) = (of(u64::from(self.retry_count), "retry", "retries"), took_ms(self.total_delay_ms));
        Sentence::new(format!("Succeeded after {retries} and {waited}")).with(&self.original_error)
    }
}

impl CustomMessage {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let hidden = if self.hidden { "Hidden message" } else { "Message" };
        Sentence::new(format!("{hidden} to the model: {}", self.custom_type)).with(&self.text)
    }
}

impl ContextCompactionStart {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (percent, tokens) = ((self.pressure_ratio * 100.0).round(), of(self.used_tokens, "token", "tokens"));
        let why = if self.triggered_by == "overflow" {
            "The provider refused the request for its size"
        } else {
            "The context is filled"
        };
        let how = match self.method.as_deref() {
            Some("shorten") => "results and images are shortened",
            Some("drop") => "the oldest messages are left out",
            _ => "the conversation is summarised",
        };
        Sentence::new(format!("{why}, {how}: {percent} % of the context are used, {tokens}"))
    }
}

impl ContextCompactionEnd {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        if let Some(left_out) = self.left_out_in_words() {
            return Sentence::new("Left out for the model, to fit its context").with(left_out);
        }
        if self.summary.is_none() {
            let error = self.error.as_deref().unwrap_or_default();
            return Sentence::new("The conversation was not summarised").with(error);
        }
        let kept = of(self.kept_messages, "message remains", "messages remain");
        Sentence::new(format!("Messages before turn {} were summarised; {kept}", self.prune_before_turn))
    }
}
