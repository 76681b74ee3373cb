//! A guest that takes words out of everything that it gets: what begins with `hush-` is shown as `[quiet]`. `README.md` of the folder
//! above has its settings.

#![forbid(unsafe_code)]

use tidegate_sdk::prelude::*;

/// What a word begins with that is taken out.
const BEGINS: &str = "hush-";

struct Hush {
    unit: TextUnit,
    streams: Vec<TextStream>,
    keep: KeptText,
    fail: String,
}

impl Extension for Hush {
    fn new(settings: &Settings) -> Result<Self> {
        let unit = match settings.get::<String>("unit")?.as_str() {
            "line" => TextUnit::Line,
            "paragraph" => TextUnit::Paragraph,
            "whole" => TextUnit::Whole,
            other => bail!("setting `unit` cannot be `{other}`"),
        };
        let mut streams = Vec::new();
        for stream in settings.get::<Vec<String>>("streams")? {
            streams.push(match stream.as_str() {
                "answer" => TextStream::Answer,
                "thinking" => TextStream::Thinking,
                other => bail!("setting `streams` cannot have `{other}`"),
            });
        }
        let keep = match settings.get::<String>("keep")?.as_str() {
            "" => KeptText::Unspecified,
            "original" => KeptText::Original,
            "shown" => KeptText::Shown,
            other => bail!("setting `keep` cannot be `{other}`"),
        };
        Ok(Self { unit, streams, keep, fail: settings.get("fail")? })
    }
}

impl Hush {
    /// The text without the words, where it has some.
    fn quiet(&self, text: &str) -> Result<Option<String>> {
        if text.contains("fail-now") {
            self.fail_with(text)?;
        }
        let (mut rest, mut out) = (text, String::new());
        while let Some(at) = rest.find(BEGINS) {
            let (before, word) = rest.split_at(at);
            let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let end = word.find(|c| !is_of_word(c)).unwrap_or(word.len());
            out.push_str(before);
            out.push_str("[quiet]");
            rest = &word[end..];
        }
        out.push_str(rest);
        Ok((out != text).then_some(out))
    }

    /// Fails in the way that the setting names, and says what it was given.
    fn fail_with(&self, text: &str) -> Result<()> {
        match self.fail.as_str() {
            "panic" => panic!("cannot read {text:?}"),
            "slice" => log::info(&text[text.len() + 1..]),
            "error" => bail!("cannot read {text:?}"),
            "log" => log::warn(text),
            "loop" => loop {
                std::hint::black_box(text);
            },
            _ => {}
        }
        Ok(())
    }
}

impl OnPlainText for Hush {
    fn text_options(&self) -> TextOptions {
        TextOptions::new(self.unit).streams(self.streams.clone()).keep(self.keep)
    }

    fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
        Ok(self.quiet(text)?.map_or(TextAnswer::Pass, TextAnswer::Replace))
    }
}

impl OnTag for Hush {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(["note"]).keep(self.keep)
    }

    /// A section is taken out as a whole.
    fn on_tag(&mut self, _tag: &Tag, _place: &TagPlace) -> Result<TagAnswer> {
        Ok(TagAnswer::replace("(a note)"))
    }
}

impl OnToolCall for Hush {
    fn call_options(&self) -> CallOptions {
        CallOptions::default().keep(self.keep)
    }

    /// A call that says `stop` is denied; any other runs without the words.
    fn on_tool_call(&mut self, call: &AskedCall) -> Result<CallAnswer> {
        let mut failed = None;
        let quiet = call.map_strings(|text| {
            self.quiet(text).unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        })?;
        match (failed, quiet) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(CallAnswer::Pass),
            (None, Some(quiet)) if call.call.arguments.contains("stop") => {
                CallAnswer::deny_showing("say it in public", quiet)
            }
            (None, Some(quiet)) => CallAnswer::replace(quiet),
        }
    }
}

impl OnToolResult for Hush {
    fn result_options(&self) -> ResultOptions {
        ResultOptions::default().keep(self.keep)
    }

    fn on_tool_result(&mut self, result: &GivenResult) -> Result<ResultAnswer> {
        let mut failed = None;
        let answer = result.map_texts(|text| {
            self.quiet(text).unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        failed.map_or(Ok(answer), Err)
    }
}

tidegate_sdk::export!(Hush: OnPlainText, OnTag, OnToolCall, OnToolResult);
