//! The tokens of a request, estimated by its bytes.
//!
//! A token has about four bytes of English or of code, and three of any script beyond ASCII: a Chinese character is one token. What
//! a wire format adds to each message, call and tool is a few tokens more.

use flow::{Image, Message, Part, Prompt, ToolSpec};

use flow::ports::{IMAGE_TOKENS, Model};

/// A token is so many parts: bytes of ASCII are three of them, other bytes four.
const PARTS: u64 = 12;

/// What a wire format adds to a message, to a call or its result, and to the definition of a tool, in tokens.
const MESSAGE: u64 = 4;
const CALL: u64 = 8;
const TOOL: u64 = 10;

/// An amount of content, in parts of a token. Sums are exact: parts are rounded to tokens once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Estimate(u64);

impl Estimate {
    /// The estimate of a text.
    pub(crate) fn text(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
        Self(ascii * 3 + (text.len() as u64 - ascii) * 4)
    }

    fn tokens_of(tokens: u64) -> Self {
        Self(tokens.saturating_mul(PARTS))
    }

    /// In whole tokens.
    pub(crate) fn tokens(self) -> u64 {
        self.0 / PARTS
    }

    /// The sum of both.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without the other.
    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::plus)
    }
}

/// The estimate of what a request has in addition to its messages: the system prompt and the definitions of tools.
pub(crate) fn of_frame<'r>(system: impl Iterator<Item = &'r str>, tools: &[ToolSpec]) -> Estimate {
    system.map(Estimate::text).chain(tools.iter().map(of_tool)).sum()
}

/// Tokens of a prompt, estimated as of one that no provider has counted.
pub fn estimated_tokens(prompt: &Prompt) -> u64 {
    let frame = of_frame(prompt.system.iter().map(|block| block.text.as_str()), &prompt.tools);
    let messages = prompt.messages.iter().map(|message| of_parts(message, &|_| IMAGE_TOKENS));
    frame.plus(messages.sum()).tokens()
}

/// The estimate of one message.
pub(crate) fn of_message(model: &dyn Model, message: &Message) -> Estimate {
    of_parts(message, &|image| model.image_tokens(image))
}

fn of_parts(message: &Message, image_tokens: &dyn Fn(&Image) -> u64) -> Estimate {
    let image = |image: &Image| Estimate::tokens_of(image_tokens(image));
    let part = |part: &Part| match part {
        Part::Text(text) => Estimate::text(text),
        Part::Image(one) => image(one),
        // Providers that sign reasoning keep all of it in the signature, and the text can be a summary of it.
        Part::Thinking { text, signature, .. } => {
            Estimate::text(text).max(signature.as_deref().map(Estimate::text).unwrap_or_default())
        }
        Part::ToolCall(call) => {
            Estimate::tokens_of(CALL).plus(Estimate::text(&call.name)).plus(Estimate::text(&call.arguments))
        }
        Part::ToolResult(result) => {
            let content: Estimate = result.content.iter().map(|text| Estimate::text(text)).sum();
            Estimate::tokens_of(CALL).plus(content)
        }
    };
    Estimate::tokens_of(MESSAGE).plus(message.parts.iter().map(part).sum())
}

fn of_tool(tool: &ToolSpec) -> Estimate {
    let texts = [tool.name.as_str(), tool.description.as_str(), &tool.parameters.to_string()];
    Estimate::tokens_of(TOOL).plus(texts.into_iter().map(Estimate::text).sum())
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    #[test]
    fn a_token_has_four_bytes_of_ascii_and_three_of_others() {
        let tokens = |text: &str| Estimate::text(text).tokens();
        assert_eq!([tokens(""), tokens("abc"), tokens("abcd"), tokens(&"x".repeat(400))], [0, 0, 1, 100]);
        assert_eq!(tokens(&"語".repeat(100)), 100);
        assert_eq!(tokens(&"я".repeat(30)), 20);
        // Parts of a token add up.
        let many: Estimate = std::iter::repeat_n(Estimate::text("a"), 8).sum();
        assert_eq!((many.tokens(), many.minus(Estimate::text("abcd")).tokens()), (2, 1));
    }
}
