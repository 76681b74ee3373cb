//! What is typed is what is used: values, defaults, paths, and limits that are clipped.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use flow::{
    Condition, ContextMatch, KeptText, KeySource, PermissionMode, Power, ProviderKind, SettingValue, SourceFile,
    StateTest, StateValue, TagPattern,
};
use tidegate_config::{
    GatewaySettings, LimitRequests, MAX_PROMPT_BYTES, Manifest, OnTimeout, Operator, PermissionRule, PluginLimits,
    RouteKey, ServeSettings, ServerCertificate, StatePlace, WithoutStore,
};

fn full() -> Operator {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config/operator/valid/full.toml");
    Operator::of_source(&SourceFile::new("folder/tidegate.toml", std::fs::read_to_string(file).unwrap())).unwrap()
}

#[test]
fn an_empty_file_is_the_defaults() {
    let empty = Operator::of_source(&SourceFile::new("tidegate.toml", "")).unwrap();
    assert_eq!(Operator { layers: Vec::new(), ..empty }, Operator::default());
    let defaults = Operator::default();
    assert_eq!(defaults.limits.callback, Duration::from_millis(100));
    assert_eq!(defaults.limits.text, Duration::from_millis(20));
    assert_eq!(defaults.limits.memory_bytes, 32 << 20);
    assert_eq!(defaults.limits.output_bytes, 4 << 20);
    assert_eq!((defaults.limits.tool, defaults.limits.tool_output_bytes), (Duration::from_secs(30), 64 << 10));
    assert_eq!((defaults.limits.state_bytes, defaults.instances), (10 << 20, None));
    assert_eq!(defaults.state.absent, Duration::from_secs(7 * 24 * 60 * 60));
    assert_eq!(defaults.rules, rules::RuleSettings::default());
}

#[test]
fn every_value_arrives() {
    let operator = full();
    let provider = &operator.provider;
    assert_eq!((provider.kind, provider.max_tokens), (Some(ProviderKind::Anthropic), Some(1024)));
    assert_eq!(provider.key, KeySource::Env("MY_KEY".to_owned()));
    assert_eq!((provider.idle_timeout, provider.prefill), (Duration::from_secs(30), Some(false)));
    let times = (provider.content_timeout, provider.request_timeout);
    assert_eq!(times, (Duration::from_secs(45), Duration::from_secs(600)));
    assert_eq!(operator.system.as_deref(), Some("Answer in one sentence."));
    let [plugin] = operator.plugins.as_slice() else { panic!("the plugin that is switched off is there") };
    assert_eq!(plugin.folder, Path::new("folder/plugins/redact-secrets"));
    assert_eq!(plugin.grants, [Power::State, Power::Prompt]);
    assert!(plugin.required);
    assert!(plugin.sha256.as_ref().is_some_and(|digest| digest.starts_with("e3b0c4")), "{:?}", plugin.sha256);
    assert_eq!(plugin.fails_closed, Some(true));
    assert_eq!(plugin.keep, Some(KeptText::Shown));
    assert_eq!(plugin.priorities[&flow::CallbackKind::PlainText], 10);
    assert_eq!(plugin.limits.memory_bytes, Some(64 << 20));
    assert_eq!(plugin.settings["count"].0, SettingValue::Number(3.0));
    assert_eq!(plugin.settings["words"].0, SettingValue::Texts(vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(operator.rules.repeat_gap, 2);
    let folders = &operator.rule_folders;
    assert!(!folders.project && !folders.user);
    let paths: Vec<&Path> = folders.more.iter().map(|one| one.path.as_path()).collect();
    assert_eq!(paths, [Path::new("folder/../team/rules"), Path::new("folder/.cursor/rules")]);
    assert_eq!(folders.more[1].typed, ".cursor/rules");
    assert_eq!(operator.tools.shell_output_bytes, 8192);
    assert_eq!(operator.tools.shell_env, ["DATABASE_HOST", "MY_APP_*"]);
    assert_eq!(operator.tools.question_timeout, Some(Duration::from_secs(60)));
    assert_eq!(operator.tools.on_question_timeout, OnTimeout::Allow);
    assert_eq!(operator.tools.permissions.len(), 5);
    assert_eq!(operator.state.place, StatePlace::Disk(Some("folder/state".into())));
    assert_eq!(operator.state.session_ttl, Duration::from_secs(48 * 60 * 60));
    assert_eq!(operator.state.session_bytes, 8 << 20);
    assert_eq!(operator.state.absent, Duration::from_secs(3 * 24 * 60 * 60));
    assert_eq!((operator.limits.tool, operator.limits.tool_output_bytes), (Duration::from_secs(5), 32 << 10));
    assert_eq!((operator.limits.state_bytes, operator.instances), (6 << 20, Some(512)));
    assert_eq!((operator.turn.max_steps, operator.turn.max_repeats, operator.turn.max_retries), (5, 3, Some(0)));
}

fn files(of: &Option<ServerCertificate>) -> [&Path; 2] {
    let ServerCertificate { certificate, key, .. } = of.as_ref().unwrap();
    [&certificate.path, &key.path]
}

#[test]
fn every_value_of_the_gateway_arrives() {
    let GatewaySettings {
        listen,
        hosts,
        certificate,
        conversation_header,
        audit,
        without_store,
        routes,
        tokens,
        limits,
    } = full().gateway;
    assert_eq!(without_store, WithoutStore::Local);
    assert_eq!(
        (listen.to_string().as_str(), hosts.as_slice()),
        ("0.0.0.0:8443", &["gateway.example.com".to_owned()][..])
    );
    assert_eq!(files(&certificate), ["folder/server.pem", "folder/server.key"].map(Path::new));
    assert_eq!(conversation_header.as_deref(), Some("x-conversation"));
    assert_eq!(audit.as_deref(), Some(Path::new("folder/audit.jsonl")));
    let [anthropic, rest] = routes.as_slice() else { panic!("{routes:?}") };
    assert_eq!((rest.path.as_str(), rest.upstream.as_str()), ("/", "https://api.openai.com/v1"));
    assert_eq!((&rest.key, &rest.rules, &rest.plugins, rest.agent.as_str()), (&RouteKey::Client, &None, &None, "main"));
    assert_eq!(anthropic.path, "/anthropic");
    assert_eq!(anthropic.key, RouteKey::Env("ANTHROPIC_API_KEY".to_owned()));
    assert_eq!(anthropic.rules.as_deref(), Some(&["no-forbidden".to_owned()][..]));
    assert_eq!(anthropic.plugins.as_deref(), Some(&["redact-secrets".to_owned()][..]));
    assert_eq!((anthropic.agent.as_str(), anthropic.ca.as_deref()), ("reviewer", Some(Path::new("folder/ca.pem"))));
    let [token] = tokens.as_slice() else { panic!("{tokens:?}") };
    assert_eq!((token.name.as_str(), token.variable.as_str(), token.concurrent), ("team-a", "TEAM_A_TOKEN", Some(3)));
    assert!(token.admits("/anthropic") && !token.admits("/"));
    let sizes = (limits.body_bytes, limits.head_bytes, limits.held_bytes, limits.held_frames);
    assert_eq!(sizes, (8 << 20, 16 << 10, 4 << 20, 1000));
    assert_eq!((limits.concurrent, limits.connections), (7, 20));
    let times = [limits.client_timeout, limits.connect_timeout, limits.idle_timeout, limits.request_timeout];
    assert_eq!(times, [1000, 2000, 3000, 4000].map(Duration::from_millis));
    assert_eq!((limits.keep_alive, limits.drain), (Duration::from_millis(500), Duration::from_millis(600)));
}

#[test]
fn every_value_of_the_server_for_front_ends_arrives() {
    let ServeSettings { listen, address, hosts, certificate, origins, tokens, limits } = full().serve;
    assert_eq!(address.as_deref(), Some("http://10.0.0.2:8444"));
    assert_eq!(
        (listen.to_string().as_str(), hosts.as_slice()),
        ("0.0.0.0:8444", &["agent.example.com".to_owned()][..])
    );
    assert_eq!(files(&certificate), ["folder/own.pem", "folder/own.key"].map(Path::new));
    assert_eq!(origins, ["https://app.example.com", "http://localhost:3000"]);
    let [token] = tokens.as_slice() else { panic!("{tokens:?}") };
    assert_eq!((token.name.as_str(), token.variable.as_str()), ("anna", "ANNA_TOKEN"));
    assert_eq!((limits.body_bytes, limits.head_bytes), (8 << 20, 16 << 10));
    assert_eq!((limits.concurrent, limits.streams, limits.connections), (7, 8, 20));
    let times = [limits.client_timeout, limits.idle_timeout, limits.keep_alive];
    assert_eq!(times, [1000, 3000, 500].map(Duration::from_millis));
}

#[test]
fn what_is_asked_for_is_clipped_and_what_is_set_is_not() {
    let most: PluginLimits = Operator::default().limits;
    let asked = LimitRequests {
        callback: Some(Duration::from_secs(9)),
        memory_bytes: Some(1 << 20),
        ..LimitRequests::default()
    };
    let set = LimitRequests { text: Some(Duration::from_secs(1)), ..LimitRequests::default() };
    let given = most.for_plugin(&asked, &set);
    assert_eq!(given, PluginLimits { memory_bytes: 1 << 20, text: Duration::from_secs(1), ..most });
}

#[test]
fn permissions_are_read_from_flags_too() {
    let rule = PermissionRule::parse("shell(make X=1 *)=allow").unwrap();
    assert_eq!(
        (rule.tool.as_str(), rule.pattern.as_deref(), rule.mode),
        ("shell", Some("make X=1 *"), PermissionMode::Allow)
    );
    let said = |text: &str| PermissionRule::parse(text).unwrap_err().to_string();
    assert_eq!(said("shell"), "`shell` has no mode; write it as `TOOL=allow`, `TOOL=ask` or `TOOL=deny`");
    assert_eq!(said("shell=alow"), "`alow` is not a mode; did you mean `allow`?");
}

/// A manifest of a plugin with a component, all powers that its prompt needs, and this in addition.
fn manifest(rest: &str) -> Result<Manifest, tidegate_config::Diagnostics> {
    let head = "id = \"a\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\ncomponent.path = \"a.wasm\"\n\
                capabilities.prompt = \"why\"\ncapabilities.state = \"why\"\n";
    Manifest::of_source(&SourceFile::new("a/plugin.toml", format!("{head}{rest}")))
}

#[test]
fn conditions_of_additions_arrive() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config/manifest/valid/conditions.toml");
    let manifest = Manifest::load(&file).unwrap();
    let equals = |key: &str, value| Condition::StateValue { key: key.into(), test: StateTest::Equals(value) };
    let some = |glob: &str| Some(glob.to_owned());
    let turn = |turns: &str| Some(turns.parse().unwrap());
    let facts =
        ContextMatch { model: some("claude-*"), agent: some("main"), workspace: some("/w/**"), turn: turn("1") };
    let expected = [
        vec![Condition::ContextMatch(facts), Condition::TagPresent(TagPattern::Exact("plan".into()))],
        vec![
            Condition::ContextMatch(ContextMatch { turn: turn("2..=5"), ..ContextMatch::default() }),
            Condition::TagPresent(TagPattern::Prefix("note-".into())),
            equals("mode", StateValue::Text("strict".into())),
        ],
        vec![equals("count", StateValue::Integer(3))],
        vec![Condition::StateValue { key: "mode".into(), test: StateTest::Exists(false) }],
    ];
    let found: Vec<Vec<Condition>> = manifest.prompts.iter().map(|one| one.when.clone()).collect();
    assert_eq!(found, expected);
    assert!(manifest.prompts.iter().enumerate().all(|(index, one)| one.id.index == index));
}

#[test]
fn a_state_value_is_compared_with_what_json_has() {
    let with = |equals: &str| {
        let when = format!("when.state_value = {{ key = \"k\", equals = {equals} }}");
        manifest(&format!("[[prompt]]\nposition = \"user_prefix\"\ncontent = \"x\"\n{when}\n"))
    };
    for (equals, value) in [
        ("\"a\"", StateValue::Text("a".into())),
        ("-2", StateValue::Integer(-2)),
        ("0.5", StateValue::Number(0.5)),
        ("true", StateValue::Boolean(true)),
    ] {
        let found = with(equals).unwrap().prompts.remove(0).when;
        assert_eq!(found, [Condition::StateValue { key: "k".into(), test: StateTest::Equals(value) }]);
    }
    for equals in ["nan", "inf"] {
        let found = with(equals).unwrap_err().render(false);
        assert!(found.contains("manifest-invalid-condition") && found.contains("finite number"), "{found}");
    }
    assert!(with("1979-05-27").unwrap_err().render(false).contains("config-wrong-type"));
}

/// An addition with so many bytes of text.
fn text(bytes: usize) -> String {
    format!("[[prompt]]\nposition = \"user_prefix\"\ncontent = \"{}\"\n", "x".repeat(bytes))
}

#[test]
fn the_text_of_a_plugin_for_the_prompt_is_limited() {
    let rule = |key: &str, bytes: usize| {
        let (description, body) = if key == "description" { (bytes, 1) } else { (1, bytes) };
        let always = key == "always_apply";
        let description =
            if always { String::new() } else { format!("description = \"{}\"\n", "d".repeat(description)) };
        let always = if always { "always_apply = true\n" } else { "" };
        format!("[[rule]]\nname = \"r\"\n{always}{description}body = \"{}\"\n", "b".repeat(body))
    };
    let most = MAX_PROMPT_BYTES;
    for fits in [text(most), text(most - 1) + &text(1), text(most - 1) + &rule("description", 1), rule("body", most)] {
        manifest(&fits).unwrap();
    }
    // Seven lines precede the rest of the manifest.
    for (large, line) in [
        (text(most + 1), 10),
        (text(most) + &text(1), 13),
        (text(most) + &text(1) + &text(1), 13),
        (text(most) + &rule("always_apply", 1), 14),
        (text(most - 1) + &rule("description", 2), 14),
    ] {
        let found = manifest(&large).unwrap_err();
        let [error] = found.0.as_slice() else { panic!("{found}") };
        assert_eq!(error.code.as_str(), "manifest-prompt-too-large");
        assert_eq!(error.location().map(flow::Location::line), Some(line));
        assert!(error.message.contains("the limit is 65536"), "{error}");
    }
}

#[test]
fn everything_that_a_plugin_adds_to_the_prompt_is_listed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config/manifest/valid");
    let listed = |name: &str| {
        let manifest = Manifest::load(&file.join(name)).unwrap();
        manifest.prompt_texts().iter().map(|block| format!("{}: {}", block.place, block.text)).collect::<Vec<_>>()
    };
    let plain = listed("rules-and-prompts.toml");
    let expected =
        ["system_suffix: Write plain sentences.", "user_prefix: Be brief.", "rule \"habits\": Keep functions short."];
    assert_eq!(plain, expected);
    let conditions = "context_match = { turn = \"2..=5\" }, tag_present = \"note-*\", state_value = { key = \"mode\", equals = \"strict\" }";
    assert_eq!(listed("conditions.toml")[1], format!("user_prefix when {conditions}: Be strict."));
}

#[test]
fn the_digest_changes_with_all_that_is_shown() {
    let digest = |rest: &str| tidegate_config::prompt_digest(&manifest(rest).unwrap().prompt_texts());
    let addition = |position: &str, content: &str, when: &str| {
        format!("[[prompt]]\nposition = \"{position}\"\ncontent = \"{content}\"\n{when}\n")
    };
    let one = addition("user_prefix", "ab", "");
    let known = digest(&one).unwrap();
    assert_eq!(
        known, "739dc7b6837992ef6cf875468f78c59a3f174175a5d968b17ea67955a36052c6",
        "a digest that is stored must stay valid"
    );
    assert_eq!(digest(&format!("# The same.\n{one}")), Some(known), "comments are not shown");
    let house = "[[rule]]\nname = \"r\"\nalways_apply = true\nbody = \"ab\"\n";
    let all = [
        one.clone(),
        addition("user_suffix", "ab", ""),
        addition("user_prefix", "abc", ""),
        addition("user_prefix", "ab", "when.tag_present = \"a\""),
        addition("user_prefix", "ab", "when.tag_present = \"a*\""),
        addition("user_prefix", "ab", "when.state_value = { key = \"a\", equals = 1 }"),
        addition("user_prefix", "ab", "when.state_value = { key = \"a\", equals = \"1\" }"),
        addition("user_prefix", "a", "") + &addition("user_prefix", "b", ""),
        addition("user_prefix", "b", "") + &addition("user_prefix", "a", ""),
        house.to_owned(),
        one + house,
    ];
    let digests: BTreeSet<_> = all.iter().map(|rest| digest(rest).unwrap()).collect();
    assert_eq!(digests.len(), all.len());
    assert!(digests.iter().all(|digest| digest.len() == 64));
    assert_eq!(digest("[[rule]]\nname = \"r\"\ncondition = \"x\"\nbody = \"b\"\n"), None, "a stream rule adds no text");
}
