//! The parts of a prompt: their order, their conditions, and their origins.
use std::cell::RefCell;
use std::collections::BTreeMap;

use flow::{AdditionId, Condition, ContextMatch, PluginId, StateTest, StateValue, TagPattern};
use guard::additions::{State, Texts};
use proptest::prelude::*;

use super::*;

/// State by plugin and key, and how often it was read; a plugin that is not in it has none.
#[derive(Default)]
struct Kept {
    values: BTreeMap<&'static str, BTreeMap<&'static str, &'static [u8]>>,
    read: RefCell<u32>,
}

impl State for Kept {
    fn value(&self, plugin: &PluginId, key: &str) -> Result<Option<Vec<u8>>, String> {
        *self.read.borrow_mut() += 1;
        let values = self.values.get(plugin.as_str()).ok_or("there is no state here")?;
        Ok(values.get(key).map(|value| value.to_vec()))
    }
}

fn facts(state: &Kept) -> Facts<'_> {
    Facts { model: "claude-9", agent: "main", workspace: "/w/house", turn: 2, texts: Texts::default(), state }
}

fn add(plugin: &str, index: usize, position: Position, text: &str, when: Vec<Condition>) -> PromptAddition {
    let id = AdditionId { plugin: plugin.parse().expect("a plugin id"), index };
    PromptAddition { id, position, text: text.into(), when }
}

fn texts(frame: &Frame) -> Vec<String> {
    frame.prompt(Vec::new(), Vec::new()).system.into_iter().map(|block| block.text).collect()
}

fn state(key: &str, test: StateTest) -> Condition {
    Condition::StateValue { key: key.into(), test }
}

fn context(wanted: ContextMatch) -> Condition {
    Condition::ContextMatch(wanted)
}

#[test]
fn additions_are_ordered_by_position_then_plugin_then_declaration() {
    let mut frame = Frame::new(
        &["base".into()],
        &[
            add("b", 0, Position::SystemSuffix, "b1", vec![]),
            add("a", 0, Position::SystemSuffix, "a1", vec![]),
            add("a", 1, Position::SystemSuffix, "a2", vec![]),
            add("z", 0, Position::SystemPrefix, "z1", vec![]),
            add("b", 1, Position::UserPrefix, "before", vec![]),
            add("b", 2, Position::UserSuffix, "after", vec![]),
        ],
        None,
    );
    assert_eq!(texts(&frame), ["z1", "base", "a1", "a2", "b1"]);
    let rule = |name: &str| SystemBlock::new(BlockOrigin::Rules(vec![name.into()]), name);
    frame.set_rules(vec![rule("r1"), rule("r2")]);
    assert_eq!(texts(&frame), ["z1", "base", "r1", "r2", "a1", "a2", "b1"]);
    let mut input = vec![Message::user("one"), Message::user("two")];
    assert!(frame.around_input(&mut input, &facts(&Kept::default())).is_empty());
    let seen: Vec<(String, bool)> = input.iter().map(|one| (one.plain_text(), one.hidden)).collect();
    let expected = [("before", true), ("one", false), ("two", false), ("after", true)];
    assert_eq!(seen, expected.map(|(text, hidden)| (text.to_owned(), hidden)));
}

#[test]
fn additions_without_conditions_come_first() {
    let always = || vec![state("x", StateTest::Exists(false))];
    let kept = Kept { values: [("a", [].into()), ("b", [].into())].into(), ..Kept::default() };
    let mut frame = Frame::new(
        &["base".into()],
        &[
            add("a", 0, Position::SystemSuffix, "a1?", always()),
            add("a", 1, Position::SystemSuffix, "a2", vec![]),
            add("b", 0, Position::SystemSuffix, "b1?", always()),
            add("b", 1, Position::SystemSuffix, "b2", vec![]),
            add("a", 2, Position::UserPrefix, "before?", always()),
            add("b", 2, Position::UserPrefix, "before", vec![]),
        ],
        None,
    );
    frame.choose(&facts(&kept));
    assert_eq!(texts(&frame), ["base", "a2", "b2", "a1?", "b1?"]);
    let mut input = vec![Message::user("go")];
    frame.around_input(&mut input, &facts(&kept));
    assert_eq!(input.iter().map(Message::plain_text).collect::<Vec<_>>(), ["before", "before?", "go"]);
}

proptest! {
    /// The order depends on the additions alone, and what a condition removes does not move what comes before it.
    #[test]
    fn the_order_is_the_same_for_every_order_of_loading(
        keys in prop::collection::btree_set((0..4_usize, 0..4_usize), 1..12),
        conditional in prop::collection::vec(any::<bool>(), 12),
        ranks in prop::collection::vec(any::<u64>(), 12),
    ) {
        let one = |(at, (plugin, index)): (usize, &(usize, usize))| {
            let when = if conditional[at] { vec![state("x", StateTest::Exists(false))] } else { vec![] };
            add(["a", "b", "c", "d"][*plugin], *index, Position::SystemSuffix, &format!("{plugin}.{index}"), when)
        };
        let additions: Vec<PromptAddition> = keys.iter().enumerate().map(one).collect();
        let mut ranked: Vec<_> = additions.iter().cloned().zip(ranks).collect();
        ranked.sort_by_key(|(_, rank)| *rank);
        let shuffled: Vec<PromptAddition> = ranked.into_iter().map(|(one, _)| one).collect();
        let kept = Kept { values: ["a", "b", "c", "d"].map(|plugin| (plugin, [].into())).into(), ..Kept::default() };
        let order = |additions: &[PromptAddition]| {
            let mut frame = Frame::new(&[], additions, None);
            let stable = texts(&frame);
            frame.choose(&facts(&kept));
            (stable, texts(&frame))
        };
        let (stable, all) = order(&additions);
        prop_assert_eq!(&(stable.clone(), all.clone()), &order(&shuffled));
        prop_assert_eq!(&all[..stable.len()], &stable[..]);
        prop_assert_eq!(all.len(), additions.len());
    }
}

#[test]
fn an_input_without_a_user_message_gets_no_additions() {
    let mut frame = Frame::new(&[], &[add("a", 0, Position::UserPrefix, "before", vec![])], None);
    let mut input = vec![Message::text(Role::Assistant, Origin::Model, "so")];
    frame.around_input(&mut input, &facts(&Kept::default()));
    assert_eq!(input.len(), 1);
}

/// One row per condition: whether it passes for the facts above.
#[test]
fn each_condition_passes_or_does_not() {
    let some = |glob: &str| Some(glob.to_owned());
    let model = |glob| context(ContextMatch { model: some(glob), ..ContextMatch::default() });
    let agent = |glob| context(ContextMatch { agent: some(glob), ..ContextMatch::default() });
    let workspace = |glob| context(ContextMatch { workspace: some(glob), ..ContextMatch::default() });
    let turn = |turn: &str| context(ContextMatch { turn: turn.parse().ok(), ..ContextMatch::default() });
    let equals = |key, text: &str| state(key, StateTest::Equals(StateValue::Text(text.into())));
    let kept = Kept { values: [("a", [("mode", &b"\"strict\""[..])].into())].into(), ..Kept::default() };
    for (condition, passes) in [
        (model("claude-*"), true),
        (model("Claude-9"), true),
        (model("gpt-*"), false),
        (agent("main"), true),
        (agent("helper-*"), false),
        (workspace("/w/**"), true),
        (workspace("/w/*"), true),
        (workspace("/W/*"), false),
        // A folder means all that is below it, as in the globs of rules.
        (workspace("/w"), true),
        (workspace("/hous"), false),
        (workspace("house"), true),
        (turn("2"), true),
        (turn("..=1"), false),
        (turn("2.."), true),
        (context(ContextMatch { model: some("claude-*"), agent: some("other"), ..ContextMatch::default() }), false),
        (equals("mode", "strict"), true),
        (equals("mode", "loose"), false),
        (equals("other", "strict"), false),
        (state("mode", StateTest::Exists(true)), true),
        (state("other", StateTest::Exists(false)), true),
        (Condition::TagPresent(TagPattern::Exact("plan".into())), false),
    ] {
        let mut frame = Frame::new(&[], &[add("a", 0, Position::SystemSuffix, "x", vec![condition.clone()])], None);
        assert!(texts(&frame).is_empty(), "it is not added before its condition was evaluated");
        assert!(frame.choose(&facts(&kept)).is_empty());
        assert_eq!(!texts(&frame).is_empty(), passes, "{condition}");
    }
}

#[test]
fn all_conditions_must_pass_and_the_rest_is_not_evaluated() {
    let exists = |key| state(key, StateTest::Exists(true));
    let kept = Kept { values: [("a", [("x", &b"1"[..]), ("y", &b"2"[..])].into())].into(), ..Kept::default() };
    for (when, passes, reads) in
        [(vec!["x", "y"], true, 2), (vec!["x", "z"], false, 2), (vec!["z", "x"], false, 1), (vec![], true, 0)]
    {
        let when = when.into_iter().map(exists).collect();
        let mut frame = Frame::new(&[], &[add("a", 0, Position::SystemPrefix, "t", when)], None);
        kept.read.replace(0);
        frame.choose(&facts(&kept));
        assert_eq!((!texts(&frame).is_empty(), kept.read.take()), (passes, reads));
    }
}

#[test]
fn what_cannot_be_evaluated_does_not_pass_and_is_reported_once_in_a_turn() {
    let bad_glob = context(ContextMatch { model: Some("[".into()), ..ContextMatch::default() });
    let absent = state("mode", StateTest::Exists(false));
    let mut frame = Frame::new(
        &[],
        &[
            add("a", 0, Position::SystemPrefix, "one", vec![bad_glob]),
            add("b", 0, Position::UserPrefix, "two", vec![absent]),
        ],
        None,
    );
    let kept = Kept::default();
    for turn in 0..2 {
        frame.begin_turn();
        let told = frame.choose(&facts(&kept));
        let [told] = told.as_slice() else { panic!("turn {turn}: {told:?}") };
        let expected = "prompt addition 1 of plugin `a` is left out, because a condition of it cannot be evaluated: ";
        assert!(told.starts_with(expected), "{told}");
        assert!(frame.choose(&facts(&kept)).is_empty(), "once in a turn");
        let mut input = vec![Message::user("go")];
        let told = frame.around_input(&mut input, &facts(&kept));
        assert!(told[0].ends_with("its state `mode` cannot be read: there is no state here"), "{told:?}");
        assert!(frame.around_input(&mut input, &facts(&kept)).is_empty(), "once in a turn");
        assert_eq!((texts(&frame), input.len()), (vec![], 1));
    }
}

#[test]
fn a_session_without_a_workspace_matches_no_workspace() {
    let kept = Kept::default();
    let any = context(ContextMatch { workspace: Some("**".into()), ..ContextMatch::default() });
    let mut frame = Frame::new(&[], &[add("a", 0, Position::SystemPrefix, "t", vec![any])], None);
    assert!(frame.choose(&Facts { workspace: "", ..facts(&kept) }).is_empty());
    assert!(texts(&frame).is_empty());
    frame.choose(&facts(&kept));
    assert_eq!(texts(&frame), ["t"]);
}
