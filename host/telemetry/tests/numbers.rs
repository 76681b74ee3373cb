//! From lists of events to text, in both formats.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect_file;
use flow::{
    Action, BreakerScope, BreakerState, CallbackOutcome, Charged, ErrorClass, EventKind, RegistrationAction, StepEnd,
    ToolOutcome, TurnStatus,
};
use tidegate_telemetry::{InstanceNumbers, METRICS, MetricValue, Metrics};

use crate::support::*;

/// The value of a series, by its name and labels.
fn value(metrics: &Metrics, series: &str) -> Option<String> {
    let text = metrics.prometheus();
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))
}

#[track_caller]
fn assert_value(metrics: &Metrics, series: &str, wanted: impl Into<Option<&'static str>>) {
    assert_eq!(value(metrics, series).as_deref(), wanted.into(), "{series} in\n{}", metrics.prometheus());
}

#[test]
fn a_session_in_both_formats() {
    let metrics = Metrics::new();
    // Hosts that share an engine have it watched once.
    for _ in 0..2 {
        metrics.watch_instances(0, || Some(InstanceNumbers { in_use: 3, limit: 8, waits: 2, reclaimed: 1 }));
    }
    whole_session(&mut metrics.session());
    gateway(&metrics);
    expect_file!["snapshots/prometheus.txt"].assert_eq(&metrics.prometheus());
    expect_file!["snapshots/openmetrics.txt"].assert_eq(&metrics.openmetrics());
    for metric in METRICS {
        let described = format!("# TYPE {} {}\n", metric.series(), metric.kind.as_str());
        assert!(metrics.prometheus().contains(&described), "the session has no {}", metric.name);
    }
}

/// What a gateway counts, which has no sessions of its own.
fn gateway(metrics: &Metrics) {
    metrics.gateway_connections(2);
    metrics.gateway_rejected();
    metrics.gateway_held(512);
    metrics.gateway_conversations(3);
    metrics.gateway_unstored(1);
    metrics.gateway_conversation("branched", 2);
    metrics.gateway_fired("no-forbidden", "interrupt");
    metrics.gateway_retry("/anthropic");
    metrics.gateway_first_byte("/anthropic", Duration::from_micros(120));
    metrics.gateway_frame("/anthropic", Duration::from_micros(30));
    metrics.gateway_request("/anthropic", "checked");
    metrics.gateway_reload("done");
    metrics.server_certificate(Some(1_795_660_786), true);
}

#[test]
fn the_series_of_both_formats_are_the_same() {
    let metrics = Metrics::new();
    whole_session(&mut metrics.session());
    let series = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(series(&metrics.prometheus()), series(&metrics.openmetrics()));
    assert!(metrics.openmetrics().ends_with("\n# EOF\n") && !metrics.prometheus().contains("EOF"));
    assert_eq!((Metrics::new().prometheus().as_str(), Metrics::new().openmetrics().as_str()), ("", "# EOF\n"));
}

#[test]
fn each_attempt_is_a_request_however_many_events_it_has() {
    let metrics = Metrics::new();
    let mut session = metrics.session();
    observe(&mut session, 0, [started("m"), EventKind::TurnStart]);
    assert_value(&metrics, "model_request_total{model=\"m\"}", None);
    observe(&mut session, 1, [EventKind::StepStart { number: 1 }, error(ErrorClass::Transient), retry()]);
    observe(&mut session, 2, [error(ErrorClass::Quota), turn(TurnStatus::Cancelled)]);
    assert_value(&metrics, "model_request_total{model=\"m\"}", "2");
    assert_value(&metrics, "model_error_total{class=\"quota\",model=\"m\"}", "1");
    assert_value(&metrics, "model_retry_total{class=\"transient\",model=\"m\"}", "1");
}

#[test]
fn tokens_are_counted_of_every_step() {
    let metrics = Metrics::new();
    let mut session = metrics.session();
    let failed = EventKind::StepFinish {
        usage: usage(30, 0),
        spend: None,
        charged: Charged::default(),
        end: StepEnd::Failed,
        context_tokens: None,
    };
    observe(&mut session, 1, [started("m"), step(usage(100, 10)), step(usage(50, 5)), failed]);
    assert_value(&metrics, "model_tokens_total{type=\"input\",model=\"m\"}", "180");
    assert_value(&metrics, "model_tokens_total{type=\"output\",model=\"m\"}", "15");
    assert_value(&metrics, "model_tokens_total{type=\"cache_read\",model=\"m\"}", None);
}

#[test]
fn a_breaker_shows_the_worst_of_the_open_sessions() {
    let (metrics, series) = (Metrics::new(), "extension_breaker_state{extension_id=\"shaky\"}");
    let (mut first, mut second) = (metrics.session(), metrics.session());
    observe(&mut first, 1, [registered("shaky")]);
    assert_value(&metrics, series, "0");
    observe(&mut second, 1, [registered("shaky"), breaker("shaky", BreakerState::Open)]);
    assert_value(&metrics, series, "2");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Open), breaker("shaky", BreakerState::HalfOpen)]);
    assert_value(&metrics, series, "2");
    drop(second);
    assert_value(&metrics, series, "1");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Closed)]);
    assert_value(&metrics, series, "0");
    observe(&mut first, 1, [breaker_of_tools("shaky", BreakerState::Open)]);
    assert_value(&metrics, series, "0");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Open), breaker_of_tools("shaky", BreakerState::Closed)]);
    assert_value(&metrics, series, "2");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Open)]);
    // An extension that comes back has a new breaker.
    observe(&mut first, 1, [changed("shaky", RegistrationAction::Disable)]);
    assert_value(&metrics, series, "0");
    observe(&mut first, 1, [changed("shaky", RegistrationAction::Enable)]);
    assert_value(&metrics, series, "0");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Open), changed("shaky", RegistrationAction::Reload)]);
    assert_value(&metrics, series, "0");
    observe(&mut first, 1, [breaker("shaky", BreakerState::Open), changed("shaky", RegistrationAction::Unregister)]);
    assert_value(&metrics, series, "0");
    assert_value(&metrics, "extension_breaker_opened_total{extension_id=\"shaky\"}", "6");
    assert_value(&metrics, "extension_registration_total{action=\"unregister\",extension_id=\"shaky\"}", "1");
}

/// A breaker that an extension has for all sessions: closed, half open, open, or no longer there.
fn watched(metrics: &Metrics, extension: &str) -> Arc<Mutex<Option<BreakerState>>> {
    let breaker = Arc::new(Mutex::new(Some(BreakerState::Closed)));
    let asked = Arc::clone(&breaker);
    metrics.watch_breaker(&plugin(extension), move || *asked.lock().unwrap());
    breaker
}

#[test]
fn the_breaker_of_all_sessions_is_shown_whatever_sessions_do() {
    let (metrics, series) = (Metrics::new(), "extension_breaker_state{extension_id=\"shaky\"}");
    let set = |breaker: &Mutex<Option<BreakerState>>, state| *breaker.lock().unwrap() = state;
    let first = watched(&metrics, "shaky");
    assert_value(&metrics, series, None);
    set(&first, Some(BreakerState::Open));
    assert_value(&metrics, series, "2");
    let mut session = metrics.session();
    // A session that changes to another version of the extension, or ends, is not the breaker's owner.
    let changes = [RegistrationAction::Reload, RegistrationAction::Unregister, RegistrationAction::Register];
    observe(&mut session, 1, changes.map(|action| changed("shaky", action)));
    let of_host = |state| breaker_of("shaky", BreakerScope::Host, state);
    observe(&mut session, 1, [of_host(BreakerState::Open), of_host(BreakerState::Closed)]);
    assert_value(&metrics, series, "2");
    drop(session);
    assert_value(&metrics, series, "2");
    // Two versions, while sessions change from one to the other: the worst counts.
    let second = watched(&metrics, "shaky");
    set(&first, Some(BreakerState::HalfOpen));
    assert_value(&metrics, series, "1");
    set(&second, Some(BreakerState::Open));
    set(&first, None);
    assert_value(&metrics, series, "2");
    assert_eq!(Arc::strong_count(&first), 1, "a breaker that is gone is asked no more");
    set(&second, None);
    assert_value(&metrics, series, "0");
    assert_value(&metrics, "extension_breaker_opened_total{extension_id=\"shaky\"}", None);
}

#[test]
fn metrics_do_not_mix_unless_they_are_shared() {
    let (one, two) = (Metrics::new(), Metrics::new());
    let shared = one.clone();
    observe(&mut one.session(), 0, [turn(TurnStatus::Completed)]);
    observe(&mut shared.session(), 0, [turn(TurnStatus::Completed)]);
    observe(&mut two.session(), 0, [turn(TurnStatus::Cancelled)]);
    assert_value(&one, "turn_total{status=\"completed\"}", "2");
    assert_value(&one, "turn_total{status=\"cancelled\"}", None);
    assert_value(&two, "turn_total{status=\"cancelled\"}", "1");
}

#[test]
fn names_that_a_model_invents_make_no_series_without_end() {
    let metrics = Metrics::new();
    let mut session = metrics.session();
    for number in 0..5000 {
        observe(&mut session, 1, [tool(&format!("invented_{number}"), true, 1)]);
    }
    observe(&mut session, 1, [tool("read_file", true, 1), tool("read_file", false, 1), tool("read_file", true, 1)]);
    let count = |name: &str| metrics.prometheus().lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        count("tool_call_total{"),
        32 + 1 + 2,
        "the first names, `other`, and both outcomes of a tool that exists"
    );
    assert_value(&metrics, "tool_call_total{tool=\"other\",outcome=\"error\"}", "4969");
    assert_value(&metrics, "tool_call_total{tool=\"read_file\",outcome=\"error\"}", "1");
    for number in 0..5000 {
        observe(&mut session, 1, [fired(&format!("rule-{number}"), Action::Pass)]);
    }
    assert_eq!(count("rule_fired_total{"), 1024 + 1);
    assert_value(&metrics, "rule_fired_total{rule=\"other\",action=\"pass\"}", "3976");
}

#[test]
fn values_are_escaped_and_cut() {
    let metrics = Metrics::new();
    observe(&mut metrics.session(), 1, [tool("a\"} 1\n# EOF\\\r", false, 1), tool(&"ä".repeat(1000), false, 1)]);
    assert_value(&metrics, "tool_call_total{tool=\"a\\\"} 1\\n# EOF\\\\\u{fffd}\",outcome=\"ok\"}", "1");
    assert_value(&metrics, &format!("tool_call_total{{tool=\"{}\",outcome=\"ok\"}}", "ä".repeat(64)), "1");
}

#[test]
fn calls_that_were_not_made_take_no_time_and_reads_are_counted() {
    let metrics = Metrics::new();
    let skipped = CallbackOutcome::Skipped("r".into());
    observe(&mut metrics.session(), 1, [called("a", skipped, 0, 3), ran("a", 4)]);
    assert_value(
        &metrics,
        "extension_callback_total{callback_type=\"on_tag\",extension_id=\"a\",outcome=\"skipped\"}",
        "1",
    );
    assert!(!metrics.prometheus().contains("extension_callback_duration"));
    observe(&mut metrics.session(), 1, [tool_of("b", ToolOutcome::NotPermitted("r".into()), 0)]);
    assert!(!metrics.prometheus().contains("extension_tool_duration_ms_count{tool=\"note_add\""));
    assert_value(&metrics, "extension_state_operations_total{operation=\"get\",extension_id=\"a\"}", "7");
}

#[test]
fn points_are_the_series_with_plain_values() {
    let metrics = Metrics::new();
    whole_session(&mut metrics.session());
    observe(&mut metrics.session(), 1, [tool("a\"b", false, 1)]);
    let points = metrics.points();
    let find = |name: &str, labels: &[&str]| {
        let found = points.iter().find(|point| point.metric.name == name && point.labels == labels);
        found.unwrap_or_else(|| panic!("{name} {labels:?} in {points:?}")).value.clone()
    };
    assert_eq!(find("tool.call.total", &["a\"b", "ok"]), MetricValue::Number(1));
    assert_eq!(find("extension.breaker.state", &["shaky"]), MetricValue::Number(0));
    let MetricValue::Histogram { buckets, sum } = find("tool.call.duration_ms", &["read_file"]) else { panic!() };
    // The first has 3 ms, the one beyond the last bound 900,000.
    assert_eq!((buckets.len(), buckets[1], buckets[13], sum), (14, 1, 1, 900_003.0));
    let series =
        metrics.prometheus().lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket")).count();
    let histograms = points.iter().filter(|point| matches!(point.value, MetricValue::Histogram { .. })).count();
    assert_eq!(points.len() + histograms, series, "a histogram has a sum and a count");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_nothing_is_left_of_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let names = || -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let (metrics, file) = (Metrics::new(), folder.path().join("metrics.txt"));
    std::fs::write(&file, "former").unwrap();
    observe(&mut metrics.session(), 0, [turn(TurnStatus::Completed)]);
    metrics.write_file(&file).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), metrics.openmetrics());
    // A folder cannot be replaced by a file: the failure comes after the text was written.
    std::fs::create_dir_all(folder.path().join("taken/by-something")).unwrap();
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        metrics.write_file(&link).unwrap();
        assert!(link.is_symlink(), "the link is followed");
        std::fs::remove_file(&link).unwrap();
        metrics.write_file("/dev/null".as_ref()).unwrap();
        assert!(!std::path::Path::new("/dev/null").is_file(), "a device stays what it is");
    }
    assert!(metrics.write_file(&folder.path().join("taken")).is_err());
    assert!(metrics.write_file(&folder.path().join("missing/metrics.txt")).is_err());
    assert!(metrics.write_file("/".as_ref()).is_err());
    assert_eq!(names(), ["metrics.txt", "taken"]);
}
