//! Keeps secrets from the model: keys, tokens and passwords, and personal data on request, become placeholders in the text that it reads,
//! and placeholders in the text that it writes become the secrets again.
//!
//! `tidegate-secrets` is the list of secret formats, shared with the host. `state` has the secret of each placeholder under a key of its
//! own, so that a secret has one placeholder in a session, also on several hosts.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;
use tidegate_sdk::{Content, NewResult};

mod encoded;
mod masks;
mod personal;
mod search;
mod views;

use masks::Masks;
use search::Search;

struct MaskSecrets {
    search: Search,
    masks: Masks,
}

impl Extension for MaskSecrets {
    fn new(settings: &Settings) -> Result<Self> {
        Ok(Self { search: Search::new(settings.read()?)?, masks: Masks::default() })
    }
}

impl MaskSecrets {
    /// Returns the text with placeholders in the place of its secrets; `None` where it has none.
    fn masked(&mut self, text: &str) -> Result<Option<String>> {
        let views = views::of(text);
        let mut spans = self.search.spans(text);
        spans.extend(encoded::spans(text));
        for view in &views {
            spans.extend(self.search.spans(&view.text).into_iter().filter_map(|found| view.original(found)));
        }
        self.masks.mask(text, &spans, &views)
    }
}

impl OnInputMessages for MaskSecrets {
    /// Late in the chain, to see the changes of other extensions; also registered for whole requests of an agent that is not Tidegate.
    fn input_options(&self) -> InputOptions {
        InputOptions::default().priority(5).on_failure(OnFailure::Reject).whole_requests()
    }

    fn on_input_messages(&mut self, mut messages: Vec<Message>) -> Result<InputAnswer> {
        let mut any = false;
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Text(text) = part
                && let Some(masked) = self.masked(text)?
            {
                *text = masked;
                any = true;
            }
        }
        Ok(if any { InputAnswer::Replace(messages) } else { InputAnswer::Pass })
    }
}

impl OnToolResult for MaskSecrets {
    fn result_options(&self) -> ResultOptions {
        ResultOptions::default().priority(5).on_failure(OnFailure::Withhold).keep(KeptText::Original)
    }

    /// The model gets placeholders. The user sees the change and the question about it with the secrets.
    fn on_tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer> {
        if result.stage == ResultStage::Preview {
            return Ok(ResultAnswer::pass());
        }
        let mut answer = ResultAnswer::pass();
        let (mut content, mut any) = (result.content.clone(), false);
        for one in &mut content {
            if let Content::Text(text) = one
                && let Some(masked) = self.masked(text)?
            {
                *text = masked;
                any = true;
            }
        }
        if any {
            let mut new = NewResult::default();
            (new.content, new.diff) = (content, result.diff.clone());
            answer.replace = Some(new);
        }
        Ok(answer)
    }
}

impl OnPlainText for MaskSecrets {
    /// Early in the chain, so that other extensions see what the user sees. A line that cannot be changed is shown with its placeholders.
    fn text_options(&self) -> TextOptions {
        TextOptions::new(TextUnit::Line).priority(95).on_failure(OnFailure::Skip).keep(KeptText::Original)
    }

    fn on_plain_text(&mut self, text: &str, _: &TextPlace) -> Result<TextAnswer> {
        Ok(self.masks.unmask(text)?.map_or(TextAnswer::Pass, TextAnswer::Replace))
    }
}

impl OnToolCall for MaskSecrets {
    /// Before other extensions, which check what runs. With a placeholder in it, a call would not do what it should.
    fn call_options(&self) -> CallOptions {
        CallOptions::default().priority(95).on_failure(OnFailure::Reject).keep(KeptText::Original)
    }

    fn on_tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer> {
        let mut failed = None;
        let unmasked = call.map_strings(|text| match self.masks.unmask(text) {
            Ok(unmasked) => unmasked,
            Err(error) => {
                failed = Some(error);
                None
            }
        })?;
        match (failed, unmasked) {
            (Some(error), _) => Err(error),
            (None, Some(arguments)) => CallAnswer::replace(arguments),
            (None, None) => Ok(CallAnswer::Pass),
        }
    }
}

tidegate_sdk::export!(MaskSecrets: OnInputMessages, OnPlainText, OnToolCall, OnToolResult);

#[cfg(test)]
mod tests;
