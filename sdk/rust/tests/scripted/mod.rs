//! Extensions as the corpus of segments writes them: `NAME[!]: HANDLER -> ANSWER`.

use tidegate_sdk::prelude::*;

/// The settings of both, without the plugin's id.
pub(crate) const MANIFEST: &str = r#"
settings.id = { type = "text", description = "the name in the log" }
settings.closed = { type = "boolean", description = "fails closed" }
settings.on = { type = "text", description = "the tags or the unit" }
settings.how = { type = "text", description = "pass, content, replace, fail" }
settings.template = { type = "text", description = "what it answers" }
"#;

/// A line of a case.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) id: &'a str,
    pub(crate) closed: bool,
    pub(crate) on: &'a str,
    pub(crate) how: &'a str,
    pub(crate) template: &'a str,
}

/// Reads a line, and whether it handles tags.
pub(crate) fn parse(line: &str) -> (bool, Line<'_>) {
    let (head, rest) = line.split_once(": ").unwrap();
    let (handler, answer) = rest.split_once(" -> ").unwrap();
    let (kind, on) = handler.split_once(' ').unwrap();
    let head = head.split('/').next().unwrap();
    let (id, closed) = head.strip_suffix('!').map_or((head, false), |id| (id, true));
    let (how, template) = answer.split_once(' ').unwrap_or((answer, ""));
    (kind == "tag", Line { id, closed, on, how, template })
}

struct Script {
    id: String,
    closed: bool,
    on: String,
    how: String,
    template: String,
}

impl Script {
    fn new(settings: &Settings) -> Result<Self> {
        Ok(Self {
            id: settings.get("id")?,
            closed: settings.get("closed")?,
            on: settings.get("on")?,
            how: settings.get("how")?,
            template: settings.get("template")?,
        })
    }

    fn on_failure(&self) -> OnFailure {
        if self.closed { OnFailure::Withhold } else { OnFailure::Skip }
    }

    fn log(&self, call: &str) {
        log::info(format!("{} {call}", self.id).replace('\n', "\\n"));
    }
}

pub(crate) struct ScriptedTag(Script);

impl Extension for ScriptedTag {
    fn new(settings: &Settings) -> Result<Self> {
        Script::new(settings).map(Self)
    }
}

impl OnTag for ScriptedTag {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(self.0.on.split(',')).on_failure(self.0.on_failure())
    }

    fn on_tag(&mut self, tag: &Tag, place: &TagPlace) -> Result<TagAnswer> {
        self.0.log(&format!("<{}> {}", tag.name, tag.content));
        let mut out = self.0.template.replace("{content}", &tag.content).replace("{name}", &tag.name);
        for (name, value) in &tag.pairs {
            out = out.replace(&format!("{{{name}}}"), value);
        }
        out = out.replace("{inside}", &place.inside.join("/"));
        match self.0.how.as_str() {
            "pass" | "keep" => Ok(TagAnswer::Keep),
            "content" => Ok(TagAnswer::Content(out)),
            "replace" => Ok(TagAnswer::Replace(out)),
            _ if !tag.content.contains(&self.0.template) => Ok(TagAnswer::Keep),
            _ => bail!("it fails"),
        }
    }
}

pub(crate) struct ScriptedText(Script);

impl Extension for ScriptedText {
    fn new(settings: &Settings) -> Result<Self> {
        Script::new(settings).map(Self)
    }
}

impl OnPlainText for ScriptedText {
    fn text_options(&self) -> TextOptions {
        let unit = match self.0.on.as_str() {
            "line" => TextUnit::Line,
            "paragraph" => TextUnit::Paragraph,
            _ => TextUnit::Whole,
        };
        TextOptions::new(unit).on_failure(self.0.on_failure())
    }

    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        self.0.log(text);
        match self.0.how.as_str() {
            "pass" => Ok(TextAnswer::Pass),
            "replace" => {
                let out = self.0.template.replace("{content}", text).replace("{inside}", &place.inside.join("/"));
                Ok(TextAnswer::Replace(out))
            }
            _ if !text.contains(&self.0.template) => Ok(TextAnswer::Pass),
            _ => bail!("it fails"),
        }
    }
}

tidegate_sdk::export!(ScriptedTag: OnTag);
tidegate_sdk::export!(ScriptedText: OnPlainText);
