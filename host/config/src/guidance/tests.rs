//! Guidance of several plugins: the order of tools and calls, and conflicts.
use flow::CallId;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const TOOLS: [&str; 6] = ["read_file", "edit_file", "write_file", "grep", "shell", "note"];

fn specs(names: &[&str]) -> Vec<ToolSpec> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: match *name {
            "note" => json!({"properties": {"target": {"type": "string", "format": "path"}}}),
            _ => json!({}),
        },
    };
    names.iter().map(spec).collect()
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A plugin with its priority, and the tools that it prefers, avoids and orders.
type Plugin<'t> = (&'t str, u8, &'t [&'t str], &'t [&'t str], &'t [&'t str]);

fn merged(plugins: &[Plugin<'_>]) -> (Guidance, Vec<String>) {
    let said = |(id, priority, preferred, avoided, order): &Plugin<'_>| {
        let guidance = ToolGuidance {
            priority: *priority,
            preferred: strings(preferred),
            avoided: strings(avoided),
            order: strings(order),
        };
        (id.parse().expect("a plugin id"), guidance)
    };
    let all: Vec<(PluginId, ToolGuidance)> = plugins.iter().map(said).collect();
    let said = all.iter().map(|(plugin, guidance)| Said { plugin, guidance }).collect();
    let (guidance, found) = Guidance::merge(said, &specs(&TOOLS), &["read_file", "edit_file", "grep", "find", "shell"]);
    (guidance, found.iter().map(ToString::to_string).collect())
}

#[test]
fn guidance_on_an_unknown_tool_is_left_out_with_a_warning() {
    let (guidance, found) = merged(&[("a", 50, &["grep"], &[], &["grepping", "grep"])]);
    assert_eq!((guidance.preferred, guidance.order), (strings(&["grep"]), strings(&["grep"])));
    let expected =
        "warning[plugin-unknown-tool]: plugin `a`: gives guidance on `grepping`, which is not a tool of this session";
    let [warning] = found.as_slice() else { panic!("{found:?}") };
    assert!(warning.starts_with(expected) && warning.ends_with("; did you mean `grep`?"), "{warning}");
}

/// One row per case: the name, and the built-in tool that it can only mean. `find` is a built-in tool that this session does not have.
#[test]
fn a_misspelt_built_in_tool_is_an_error() {
    for (name, meant) in [
        ("grap", Some("grep")),
        ("gerp", Some("grep")),
        ("Grep", Some("grep")),
        ("readfile", Some("read_file")),
        ("read-file", Some("read_file")),
        ("ReadFile", Some("read_file")),
        ("edit_files", Some("edit_file")),
        ("shel", Some("shell")),
        ("shell.run", Some("shell")),
        ("grep:pattern", Some("grep")),
        ("find", None),
        ("read_page", None),
        ("edit_cells", None),
        ("search", None),
        ("bash", None),
    ] {
        let (guidance, found) = merged(&[("a", 50, &[name], &[], &[])]);
        assert!(guidance.preferred.is_empty(), "{name}");
        let [found] = found.as_slice() else { panic!("{name}: {found:?}") };
        assert_eq!(found.starts_with("error[plugin-unknown-tool]: plugin `a`:"), meant.is_some(), "{found}");
        if let Some(meant) = meant {
            assert!(found.contains(&format!("did you mean the built-in tool `{meant}`?")), "{found}");
        }
    }
}

#[test]
fn preferred_tools_are_offered_first_and_avoided_ones_last() {
    let (guidance, found) =
        merged(&[("a", 50, &["shell", "edit_file"], &["read_file"], &[]), ("b", 50, &["grep"], &[], &[])]);
    assert!(found.is_empty());
    let offered: Vec<String> = guidance.offer(specs(&TOOLS)).into_iter().map(|tool| tool.name).collect();
    assert_eq!(offered, ["shell", "edit_file", "grep", "write_file", "note", "read_file"]);
    let block = guidance.block().expect("there is guidance");
    assert_eq!(block.origin.to_string(), "tool guidance of `a`, `b`");
    let expected = "Prefer these tools where they fit: shell, edit_file, grep.\n\
                    Use these tools only where no other tool works: read_file.";
    assert_eq!(block.text, expected);
}

#[test]
fn without_guidance_there_is_no_block() {
    let (guidance, _) = merged(&[("a", 50, &[], &[], &["unknown"])]);
    assert_eq!((guidance.block(), guidance.suggests_order()), (None, false));
    assert!(guidance.plugins.is_empty());
}

#[test]
fn the_higher_priority_decides_and_the_conflict_names_both() {
    let (guidance, found) =
        merged(&[("low", 40, &["grep"], &["shell"], &[]), ("high", 60, &["shell"], &["grep"], &[])]);
    assert_eq!(
        (guidance.preferred.as_slice(), guidance.avoided.as_slice()),
        (&strings(&["shell"])[..], &strings(&["grep"])[..])
    );
    let help = "`high` has the higher priority (60, this plugin 40); change `priority` under `[tools]` in one of the manifests";
    let warning = |what: &str, opposite: &str| {
        format!(
            "warning[plugin-guidance-conflict]: plugin `low`: {what}, and plugin `high` {opposite}: the guidance of `high` is \
             used; {help}"
        )
    };
    assert_eq!(found, [warning("prefers `grep`", "avoids it"), warning("avoids `shell`", "prefers it")]);
}

#[test]
fn equal_priorities_are_decided_by_registration() {
    let (guidance, found) = merged(&[("first", 50, &["grep"], &[], &[]), ("second", 50, &[], &["grep"], &[])]);
    assert_eq!((guidance.preferred, guidance.avoided), (strings(&["grep"]), vec![]));
    assert!(found[0].contains("plugin `second`: avoids `grep`, and plugin `first` prefers it"), "{found:?}");
    assert!(found[0].contains("`first` is registered first (50, this plugin 50)"), "{found:?}");
}

/// One row per case: the orders by falling priority, the merged order, and the number of conflicts.
#[test]
fn orders_are_merged_into_one() {
    for (orders, expected, conflicts) in [
        (vec!["read edit"], "read edit", 0),
        (vec!["read edit", "edit shell"], "read edit shell", 0),
        (vec!["edit shell", "read edit"], "read edit shell", 0),
        (vec!["read edit", "read grep"], "read grep edit", 0),
        (vec!["read edit", "grep shell"], "read edit grep shell", 0),
        (vec!["read edit", "edit read"], "read edit", 1),
        (vec!["read edit shell", "shell grep read"], "read edit shell grep", 1),
        (vec!["read edit", "edit shell", "shell read"], "read edit shell", 1),
        (vec!["read grep edit", "read shell edit"], "read shell grep edit", 0),
    ] {
        let name = |word: &str| TOOLS.into_iter().find(|tool| tool.starts_with(word)).expect("a tool");
        let lists: Vec<Vec<&str>> = orders.iter().map(|order| order.split(' ').map(name).collect()).collect();
        let plugins: Vec<Plugin<'_>> = ["a", "b", "c"]
            .into_iter()
            .zip(&lists)
            .map(|(id, list)| (id, 50, &[][..], &[][..], list.as_slice()))
            .collect();
        let (guidance, found) = merged(&plugins);
        let expected: Vec<&str> = expected.split(' ').map(name).collect();
        assert_eq!(guidance.order, expected, "{orders:?}");
        assert_eq!(found.len(), conflicts, "{orders:?}: {found:?}");
        assert!(found.iter().all(|one| one.contains("suggests the reverse")), "{found:?}");
    }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new("1"), name: name.into(), arguments: arguments.into() }
}

/// The suggested order of the following tests: reading, searching, changing, then `shell` and `note`; not `write_file`.
fn guided() -> Guidance {
    merged(&[("a", 50, &[], &[], &["read_file", "grep", "edit_file", "shell", "note"])]).0
}

/// One row per case: the calls, and the order in which they run.
#[test]
fn calls_that_do_not_depend_on_each_other_run_in_the_suggested_order() {
    let read = |path: &str| ("read_file", format!("{{\"path\":\"{path}\"}}"));
    let edit = |path: &str| ("edit_file", format!("{{\"path\":\"{path}\",\"old_text\":\"x\"}}"));
    let edits = |paths: &str| ("edit_file", format!("{{\"paths\":[{paths}]}}"));
    let write = |path: &str| ("write_file", format!("{{\"path\":\"{path}\"}}"));
    let shell = |command: &str| ("shell", format!("{{\"command\":\"{command}\"}}"));
    let note = |target: &str| ("note", format!("{{\"target\":\"{target}\",\"path\":\"a.rs\"}}"));
    for (calls, expected) in [
        // A command can touch any file.
        (vec![shell("cargo test"), edit("a.rs")], vec![0, 1]),
        (vec![edit("a.rs"), read("b.rs")], vec![1, 0]),
        // The same file, in whatever way it is written.
        (vec![edit("a.rs"), read("a.rs")], vec![0, 1]),
        (vec![edit("./src/../a.rs"), read("a.rs")], vec![0, 1]),
        (vec![edit("A.rs"), read("a.rs")], vec![0, 1]),
        (vec![edit("/w/a.rs"), read("a.rs")], vec![0, 1]),
        (vec![edit("../a.rs"), read("b.rs")], vec![0, 1]),
        (vec![edit("/w/a.rs"), read("/w/b.rs")], vec![1, 0]),
        // A folder and what is in it.
        (vec![edit("src/a.rs"), read("src")], vec![0, 1]),
        (vec![edit("src/a.rs"), read(".")], vec![0, 1]),
        (vec![edit("src/a.rs"), read("/")], vec![0, 1]),
        (vec![edit("src2/a.rs"), read("src")], vec![1, 0]),
        (vec![edits("\"c.rs\",\"a.rs\""), read("a.rs")], vec![0, 1]),
        // A command that names the file.
        (vec![shell("rustfmt a.rs"), edit("src/a.rs")], vec![0, 1]),
        (vec![shell("rustfmt b.rs"), edit("src/a.rs")], vec![0, 1]),
        // A tool that says itself which argument is a path.
        (vec![note("a.rs"), edit("b.rs")], vec![1, 0]),
        (vec![note("b.rs"), edit("b.rs")], vec![0, 1]),
        // The same tool, tools that nobody ordered, and what stands between.
        (vec![shell("b"), shell("a")], vec![0, 1]),
        (vec![write("b.rs"), read("a.rs")], vec![0, 1]),
        (vec![shell("b"), write("b.rs"), read("a.rs")], vec![0, 1, 2]),
        (vec![shell("b"), read("a.rs"), write("b.rs"), edit("c.rs"), read("d.rs")], vec![0, 1, 2, 4, 3]),
        (vec![shell("x"), edit("a.rs"), read("a.rs"), read("b.rs")], vec![0, 1, 2, 3]),
        // Arguments that cannot be read.
        (vec![("shell", "{\"command\":".to_owned()), read("a.rs")], vec![0, 1]),
        (vec![("shell", String::new()), read("a.rs")], vec![0, 1]),
        (vec![read("a.rs")], vec![0]),
        (vec![], vec![]),
    ] {
        let calls: Vec<ToolCall> = calls.iter().map(|(name, arguments)| call(name, arguments)).collect();
        let shown: Vec<String> = calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
        assert_eq!(guided().run_order(&calls, &specs(&TOOLS)), expected, "{shown:#?}");
    }
}

#[test]
fn deep_arguments_and_very_many_calls_keep_their_order() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let calls = [call("shell", &deep), call("read_file", "{}")];
    assert_eq!(guided().run_order(&calls, &specs(&TOOLS)), [0, 1]);
    let of = |count: usize| {
        let calls: Vec<ToolCall> = (0..count)
            .map(|at| {
                let path = format!("{{\"path\":\"f{at}\"}}");
                call(["edit_file", "read_file"][at % 2], &path)
            })
            .collect();
        guided().run_order(&calls, &specs(&TOOLS))
    };
    assert_eq!(of(256)[..2], [1, 3]);
    assert!(of(257).into_iter().eq(0..257));
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        Just(String::new()),
        Just("{".to_owned()),
        "(a|b|a/b|\\.|\\.\\./a|/a)".prop_map(|path| json!({ "path": path }).to_string()),
        "(cat a|ls|b)".prop_map(|command| json!({ "command": command }).to_string()),
    ];
    (prop::sample::select(TOOLS.to_vec()), arguments).prop_map(|(name, arguments)| call(name, &arguments))
}

fn some_tools() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(TOOLS.to_vec(), 0..=TOOLS.len()).prop_shuffle()
}

proptest! {
    /// Every call runs once; calls change places only where the order of their tools asks for it; and a second sort changes nothing.
    #[test]
    fn a_run_order_is_a_permutation_with_a_reason(calls in prop::collection::vec(any_call(), 0..8), order in some_tools()) {
        let (guidance, _) = merged(&[("a", 50, &[], &[], &order)]);
        let tools = specs(&TOOLS);
        let sorted = guidance.run_order(&calls, &tools);
        let mut all = sorted.clone();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..calls.len()));
        let rank = |at: usize| order.iter().position(|name| *name == calls[at].name);
        for (place, &at) in sorted.iter().enumerate() {
            for &later in &sorted[place + 1..] {
                if later < at {
                    prop_assert!(rank(at).is_some() && rank(later).is_some() && calls[at].name != calls[later].name);
                    let pair = [calls[later].clone(), calls[at].clone()];
                    let reverse = [calls[at].name.as_str(), calls[later].name.as_str()];
                    let (asked, _) = merged(&[("a", 50, &[], &[], &reverse)]);
                    prop_assert_eq!(asked.run_order(&pair, &tools), [1, 0], "they do not depend on each other");
                }
            }
        }
        let again: Vec<ToolCall> = sorted.iter().map(|&at| calls[at].clone()).collect();
        prop_assert!(guidance.run_order(&again, &tools).into_iter().eq(0..calls.len()));
    }

    /// With distinct priorities the result does not depend on the order of registration, and the highest priority has its way.
    #[test]
    fn a_merge_depends_on_priorities_alone(
        orders in prop::collection::vec((some_tools(), some_tools(), 0..4_usize), 1..4),
        rotate in 0..4_usize,
    ) {
        let plugin = |(at, (list, order, split)): (usize, &(Vec<&'static str>, Vec<&'static str>, usize))| {
            let split = (*split).min(list.len());
            let (preferred, avoided) = list.split_at(split);
            (["a", "b", "c"][at], 50 - at as u8, preferred.to_vec(), avoided.to_vec(), order.clone())
        };
        let owned: Vec<_> = orders.iter().enumerate().map(plugin).collect();
        let mut plugins: Vec<Plugin<'_>> =
            owned.iter().map(|(id, priority, a, b, c)| (*id, *priority, &a[..], &b[..], &c[..])).collect();
        let (first, found) = merged(&plugins);
        let highest = plugins[0];
        let count = plugins.len();
        plugins.rotate_left(rotate % count);
        let (second, found_again) = merged(&plugins);
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(found, found_again);
        prop_assert!(first.preferred.starts_with(&strings(highest.2)) && first.avoided.starts_with(&strings(highest.3)));
        let kept: Vec<&str> = first.order.iter().map(String::as_str).filter(|name| highest.4.contains(name)).collect();
        prop_assert_eq!(kept, highest.4);
        prop_assert!(!first.preferred.iter().any(|name| first.avoided.contains(name)));
        let mut named: Vec<&str> = plugins.iter().flat_map(|plugin| plugin.4).copied().collect();
        named.sort_unstable();
        named.dedup();
        let mut order = first.order.clone();
        order.sort_unstable();
        prop_assert_eq!(order, named, "every tool is in the order once");
    }
}
