//! Which plugins are loaded and which are refused, each refusal with its own message.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};

use flow::ports::ExtensionHost as _;
use flow::{Callback, CallbackKind, Power, TagPattern, TextUnit};
use tidegate_sandbox::{COMPONENT_MAX_BYTES, ComponentSource, Interface, LoadProblem, PluginSource, SandboxHost};

use crate::support::{Guest, PASS, Registered, load, sandbox, source, store};

/// Loads and gives the refusal's text.
fn refusal(source: PluginSource) -> String {
    sandbox().load(source).unwrap_err().to_string()
}

#[test]
fn a_guest_with_every_callback_is_loaded_with_what_it_registered() {
    let guest = Guest {
        registers: vec![
            (Registered::InputMessages, Some(100)),
            (Registered::PlainText(1), None),
            (Registered::Tag(vec!["note", "note-*"]), Some(0)),
            (Registered::LlmOutput(0), None),
            (Registered::TtsrTriggered, None),
            (Registered::ToolCall, None),
            (Registered::ToolResult, Some(99)),
        ],
        exports: CallbackKind::ALL.map(|kind| (kind, PASS.to_owned())).to_vec(),
        ..Guest::default()
    };
    let mut source = source("all", guest.component());
    source.declared = Some(BTreeSet::from(CallbackKind::ALL));
    source.priorities = BTreeMap::from([(CallbackKind::PlainText, 7)]);
    source.version = "1.2.3".into();
    let plugin = sandbox().load(source).unwrap();
    let registration = plugin.registration();
    assert_eq!(registration.version, "1.2.3");
    let tags = vec![TagPattern::Exact("note".into()), TagPattern::Prefix("note-".into())];
    assert_eq!(registration.callbacks[0], (Callback::InputMessages, 100).into());
    assert_eq!(
        registration.callbacks[1],
        (Callback::PlainText(TextUnit::Paragraph.into()), 7).into(),
        "the operator's priority"
    );
    assert_eq!(registration.callbacks[2], (Callback::Tag(tags), 0).into());
    assert_eq!(registration.callbacks[4], (Callback::TtsrTriggered, 50).into());
    assert_eq!(registration.callbacks[5], (Callback::ToolCall, 50).into());
    assert_eq!(registration.callbacks[6], (Callback::ToolResult, 99).into());
    assert_eq!(plugin.imports(), &BTreeSet::new(), "what is not imported is not there");
    assert_eq!(plugin.digest().len(), 64);
}

#[test]
fn files_that_are_no_components() {
    let bytes = |bytes: &[u8]| PluginSource::new("x".parse().unwrap(), ComponentSource::Bytes(bytes.into()));
    let core = wat::parse_str("(module)").unwrap();
    assert!(refusal(bytes(&core)).contains("plugin `x` cannot be loaded: its file is a core module, not a component"));
    assert!(refusal(bytes(b"#!/bin/sh")).contains("is not WebAssembly (it begins with \"#!/bin/sh\""));
    assert!(refusal(bytes(b"")).contains("is not WebAssembly"));
    assert!(refusal(bytes(b"\0asm\x0d\0\x01\0garbage")).contains("its component is not valid"));
    let large = vec![0; COMPONENT_MAX_BYTES as usize + 1];
    let too_large = format!("its component has {} bytes, at most {COMPONENT_MAX_BYTES} are read", large.len());
    assert!(refusal(bytes(&large)).contains(&too_large));
    let none = PluginSource::new("x".parse().unwrap(), ComponentSource::File("no/such.wasm".into()));
    assert!(refusal(none).contains("no/such.wasm: No such file"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.wasm");
    std::fs::write(&path, &large).unwrap();
    let file = PluginSource::new("x".parse().unwrap(), ComponentSource::File(path));
    assert!(refusal(file).contains(&too_large));
}

#[test]
fn another_version_of_the_contract() {
    let guest = Guest { version: "0.2.0", ..Guest::text(PASS) };
    let said = load(&guest).unwrap_err().to_string();
    assert!(said.contains("was built for version 0.2.0 of the contract"), "{said}");
    assert!(said.contains("this host implements 0.1.0; update the host, or build the plugin with"), "{said}");
    let older = load(&Guest { version: "0.0.9", ..Guest::text(PASS) }).unwrap_err().to_string();
    assert!(
        older.contains("this host implements 0.1.0; build the plugin again with an SDK of that version"),
        "{older}"
    );
    let later = load(&Guest { version: "0.1.1", ..Guest::text(PASS) }).unwrap_err().to_string();
    assert!(later.contains("was built for version 0.1.1 of the contract"), "{later}");
}

#[test]
fn a_migration_that_nothing_would_call() {
    let guest = Guest {
        world: "export tidegate:extension/migration@0.1.0;".into(),
        text: "(func (export \"tidegate:extension/migration@0.1.0#migrate\") (param i32) (result i32) (i32.const 16))"
            .into(),
        ..Guest::text(PASS)
    };
    let said = load(&guest).unwrap_err().to_string();
    assert!(
        said.contains("exports `migration`, but no older state can exist: `state_version` in plugin.toml is 1"),
        "{said}"
    );
    let migrating = PluginSource { state_version: 2, ..source("guest", guest.component()) };
    sandbox().load(migrating).unwrap();
}

#[test]
fn a_component_that_is_no_extension() {
    let guest = Guest { is_extension: false, registers: vec![], ..Guest::text(PASS) };
    let said = load(&guest).unwrap_err().to_string();
    assert!(said.contains("does not export `tidegate:extension/registration@0.1.0`; a plugin in Rust"), "{said}");
}

#[test]
fn imports_that_there_are_not() {
    let wasi = Guest {
        packages: "package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u64; } }".into(),
        world: "import wasi:random/random@0.2.0;".into(),
        text: "(import \"wasi:random/random@0.2.0\" \"get-random-u64\" (func (result i64)))".into(),
        ..Guest::text(PASS)
    };
    let said = load(&wasi).unwrap_err().to_string();
    assert!(
        said.contains("imports `wasi:random/random@0.2.0`, which this host does not have; extensions have no WASI")
    );
    let other = Guest {
        packages: "package a:b { interface c { d: func(); } }".into(),
        world: "import a:b/c;".into(),
        text: "(import \"a:b/c\" \"d\" (func))".into(),
        ..Guest::text(PASS)
    };
    let said = load(&other).unwrap_err().to_string();
    assert!(said.contains("imports `a:b/c`, which this host does not have; extensions may import `clock`"), "{said}");
}

#[test]
fn types_that_are_not_those_of_the_contract() {
    let said = |guest: &Guest, edit| {
        let error = load(&Guest { edits: vec![edit], ..guest.clone() }).unwrap_err();
        assert!(matches!(error.problem, LoadProblem::Types(_)), "{error}");
        error.to_string()
    };
    let answer = said(
        &Guest::text(PASS),
        (
            "        pass,\n        /// This text replaces the unit.",
            "        keep,\n        /// This text replaces the unit.",
        ),
    );
    let expected =
        "plugin `guest` does not conform to the contract: the export `tidegate:extension/on-plain-text@0.1.0`: ";
    assert!(
        answer.starts_with(expected) && answer.ends_with("expected variant case named pass, found keep"),
        "{answer}"
    );
    let power =
        said(&with_state(), ("clear: func() -> result<u32, state-error>", "clear: func() -> result<s32, state-error>"));
    assert!(power.contains("`tidegate:extension/state@0.1.0`") && power.contains("`clear`"), "{power}");
    assert!(power.ends_with("expected `u32` found `s32`"), "{power}");
}

/// A guest that imports `state`.
fn with_state() -> Guest {
    Guest {
        imports: vec!["state"],
        text: "(import \"tidegate:extension/state@VERSION\" \"clear\" (func $clear (param i32)))".into(),
        ..Guest::text(PASS)
    }
}

#[test]
fn powers_must_be_asked_for_and_granted() {
    let component = with_state().component();
    let mut source = source("s", component);
    assert_eq!(sandbox().load(source.clone()).unwrap().imports(), &BTreeSet::from([Interface::State]));
    source.granted.remove(&Power::State);
    let said = refusal(source.clone());
    assert!(said.contains("requests the power `state`, which is not granted"), "{said}");
    assert!(said.ends_with("[[plugin]]\ngrants = [\"state\"]"), "{said}");
    source.asked.remove(&Power::State);
    let said = refusal(source.clone());
    assert!(said.contains("imports the power `state`, which its manifest does not request"), "{said}");
    assert!(said.ends_with("[capabilities]\nstate = \"why it is needed\""), "{said}");
    source.granted.insert(Power::State);
    assert!(
        matches!(sandbox().load(source).unwrap_err().problem, LoadProblem::PowerNotAsked { power: Power::State, .. }),
        "granting what is not asked for does not help"
    );
}

#[test]
fn log_and_settings_need_no_grant() {
    let guest = Guest {
        imports: vec!["log", "settings"],
        text: "(import \"tidegate:extension/log@VERSION\" \"log\" (func (param i32 i32 i32 i32 i32)))
               (import \"tidegate:extension/settings@VERSION\" \"all\" (func (param i32)))"
            .into(),
        ..Guest::text(PASS)
    };
    let source = PluginSource::new("l".parse().unwrap(), ComponentSource::Bytes(guest.component().into()));
    assert_eq!(sandbox().load(source).unwrap().imports(), &BTreeSet::from([Interface::Log, Interface::Settings]));
}

#[test]
fn exports_registration_and_manifest_must_agree() {
    let more = Guest {
        registers: vec![(Registered::PlainText(0), None), (Registered::InputMessages, None)],
        ..Guest::text(PASS)
    };
    let said = load(&more).unwrap_err().to_string();
    assert!(said.contains(
        "registers on_input_messages, but its component does not export `tidegate:extension/on-input-messages@0.1.0`"
    ), "{said}");
    let less = Guest { registers: vec![], ..Guest::text(PASS) };
    let said = load(&less).unwrap_err().to_string();
    assert!(
        said.contains("exports `tidegate:extension/on-plain-text@0.1.0`, but `register` does not return on_plain_text"),
        "{said}"
    );
    let mut declared = source("d", Guest::text(PASS).component());
    declared.declared = Some(BTreeSet::from([CallbackKind::PlainText, CallbackKind::Tag]));
    let said = refusal(declared.clone());
    assert!(said.contains("declares on_tag in its manifest, but `register` does not return it"), "{said}");
    declared.declared = Some(BTreeSet::new());
    let said = refusal(declared);
    assert!(said.contains("registers on_plain_text, which its manifest does not declare"), "{said}");
}

#[test]
fn registrations_that_cannot_be() {
    let said = |registers: Vec<(Registered, Option<u8>)>| {
        load(&Guest { registers, ..Guest::text(PASS) }).unwrap_err().to_string()
    };
    let text = || (Registered::PlainText(0), None);
    assert!(said(vec![(Registered::PlainText(0), Some(101))]).contains("priority 101; priorities go from 0 to 100"));
    assert!(said(vec![text(), text()]).contains("on_plain_text is registered twice"));
    assert!(said(vec![(Registered::PlainText(3), None)]).contains("the text unit `new` is not known"));
    assert!(said(vec![(Registered::LlmOutput(2), None)]).contains("the output mode `new` is not known"));
    assert!(said(vec![(Registered::Other("on-dream"), None)]).contains("the callback `on-dream` is not known"));
    assert!(said(vec![(Registered::Tag(vec!["a b"]), None)]).contains("the tag pattern `a b` contains ' '"));
    assert!(said(vec![(Registered::Tag(vec![]), None)]).contains("registered for no tag"));
    assert!(said(vec![(Registered::Tag(vec!["a", "a"]), None)]).contains("names the pattern `a` twice"));
    assert!(said(vec![(Registered::Tag(vec!["a"; 65]), None)]).contains("has 65 patterns"));
    let names = (0..64).map(|n| &*format!("t{n}").leak()).collect();
    let most = Guest {
        registers: vec![(Registered::Tag(names), None)],
        exports: vec![(CallbackKind::Tag, PASS.to_owned())],
        ..Guest::default()
    };
    let host = SandboxHost::new(vec![load(&most).unwrap()], store()).unwrap();
    let [registration] = &*host.registrations() else { panic!("one plugin is loaded") };
    assert!(matches!(&registration.callbacks[0].callback, Callback::Tag(patterns) if patterns.len() == 64));
}

/// The policies that a guest with every callback gets, with who decided each.
fn policies(on_failure: Option<u8>, mode: u8, change: impl FnOnce(&mut PluginSource)) -> Result<String, String> {
    let every = [
        (Registered::InputMessages, CallbackKind::InputMessages),
        (Registered::PlainText(0), CallbackKind::PlainText),
        (Registered::Tag(vec!["t"]), CallbackKind::Tag),
        (Registered::LlmOutput(mode), CallbackKind::LlmOutput),
        (Registered::TtsrTriggered, CallbackKind::TtsrTriggered),
        (Registered::ToolCall, CallbackKind::ToolCall),
        (Registered::ToolResult, CallbackKind::ToolResult),
    ];
    let one_policy = |number: u8| match number {
        1 => vec![1, 2, 3, 6],
        2 => vec![0, 5],
        _ => vec![0, 1, 2, 3, 4, 5, 6],
    };
    let chosen = on_failure.map_or_else(|| (0..7).collect(), one_policy);
    let every: Vec<_> = chosen.into_iter().map(|at: usize| every[at].clone()).collect();
    let guest = Guest {
        registers: every.iter().map(|(one, _)| (one.clone(), None)).collect(),
        exports: every.iter().map(|(_, kind)| (*kind, PASS.to_owned())).collect(),
        on_failure,
        ..Guest::default()
    };
    let mut source = source("p", guest.component());
    change(&mut source);
    let plugin = sandbox().load(source).map_err(|error| error.to_string())?;
    let one = |one: &flow::Registered| format!("{} {}", one.on_failure.as_str(), one.decided_by.as_str());
    Ok(plugin.registration().callbacks.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[test]
fn the_operator_decides_then_the_registration_then_the_manifest() {
    assert_eq!(policies(None, 1, |_| {}).unwrap(), ["skip default"; 7].join(", "));
    let manifest = policies(None, 1, |source| source.fails_closed = Some(true)).unwrap();
    assert_eq!(
        manifest,
        "reject plugin.toml, withhold plugin.toml, withhold plugin.toml, withhold plugin.toml, skip default, reject plugin.toml, \
         withhold plugin.toml"
    );
    let observer = policies(None, 0, |source| source.operator_fails_closed = Some(true)).unwrap();
    assert_eq!(
        observer,
        "reject tidegate.toml, withhold tidegate.toml, withhold tidegate.toml, skip default, skip default, reject tidegate.toml, \
         withhold tidegate.toml"
    );
    let registered = policies(Some(1), 1, |source| source.fails_closed = Some(false)).unwrap();
    assert_eq!(registered, ["withhold registered"; 4].join(", "));
    let open = policies(Some(0), 1, |source| source.fails_closed = Some(true)).unwrap();
    let skips = ["skip registered"; 4].join(", ");
    assert_eq!(open, format!("{skips}, skip default, skip registered, skip registered"));
    let relaxed = policies(Some(2), 1, |source| source.operator_fails_closed = Some(false)).unwrap();
    assert_eq!(relaxed, "skip tidegate.toml, skip tidegate.toml");
}

#[test]
fn failure_policies_that_cannot_be() {
    let said = |on_failure, registered| {
        let guest = Guest { on_failure: Some(on_failure), registers: vec![(registered, None)], ..Guest::text(PASS) };
        load(&guest).unwrap_err().to_string()
    };
    let input = said(1, Registered::InputMessages);
    assert!(
        input.contains("on_input_messages cannot have the failure policy `withhold`; use `reject` or `skip`"),
        "{input}"
    );
    let text = said(2, Registered::PlainText(0));
    assert!(text.contains("on_plain_text cannot have the failure policy `reject`; use `withhold` or `skip`"), "{text}");
    let observer = said(1, Registered::LlmOutput(0));
    assert!(observer.contains("use `skip`, or the mode `rewrite`"), "{observer}");
    let unknown = said(3, Registered::PlainText(0));
    assert!(unknown.contains("the failure policy `explode` is not known"), "{unknown}");
}

#[test]
fn the_operators_priority_must_be_for_something_and_in_range() {
    let mut source = source("p", Guest::text(PASS).component());
    source.priorities = BTreeMap::from([(CallbackKind::Tag, 1)]);
    let refused = refusal(source.clone());
    assert!(
        refused.contains("for on_tag: the plugin does not register this callback; it registers on_plain_text"),
        "{refused}"
    );
    source.priorities = BTreeMap::from([(CallbackKind::PlainText, 101)]);
    assert!(refusal(source).contains("cannot have priority 101 for on_plain_text: priorities go from 0 to 100"));
}

#[test]
fn a_failing_register_refuses_the_load() {
    let said = |body: &str, data: Vec<(&'static str, Vec<u8>)>| {
        load(&Guest { register: Some(body.into()), data, ..Guest::text(PASS) }).unwrap_err().to_string()
    };
    let trap = said("unreachable", vec![]);
    assert!(
        trap.contains("could not register (trap): trapped (`unreachable`) without a message\n  in register"),
        "{trap}"
    );
    let hang = said("(loop $l (br $l)) unreachable", vec![]);
    assert!(hang.contains("could not register (timeout): took longer than 100 ms"), "{hang}");
    let no = "(i32.store8 (i32.const ANSWER) (i32.const 1)) (i32.store (i32.const 20) (i32.const @no))
              (i32.store (i32.const 24) (i32.const #no)) (i32.const ANSWER)";
    let error = said(no, vec![("no", b"setting `a` is missing".to_vec())]);
    assert!(error.contains("could not register (returned_error): setting `a` is missing"), "{error}");
}

#[test]
fn state_refuses_while_registering() {
    // Returns its own failure with the text of the state's refusal, if the refusal is `unavailable` (number 2).
    let guest = Guest {
        register: Some(
            "(call $clear (i32.const 64))
             (if (i32.ne (i32.load8_u (i32.const 64)) (i32.const 1)) (then unreachable))
             (if (i32.ne (i32.load8_u (i32.const 68)) (i32.const 2)) (then unreachable))
             (i32.store8 (i32.const ANSWER) (i32.const 1))
             (i32.store (i32.const 20) (i32.load (i32.const 72)))
             (i32.store (i32.const 24) (i32.load (i32.const 76)))
             (i32.const ANSWER)"
                .into(),
        ),
        ..with_state()
    };
    let said = load(&guest).unwrap_err().to_string();
    assert!(said.contains("could not register (returned_error): not during register"), "{said}");
}
