//! Runs the files of `tests/corpus/thread_limits` (its README describes the format) through the reader of limits, and what layers and
//! prices mean.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use flow::{SourceFile, Spend, Usage};
use tidegate_config::events::{LayerFile, LayerOrigin};
use tidegate_config::thread_limits::{FILE, ThreadLimits, defaults, load, of_layers, of_sources};
use tidegate_config::{Layer, LayerKind, Operator};

use crate::support::Corpus;
use crate::support::tables::{LIMITS, as_table};

const CORPUS: Corpus<ThreadLimits> = Corpus { name: "thread_limits", read: |sources| of_sources(sources) };

fn layer(text: &str) -> Arc<SourceFile> {
    SourceFile::new(FILE, format!("schema_version = \"1.0.0\"\n{text}"))
}

fn settings(kind: LayerKind, text: &str) -> LayerFile {
    LayerFile::of_settings(&Layer { kind, source: SourceFile::new("tidegate.toml", text) })
}

#[test]
fn valid_files_load() {
    CORPUS.assert_valid(3);
}

#[test]
fn invalid_files_are_refused_in_these_words() {
    CORPUS.assert_invalid(14);
}

/// `config show --defaults` prints the default, and its output is what people begin with.
#[test]
fn the_default_on_top_of_itself_changes_nothing() {
    let copied = of_layers(&[settings(LayerKind::User, defaults())]).unwrap();
    assert_eq!(copied, of_sources(&[]).unwrap());
    assert_eq!(copied.limits.spawns, Some(20), "the default limits something");
}

#[test]
fn layers_change_only_what_they_say() {
    let user = layer("[limits]\ntokens = 5\nturns = 3\n[approval]\ntimeout = \"2h\"");
    let project = layer("[limits]\ntokens = \"unlimited\"\nduration = \"90s\"\nspend = 2.5");
    let limits = of_sources(&[user, project]).unwrap();
    assert_eq!((limits.limits.tokens, limits.limits.turns), (None, Some(3)));
    assert_eq!(limits.limits.duration, Some(Duration::from_secs(90)));
    assert_eq!(limits.limits.spend, Some(Spend::of_dollars(2.5)));
    assert_eq!(limits.approval_timeout, Duration::from_secs(7200));
}

#[test]
fn a_price_is_that_of_the_model_and_of_no_similar_one() {
    let limits =
        of_sources(&[layer("[[price]]\nid = \"gpt-5\"\noutput = 11\n[[price]]\nid = \"my-*\"\ninput = 1\noutput = 2")])
            .unwrap();
    let output = |model: &str| limits.price(model).map(|price| price.output);
    assert_eq!(output("gpt-5"), Some(11.0), "a key of an entry is overridden");
    assert_eq!(output("gpt-5-2025-08-07"), Some(11.0));
    assert_eq!(output("gpt-5-mini"), Some(2.0));
    assert_eq!((output("gpt-5-pro"), output("gpt-50"), output("gpt-5-1")), (None, None, None));
    assert_eq!(output("my-own-model"), Some(2.0));
    // What is not given of the cache costs as much as any prompt.
    let usage = Usage { output: Some(0), cache_write: Some(1_000_000), ..Usage::default() };
    assert_eq!(limits.price("my-own").unwrap().of(Some(0), usage), Some(Spend::of_dollars(1.0)));
}

/// `limits-unknown-price`: a limit that could not be kept is an error before anything is spent.
#[test]
fn money_is_not_limited_where_the_price_is_unknown() {
    let limited = of_sources(&[layer("[limits]\nspend = 1")]).unwrap();
    assert!(limited.price_for("gpt-5").unwrap().is_some());
    let error = limited.price_for("unheard-of").unwrap_err();
    assert_eq!(error.0[0].code.as_str(), "limits-unknown-price");
    assert_eq!(error.0[0].location().unwrap().line(), 3);
    assert_eq!(of_sources(&[]).unwrap().price_for("unheard-of"), Ok(None));
}

#[test]
fn files_are_found_in_the_workspace_and_in_the_users_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (user, workspace) = (folder.path().join("user"), folder.path().join("workspace"));
    fs::create_dir_all(&user).unwrap();
    fs::create_dir_all(workspace.join(".tidegate")).unwrap();
    fs::write(user.join(FILE), "schema_version = \"1.0.0\"\n[limits]\nturns = 3\nsteps = 4\n").unwrap();
    fs::write(workspace.join(".tidegate").join(FILE), "schema_version = \"1.0.0\"\n[limits]\nturns = 2\n").unwrap();
    let limits = load(&Operator::default(), Some(&user), &workspace).unwrap().limits;
    assert_eq!((limits.turns, limits.steps), (Some(2), Some(4)));
}

/// What a project writes, what is left out of it, and what counts then: turns, steps, tokens, dollars, spawns, depth, seconds.
type Numbers = [Option<u64>; 7];
const OF_USER: Numbers = [Some(3), None, Some(100), Some(2), Some(20), Some(1), Some(60)];
const OF_PROJECT: [(&str, &[usize], Numbers); 8] = [
    (
        "[limits]\nturns = 2\nsteps = 9\ntokens = 99\nspend = 1\nspawns = 0\ndepth = 0\nduration = \"59s\"\n",
        &[],
        [Some(2), Some(9), Some(99), Some(1), Some(0), Some(0), Some(59)],
    ),
    ("[limits]\nturns = 3\ntokens = 100\nspend = 2.0\nduration = \"1m\"\n", &[], OF_USER),
    (
        "[limits]\nturns = 4\ntokens = 101\nspend = 2.1\nspawns = 21\ndepth = 2\nduration = \"61s\"\n",
        &[3, 4, 5, 6, 7, 8],
        OF_USER,
    ),
    (
        "[limits]\nturns = \"unlimited\"\nsteps = \"unlimited\"\ntokens = \"unlimited\"\nspend = \"unlimited\"\n\
         spawns = \"unlimited\"\ndepth = \"unlimited\"\nduration = \"unlimited\"\n",
        &[3, 5, 6, 7, 8, 9],
        OF_USER,
    ),
    ("[limits]\nturns = 1\nspend = 3\n", &[4], [Some(1), None, Some(100), Some(2), Some(20), Some(1), Some(60)]),
    ("[[price]]\nid = \"gpt-5\"\ninput = 0\noutput = 0\n", &[2], OF_USER),
    ("[[price]]\nid = \"unheard-of\"\ninput = 0\noutput = 0\n[approval]\ntimeout = \"5m\"\n", &[2], OF_USER),
    ("[approval]\ntimeout = \"5m\"\n", &[], OF_USER),
];

/// `limits-project`: the file comes with what somebody clones.
#[test]
fn a_project_lowers_limits_and_neither_raises_them_nor_sets_prices() {
    let of_user = "[limits]\nturns = 3\ntokens = 100\nspend = 2\nduration = \"1m\"\n";
    let user = LayerFile::of_user(&layer(of_user));
    let table = |kind, text: &str| settings(kind, &as_table(&layer(text).text, LIMITS));
    let users = [user.clone(), table(LayerKind::User, of_user), table(LayerKind::Named, of_user)];
    let alone = of_layers(std::slice::from_ref(&user)).unwrap();
    let forms = users.iter().flat_map(|user| [true, false].map(|is_table| (user, is_table)));
    for ((text, left_out, numbers), (user, is_table)) in
        OF_PROJECT.iter().flat_map(|case| forms.clone().map(move |form| (*case, form)))
    {
        let project = match is_table {
            true => table(LayerKind::Workspace, text),
            false => LayerFile::new(&layer(text), LayerOrigin::Project),
        };
        let both = of_layers(&[user.clone(), project]).unwrap();
        let limits = &both.limits;
        let dollars = |spend: Spend| (0..10).find(|dollars| Spend::of_dollars(*dollars as f64) == spend);
        let duration = limits.duration.map(|duration| duration.as_secs());
        let spend = limits.spend.map(|spend| dollars(spend).unwrap());
        let found = [limits.turns, limits.steps, limits.tokens, spend, limits.spawns, limits.depth, duration];
        assert_eq!(found, numbers, "{text}");
        let lines: Vec<usize> = both.left_out.iter().map(|one| one.location().unwrap().line()).collect();
        assert_eq!(lines, left_out, "{text}: {:?}", both.left_out);
        assert!(both.left_out.iter().all(|one| !one.is_error() && one.code.as_str() == "limits-project"));
        for model in ["gpt-5", "claude-sonnet-4-5", "unheard-of"] {
            assert_eq!(both.price(model), alone.price(model), "{text}: {model}");
        }
    }
    // What is wrong is an error in a project's file, too, and is reported once.
    let wrong = LayerFile::new(&layer("[limits]\nduration = \"soon\"\n"), LayerOrigin::Project);
    assert_eq!(of_layers(&[user, wrong]).unwrap_err().0.len(), 1);
    // A key that is added to the format has to be decided about here.
    let schema: serde_json::Value = serde_json::from_str(&tidegate_config::thread_limit_schema()).unwrap();
    let keys = |of: &serde_json::Value| of["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(keys(&schema), names(&["approval", "limits", "price", "schema_version"]));
    let limits = ["depth", "duration", "spawns", "spend", "steps", "tokens", "turns"];
    assert_eq!(keys(&schema["definitions"]["SessionLimitsFile"]), names(&limits));
}
