//! Random plugins: what each registers, adds to the prompt and says about tools, and the manifest that declares it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate::event::Position;
use tidegate::plugin::{CallbackKind, OutputMode};
use tidegate_kit::Random;

/// Priorities that are drawn: few, so that ties are frequent.
const PRIORITIES: [u8; 5] = [0, 30, 50, 50, 100];
/// Patterns of `on_tag` and of conditions.
pub(crate) const PATTERNS: [&str; 5] = ["note-todo", "note-*", "note-t*", "plan", "n*"];
/// Tags that inputs and answers contain.
pub(crate) const TAGS: [&str; 4] = ["note-todo", "note-x", "plan", "other"];
/// Tools that guidance is about.
const TOOLS: [&str; 5] = ["read_file", "edit_file", "grep", "shell", "find"];

/// A plugin as the model knows it.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) id: String,
    /// Appended by each callback that acts.
    pub(crate) mark: String,
    pub(crate) priorities: BTreeMap<CallbackKind, u8>,
    pub(crate) acts: Vec<CallbackKind>,
    pub(crate) tags: Vec<&'static str>,
    pub(crate) mode: OutputMode,
    pub(crate) additions: Vec<Addition>,
    pub(crate) guidance: Guidance,
}

#[derive(Clone, Debug)]
pub(crate) struct Addition {
    pub(crate) position: Position,
    pub(crate) text: String,
    pub(crate) when: Option<When>,
}

/// The conditions of an addition; all that are given must pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct When {
    pub(crate) tag: Option<&'static str>,
    pub(crate) state: Option<State>,
    pub(crate) model: Option<&'static str>,
    /// The first and the last turn.
    pub(crate) turns: Option<(u32, u32)>,
}

/// A condition on the value of the key `mode`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    Exists(bool),
    Equals(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Guidance {
    pub(crate) priority: u8,
    pub(crate) preferred: Vec<&'static str>,
    pub(crate) avoided: Vec<&'static str>,
    pub(crate) order: Vec<&'static str>,
}

impl Spec {
    pub(crate) fn random(random: &mut Random, id: String) -> Self {
        let mark = format!("[{id}]");
        let priorities = CallbackKind::ALL.map(|kind| (kind, random.pick(&PRIORITIES))).into();
        let mut tags = random.some(&PATTERNS);
        if tags.is_empty() {
            tags.push("plan");
        }
        let additions = (0..random.below(4)).map(|index| Addition::random(random, format!("{id}/{index}"))).collect();
        Self {
            mark,
            priorities,
            acts: random.some(&CallbackKind::ALL),
            tags,
            mode: random.pick(&[OutputMode::Observe, OutputMode::Observe, OutputMode::Rewrite]),
            additions,
            guidance: Guidance::random(random),
            id,
        }
    }

    /// The manifest, made of that of the guest.
    pub(crate) fn manifest(&self, of_guest: &str) -> String {
        let mut text = of_guest
            .replace("id = \"conformance\"", &format!("id = {:?}", self.id))
            .replace("[build]\nkind = \"rust\"", "[component]\npath = \"component.wasm\"")
            .replace("[capabilities]", "[capabilities]\nprompt = \"the test looks at it\"");
        for addition in &self.additions {
            addition.write(&mut text);
        }
        let Guidance { priority, preferred, avoided, order } = &self.guidance;
        writeln!(text, "\n[tools]\npriority = {priority}\npreferred_tools = {preferred:?}").unwrap();
        writeln!(text, "avoided_tools = {avoided:?}\ntool_order = {order:?}").unwrap();
        text
    }
}

impl Addition {
    fn random(random: &mut Random, text: String) -> Self {
        let position =
            random.pick(&[Position::SystemPrefix, Position::SystemSuffix, Position::UserPrefix, Position::UserSuffix]);
        let when = if random.once_in(3) { None } else { When::random(random) };
        Self { position, text, when }
    }

    fn write(&self, text: &mut String) {
        writeln!(text, "\n[[prompt]]\nposition = \"{}\"\ncontent = {:?}", self.position.as_str(), self.text).unwrap();
        let Some(When { tag, state, model, turns }) = &self.when else { return };
        writeln!(text, "[prompt.when]").unwrap();
        if let Some(tag) = tag {
            writeln!(text, "tag_present = {tag:?}").unwrap();
        }
        match state {
            Some(State::Exists(exists)) => {
                writeln!(text, "state_value = {{ key = \"mode\", exists = {exists} }}").unwrap();
            }
            Some(State::Equals(value)) => {
                writeln!(text, "state_value = {{ key = \"mode\", equals = {value:?} }}").unwrap();
            }
            None => {}
        }
        let model = model.map(|model| format!("model = {model:?}"));
        let turns = turns.map(|(first, last)| format!("turn = \"{first}..={last}\""));
        let context: Vec<String> = model.into_iter().chain(turns).collect();
        if !context.is_empty() {
            writeln!(text, "context_match = {{ {} }}", context.join(", ")).unwrap();
        }
    }
}

impl When {
    fn random(random: &mut Random) -> Option<Self> {
        let mut when = Self::default();
        for which in random.some(&[0, 1, 2, 3]) {
            match which {
                0 => when.tag = Some(random.pick(&PATTERNS)),
                1 => {
                    let states = [State::Exists(true), State::Exists(false), State::Equals("a"), State::Equals("b")];
                    when.state = Some(random.pick(&states));
                }
                2 => when.model = Some(random.pick(&["script-*", "SCRIPT-1", "script-?", "other"])),
                _ => when.turns = Some(random.pick(&[(1, 1), (1, 3), (2, 5), (4, 9)])),
            }
        }
        let Self { tag, state, model, turns } = &when;
        let is_any = tag.is_some() || state.is_some() || model.is_some() || turns.is_some();
        is_any.then_some(when)
    }
}

impl Guidance {
    fn random(random: &mut Random) -> Self {
        let mut preferred = if random.once_in(2) { random.some(&TOOLS) } else { Vec::new() };
        let avoided = preferred.split_off(preferred.len() / 2);
        let order = if random.once_in(4) { random.some(&TOOLS) } else { Vec::new() };
        Self { priority: random.pick(&PRIORITIES), preferred, avoided, order }
    }
}
