//! What operators get of turns. An OpenTelemetry receiver: the tree of spans with their names, times and attributes, the metrics, and
//! nothing that anybody wrote. The log: lines that name their session and turn.
//!
//! A program of its own: whether anybody wants a span is found out once in a process, by the thread that first comes to it, so that a test
//! without a subscriber can keep one with a subscriber from getting it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use serde_json::Value;
use tempfile::TempDir;
use tidegate::diagnostic::SourceFile;
use tidegate::event::StreamKind;
use tidegate::metrics::{Metrics, Telemetry};
use tidegate::model::{Delta, ErrorClass, Model, ModelError, StopReason, Usage};
use tidegate::{EventKind, Host, Operator, Session, SessionId, SessionOptions, TurnStatus};
use tidegate_kit::{Script, ScriptedModel, blocks, tool};
use tidegate_servers::{OtelTap, Received};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

/// In the prompt, the answers, the arguments and results of tools, the panic of an extension, and the error of the provider.
const CANARY: &str = "XYLOPHONE";

const RULE: &str = "+++\ncondition = \"FORBIDDEN\"\nscope = \"text\"\n+++\nSay it without the XYLOPHONE.\n";

/// A workspace with a rule, and a host with the guest that runs scripts.
async fn open(metrics: &Metrics) -> (Host, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
    let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    write("plugin/plugin.toml", &std::fs::read(source.join("plugin.toml")).unwrap());
    write(&format!("plugin/{}", tidegate_build::COMPONENT_FILE), &built.bytes);
    write("work/.tidegate/rules/hard.md", RULE.as_bytes());
    let toml = format!(
        "[rules]\nbuiltin_rules = false\nretry_delay_ms = 0\n[tools.permission]\n\"*\" = \"allow\"\n[[plugin]]\npath = {:?}\n\
         grants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n[plugin.settings]\nmode = \"observe\"\n\
         only = [\"on_plain_text\", \"tool\"]\n",
        folder.path().join("plugin").display().to_string()
    );
    let operator =
        Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let builder = Host::builder(operator).metrics(metrics).cache_dir(None).max_instances(4).user_rules(None);
    (builder.open().await.unwrap_or_else(|error| panic!("{error}")), folder)
}

fn answer(parts: &[(StreamKind, &str)], stop: StopReason) -> Script {
    let mut deltas = blocks(parts, usize::MAX, stop);
    let usage = Usage { input: Some(100), output: Some(7), cache_read: Some(60), cache_write: None };
    deltas.insert(deltas.len() - 1, Delta::Usage(usage));
    deltas[0] = Delta::Start { model: Some("script-1-2026".into()) };
    Script::Say(deltas, Some(Ok(())))
}

/// A turn that is stopped once and calls two tools, one that fails, and one that is cancelled.
fn scripts() -> Vec<Script> {
    let (text, end) = (StreamKind::Text, StopReason::EndTurn);
    let calls = [
        (text.clone(), "XYLOPHONE.\n!panic XYLOPHONE\n"),
        (tool("c1", "read_file"), r#"{"path": "XYLOPHONE.txt"}"#),
        (tool("c2", "run"), r#"{"script": "!replace XYLOPHONE"}"#),
    ];
    let refused = ModelError {
        code: Some("invalid_request_error".into()),
        ..ModelError::new(ErrorClass::Permanent, "the prompt has a XYLOPHONE")
    };
    vec![
        answer(&[(text.clone(), "XYLOPHONE is FORBIDDEN.")], end.clone()),
        answer(&calls, StopReason::ToolUse),
        answer(&[(text.clone(), "Done.")], end.clone()),
        Script::Refuse(refused),
        Script::Say(blocks(&[(text, "Begun.\nAnd then XYLOPHONE")], usize::MAX, end)[..3].to_vec(), None),
    ]
}

/// Runs the three turns, with everything exported that there is.
async fn run(telemetry: &Telemetry) -> (Session, TempDir) {
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    let _guard = tracing::subscriber::set_default(subscriber);
    let (host, folder) = open(telemetry.metrics()).await;
    let model: Arc<dyn Model> = ScriptedModel::new(scripts());
    let options = SessionOptions::new(folder.path().join("work")).model(model).id(SessionId::new("s-1"));
    let session = host.session(options).await.unwrap();
    let report = session.prompt("Tune the XYLOPHONE.").report().await;
    assert_eq!((&report.status, report.interrupts), (&TurnStatus::Completed, 1));
    let report = session.prompt("And the XYLOPHONE?").report().await;
    assert!(matches!(report.status, TurnStatus::Failed { .. }), "{report:?}");
    let mut cancelled = session.prompt("And now?");
    while let Some(event) = cancelled.next().await {
        if matches!(event.kind, EventKind::CognitionOutDelta { .. }) {
            session.cancel();
        }
    }
    assert_eq!(cancelled.report().await.status, TurnStatus::Cancelled);
    session.close();
    session.closed().await;
    (session, folder)
}

/// The exported turns, once for all tests of this file.
async fn exported() -> Received {
    let tap = OtelTap::start().unwrap();
    let endpoint = tap.base_url().to_owned();
    let variable = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone()),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-api-key=a%20key".to_owned()),
        "OTEL_SERVICE_NAME" => Some("my-agent".to_owned()),
        _ => None,
    };
    let telemetry = Telemetry::from_variables(&variable).unwrap().unwrap();
    let kept = run(&telemetry).await;
    telemetry.finish().await.unwrap();
    drop(kept);
    tap.received().unwrap()
}

fn time(span: &Value, name: &str) -> u64 {
    span[name].as_str().unwrap().parse().unwrap()
}

/// A value of the protocol in short.
fn short(value: &Value) -> String {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "stringValue" => value.as_str().unwrap().to_owned(),
        "intValue" => format!("#{}", value.as_str().unwrap()),
        "arrayValue" => format!("{:?}", value["values"].as_array().unwrap().iter().map(short).collect::<Vec<_>>()),
        _ => value.to_string(),
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let all = of["attributes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |one: &Value| (one["key"].as_str().unwrap().to_owned(), short(&one["value"]));
    all.iter().map(pair).collect()
}

/// The tree of spans, siblings in the order of their starts; every span is inside of its parent in time too.
fn tree(spans: &[Value]) -> String {
    fn write(spans: &[Value], parent: Option<&Value>, depth: usize, text: &mut String) {
        let mut children: Vec<&Value> =
            spans.iter().filter(|span| span.get("parentSpanId") == parent.map(|parent| &parent["spanId"])).collect();
        // Notifications of rules run beside the turn: whether one begins before the next step is a matter of chance.
        let beside = |span: &Value| span["name"].as_str().unwrap().starts_with("ttsr_triggered");
        children.sort_by_key(|span| (beside(span), time(span, "startTimeUnixNano")));
        for span in children {
            let (start, end) = (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
            assert!(start < end, "{span}");
            if let Some(parent) = parent {
                assert_eq!(span["traceId"], parent["traceId"]);
                assert!(time(parent, "startTimeUnixNano") <= start && end <= time(parent, "endTimeUnixNano"), "{span}");
            }
            let kind = span["kind"].as_str().unwrap().trim_start_matches("SPAN_KIND_").to_lowercase();
            let failed = if span["status"]["code"] == "STATUS_CODE_ERROR" { " failed" } else { "" };
            let indent = "  ".repeat(depth);
            text.push_str(&format!("{indent}{} ({kind}{failed})\n", span["name"].as_str().unwrap()));
            for (name, value) in attributes(span) {
                let value = if name.ends_with("time_to_first_chunk") { "…".to_owned() } else { value };
                text.push_str(&format!("{indent}  - {name} = {value}\n"));
            }
            write(spans, Some(span), depth + 1, text);
        }
    }
    let mut text = String::new();
    write(spans, None, 0, &mut text);
    text
}

#[tokio::test]
async fn turns_are_traces_with_the_conventional_names() {
    let received = exported().await;
    let tree = tree(&received.spans);
    expect![[r#"
        invoke_agent (internal)
          - gen_ai.conversation.id = s-1
          - gen_ai.operation.name = invoke_agent
          - gen_ai.provider.name = script
          - gen_ai.request.model = script-1
          - gen_ai.response.finish_reasons = ["end_turn"]
          - gen_ai.usage.cache_read.input_tokens = #120
          - gen_ai.usage.input_tokens = #200
          - gen_ai.usage.output_tokens = #14
          - tidegate.outcome = completed
          - tidegate.turn = #1
          on_input_messages conformance (internal)
            - extension.callback.outcome = passed
            - extension.callback.type = on_input_messages
            - extension.id = conformance
          step (internal)
            - tidegate.outcome = completed
            - tidegate.step = #1
            chat script-1 (client)
              - gen_ai.conversation.id = s-1
              - gen_ai.operation.name = chat
              - gen_ai.provider.name = script
              - gen_ai.request.model = script-1
              - gen_ai.request.stream = true
              - gen_ai.response.model = script-1-2026
              - gen_ai.response.time_to_first_chunk = …
              - tidegate.attempt = #1
              - tidegate.outcome = interrupted
              - tidegate.rules = ["hard"]
            chat script-1 (client)
              - gen_ai.conversation.id = s-1
              - gen_ai.operation.name = chat
              - gen_ai.provider.name = script
              - gen_ai.request.model = script-1
              - gen_ai.request.stream = true
              - gen_ai.response.finish_reasons = ["tool_use"]
              - gen_ai.response.model = script-1-2026
              - gen_ai.response.time_to_first_chunk = …
              - gen_ai.usage.cache_read.input_tokens = #60
              - gen_ai.usage.input_tokens = #100
              - gen_ai.usage.output_tokens = #7
              - tidegate.attempt = #2
              - tidegate.outcome = completed
              on_plain_text conformance (internal)
                - extension.callback.outcome = passed
                - extension.callback.type = on_plain_text
                - extension.id = conformance
              on_plain_text conformance (internal failed)
                - error.type = panic
                - extension.callback.outcome = error
                - extension.callback.type = on_plain_text
                - extension.id = conformance
            on_tool_call conformance (internal)
              - extension.callback.outcome = passed
              - extension.callback.type = on_tool_call
              - extension.id = conformance
            on_tool_call conformance (internal)
              - extension.callback.outcome = passed
              - extension.callback.type = on_tool_call
              - extension.id = conformance
            on_llm_output conformance (internal)
              - extension.callback.outcome = passed
              - extension.callback.type = on_llm_output
              - extension.id = conformance
            execute_tool read_file (internal failed)
              - error.type = tool_error
              - gen_ai.operation.name = execute_tool
              - gen_ai.tool.call.id = c1
              - gen_ai.tool.name = read_file
              - gen_ai.tool.type = function
              - tidegate.outcome = error
              on_tool_result conformance (internal)
                - extension.callback.outcome = passed
                - extension.callback.type = on_tool_result
                - extension.id = conformance
            execute_tool run (internal)
              - extension.id = conformance
              - gen_ai.operation.name = execute_tool
              - gen_ai.tool.call.id = c2
              - gen_ai.tool.name = run
              - gen_ai.tool.type = function
              - tidegate.outcome = ok
              on_tool_result conformance (internal)
                - extension.callback.outcome = passed
                - extension.callback.type = on_tool_result
                - extension.id = conformance
          step (internal)
            - tidegate.outcome = completed
            - tidegate.step = #2
            chat script-1 (client)
              - gen_ai.conversation.id = s-1
              - gen_ai.operation.name = chat
              - gen_ai.provider.name = script
              - gen_ai.request.model = script-1
              - gen_ai.request.stream = true
              - gen_ai.response.finish_reasons = ["end_turn"]
              - gen_ai.response.model = script-1-2026
              - gen_ai.response.time_to_first_chunk = …
              - gen_ai.usage.cache_read.input_tokens = #60
              - gen_ai.usage.input_tokens = #100
              - gen_ai.usage.output_tokens = #7
              - tidegate.attempt = #1
              - tidegate.outcome = completed
            on_plain_text conformance (internal)
              - extension.callback.outcome = passed
              - extension.callback.type = on_plain_text
              - extension.id = conformance
            on_llm_output conformance (internal)
              - extension.callback.outcome = passed
              - extension.callback.type = on_llm_output
              - extension.id = conformance
          ttsr_triggered conformance (internal)
            - extension.callback.outcome = passed
            - extension.callback.type = ttsr_triggered
            - extension.id = conformance
        invoke_agent (internal failed)
          - error.type = permanent
          - gen_ai.conversation.id = s-1
          - gen_ai.operation.name = invoke_agent
          - gen_ai.provider.name = script
          - gen_ai.request.model = script-1
          - tidegate.outcome = failed
          - tidegate.turn = #2
          on_input_messages conformance (internal)
            - extension.callback.outcome = passed
            - extension.callback.type = on_input_messages
            - extension.id = conformance
          step (internal failed)
            - error.type = permanent
            - tidegate.outcome = failed
            - tidegate.step = #1
            chat script-1 (client failed)
              - error.type = invalid_request_error
              - gen_ai.conversation.id = s-1
              - gen_ai.operation.name = chat
              - gen_ai.provider.name = script
              - gen_ai.request.model = script-1
              - gen_ai.request.stream = true
              - tidegate.attempt = #1
              - tidegate.outcome = failed
        invoke_agent (internal failed)
          - error.type = cancelled
          - gen_ai.conversation.id = s-1
          - gen_ai.operation.name = invoke_agent
          - gen_ai.provider.name = script
          - gen_ai.request.model = script-1
          - tidegate.outcome = cancelled
          - tidegate.turn = #3
          on_input_messages conformance (internal)
            - extension.callback.outcome = passed
            - extension.callback.type = on_input_messages
            - extension.id = conformance
          step (internal failed)
            - error.type = cancelled
            - tidegate.outcome = cancelled
            - tidegate.step = #1
            chat script-1 (client failed)
              - error.type = cancelled
              - gen_ai.conversation.id = s-1
              - gen_ai.operation.name = chat
              - gen_ai.provider.name = script
              - gen_ai.request.model = script-1
              - gen_ai.request.stream = true
              - gen_ai.response.time_to_first_chunk = …
              - tidegate.attempt = #1
              - tidegate.outcome = cancelled
              on_plain_text conformance (internal)
                - extension.callback.outcome = passed
                - extension.callback.type = on_plain_text
                - extension.id = conformance
    "#]]
    .assert_eq(&tree);
    assert_eq!(
        tree.lines().filter(|line| line.ends_with(')')).count(),
        received.spans.len(),
        "none is outside of the trees"
    );
    let traces: BTreeSet<_> = received.spans.iter().map(|span| span["traceId"].to_string()).collect();
    assert_eq!(traces.len(), 3, "a trace for each turn");
    let ids: BTreeSet<_> = received.spans.iter().map(|span| span["spanId"].to_string()).collect();
    assert_eq!(ids.len(), received.spans.len());

    assert!(!received.contains(CANARY).unwrap());
    assert!(received.contains("invoke_agent").unwrap(), "the search can find something");

    let resource = attributes(&received.resources[0]);
    assert_eq!(resource["service.name"], "my-agent");
    for request in &received.requests {
        assert_eq!(request["headers"]["x-api-key"], "a key", "{request}");
    }
    metrics(&received);
}

/// Where log lines are written to.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn log_lines_of_a_turn_name_it() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
    let log = log.with_filter(filter_fn(|about| *about.level() <= tracing::Level::INFO));
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(log));
    let (host, folder) = open(&Metrics::new()).await;
    // Eleven values of 1,000 KiB are more than an extension may keep; those of one call replace those of the other.
    let fill = |keys: std::ops::Range<u8>| -> String { keys.map(|key| format!("!state-fill k{key} 1000\n")).collect() };
    let script = |id: &str, script: &str| (tool(id, "run"), serde_json::json!({ "script": script }).to_string());
    let calls = [
        script("c0", &fill(0..6)),
        script("c1", &fill(6..11)),
        script("c2", "!state-clear"),
        script("c3", "!panic on purpose"),
    ];
    let calls: Vec<(StreamKind, &str)> = calls.iter().map(|(kind, text)| (kind.clone(), text.as_str())).collect();
    let last = (StreamKind::Text, "Done.\n!panic again\n");
    let model: Arc<dyn Model> =
        ScriptedModel::new([answer(&calls, StopReason::ToolUse), answer(&[last], StopReason::EndTurn)]);
    let options = SessionOptions::new(folder.path().join("work")).model(model).id(SessionId::new("s-1"));
    let session = host.session(options).await.unwrap();
    let report = session.prompt("go").report().await;
    assert_eq!(report.status, TurnStatus::Completed);
    drop(guard);
    let text = String::from_utf8(std::mem::take(&mut lines.0.lock().unwrap())).unwrap();
    let tool = "step{step=1}:tool{tool=\"run\" call=";
    for (words, place) in [
        ("the session has the extension plugin=conformance", "turn{"),
        ("was removed plugin=conformance operation=\"evict\" key=\"k0\"", tool),
        ("was removed plugin=conformance operation=\"clear\"", tool),
        ("panicked at", tool),
        ("plugin=conformance callback=\"on_plain_text\"", "step{step=2}:attempt{attempt=1}"),
    ] {
        let line = text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in\n{text}"));
        assert!(line.contains("turn{session=\"s-1\" turn=1 ") && line.contains(place), "{line}");
    }
}

/// The points of a metric with these attributes among theirs.
fn points<'r>(received: &'r Received, name: &str, wanted: &[(&str, &str)]) -> Vec<&'r Value> {
    let metric = received.metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let data = ["sum", "gauge", "histogram"].into_iter().find_map(|kind| metric.get(kind)).unwrap();
    let points = data["dataPoints"].as_array().unwrap().iter();
    let fits = |point: &&Value| {
        let all = attributes(point);
        wanted.iter().all(|(name, value)| all.get(*name).map(String::as_str) == Some(value))
    };
    points.filter(fits).collect()
}

fn metrics(received: &Received) {
    let count = |name: &str, wanted: &[(&str, &str)]| -> u64 {
        points(received, name, wanted)
            .iter()
            .map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(count("gen_ai.client.operation.duration", &[("gen_ai.provider.name", "script")]), 5);
    assert_eq!(count("gen_ai.client.operation.duration", &[("error.type", "invalid_request_error")]), 1);
    assert_eq!(count("gen_ai.client.operation.duration", &[("error.type", "cancelled")]), 1);
    assert_eq!(count("gen_ai.client.operation.time_to_first_chunk", &[]), 4);
    assert_eq!(count("gen_ai.execute_tool.duration", &[("gen_ai.tool.name", "run")]), 1);
    assert_eq!(count("gen_ai.execute_tool.duration", &[("error.type", "tool_error")]), 1);
    assert_eq!(count("gen_ai.invoke_agent.duration", &[("gen_ai.request.model", "script-1")]), 3);
    let input = points(received, "gen_ai.client.token.usage", &[("gen_ai.token.type", "input")]);
    assert_eq!(input.iter().map(|point| point["sum"].as_f64().unwrap()).sum::<f64>(), 200.0);
    let calls = points(received, "gen_ai.invoke_agent.inference_calls", &[]);
    assert_eq!((calls[0]["sum"].as_f64(), calls[0]["max"].as_f64()), (Some(5.0), Some(3.0)));
    // Ours have the names of the catalogue.
    let value = |name: &str, wanted: &[(&str, &str)]| points(received, name, wanted)[0]["asInt"].clone();
    assert_eq!(value("turn.total", &[("status", "failed")]), "1");
    assert_eq!(value("model.request.total", &[("model", "script-1")]), "5");
    assert_eq!(value("extension.tool.total", &[("extension_id", "conformance"), ("outcome", "done")]), "1");
    assert_eq!(value("extension.callback.total", &[("callback_type", "on_plain_text"), ("outcome", "error")]), "1");
    assert_eq!(value("extension.breaker.state", &[]), "0");
    let calls = points(received, "tool.call.duration_ms", &[("tool", "run")]);
    let (bounds, buckets) =
        (calls[0]["explicitBounds"].as_array().unwrap(), calls[0]["bucketCounts"].as_array().unwrap());
    assert_eq!((bounds.len() + 1, calls[0]["count"].as_str()), (buckets.len(), Some("1")));
    for metric in &received.metrics {
        let data = ["sum", "histogram"].into_iter().find_map(|kind| metric.get(kind));
        if let Some(data) = data {
            assert_eq!(data["aggregationTemporality"], "AGGREGATION_TEMPORALITY_CUMULATIVE", "{metric}");
        }
    }
}
