//! Where no rule fires, both sides get the same bytes: requests, answers and their heads, through the program.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tidegate_servers::ensure_judge;

use super::raw::{Client, Cut, Guard, Random, upstream};
use super::source;
use crate::support::Place;

/// The number of shapes for each of the three wire formats. Nightly runs multiply it by `TIDEGATE_TIMES`.
const SHAPES: usize = 500;

struct Shape {
    path: &'static str,
    status: u64,
    content_type: String,
    body: Vec<u8>,
    /// The gateway has to end it instead of passing it on.
    is_wild: bool,
}

fn shapes() -> Vec<Shape> {
    let times = std::env::var("TIDEGATE_TIMES").map_or(1, |times| times.parse().unwrap());
    let python = ensure_judge().unwrap().join("bin/python");
    let mut command = Command::new(python);
    let output =
        command.arg(source("shapes.py")).args([(SHAPES * times).to_string(), "1".to_owned()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(shape).collect()
}

fn shape(line: &str) -> Shape {
    let line: Value = serde_json::from_str(line).unwrap();
    let path = match line["wire"].as_str().unwrap() {
        "anthropic" => "/v1/messages?beta=true",
        "openai-chat" => "/v1/chat/completions",
        _ => "/v1/responses",
    };
    let body = line["body"].as_str().unwrap();
    let body = (0..body.len() / 2).map(|at| u8::from_str_radix(&body[at * 2..at * 2 + 2], 16).unwrap()).collect();
    Shape {
        path,
        status: line["status"].as_u64().unwrap(),
        content_type: line["content_type"].as_str().unwrap().to_owned(),
        body,
        is_wild: line["is_wild"].as_bool().unwrap(),
    }
}

/// Returns the body of a request: JSON in unusual notation, sometimes large, and sometimes no JSON at all.
fn request(number: usize) -> Vec<u8> {
    let mut random = Random(number as u64 + 7);
    let mut body = format!(
        "\u{20}{{ \"model\": \"m\",\r\n\"n\" : 1.0, \"big\": 123456789012345678901234567890, \"stream\":true, \"a\":1, \"a\":2, \"messages\": [{{\"role\":\"user\", \"content\": \"\\u00e9 {number}"
    );
    if number.is_multiple_of(50) {
        body += &"word ".repeat(200_000);
    }
    body += "\"}]} \n";
    let mut body = body.into_bytes();
    if number.is_multiple_of(7) {
        body.extend((0..random.below(3000)).map(|_| random.below(256) as u8).collect::<Vec<_>>());
    }
    body
}

/// Requests every shape in every segmentation, on two connections at a time; returns the differences.
fn differences(guard: SocketAddr, asked: &[(usize, Cut)], shapes: &Arc<Vec<Shape>>) -> Vec<String> {
    let found = Mutex::new(Vec::new());
    let problems = &found;
    std::thread::scope(|scope| {
        for half in asked.chunks(asked.len().div_ceil(2)) {
            scope.spawn(move || {
                let mut client = Client::connect(guard);
                for (number, cut) in half {
                    let (shape, body) = (&shapes[*number], request(*number));
                    let headers =
                        format!("x-shape: {number} {cut:?}\r\nx-twice: 1\r\nx-twice: 2\r\nanthropic-beta: a,b\r\n");
                    let problem = match client.ask(shape.path, &headers, &body) {
                        Err(error) => Some(format!("{error}")),
                        Ok(answer) => {
                            let is_same = u64::from(answer.status) == shape.status
                                && answer.header("content-type") == shape.content_type
                                && answer.header("x-request-id") == "req_1"
                                && answer.head.matches("x-limit: ").count() == 2
                                && answer.header("x-problem").is_empty();
                            let at = answer.body.iter().zip(&shape.body).take_while(|(a, b)| a == b).count();
                            let is_same = is_same && at == answer.body.len() && at == shape.body.len();
                            let around = |bytes: &[u8]| {
                                let part = &bytes[at.saturating_sub(40).min(bytes.len())..(at + 160).min(bytes.len())];
                                String::from_utf8_lossy(part).into_owned()
                            };
                            (!is_same).then(|| {
                                format!(
                                    "at {at}\n  {:?}\n  {:?}\n{}",
                                    around(&shape.body),
                                    around(&answer.body),
                                    answer.head
                                )
                            })
                        }
                    };
                    if let Some(problem) = problem {
                        problems.lock().unwrap().push(format!("shape {number} {cut:?}: {problem}"));
                        client = Client::connect(guard);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Returns the upstream of all shapes. It reports a request whose body is not the one that was sent.
fn provider(shapes: &Arc<Vec<Shape>>) -> SocketAddr {
    let shapes = Arc::clone(shapes);
    upstream(move |received, stream| {
        let (number, cut) = received.header("x-shape").split_once(' ').unwrap();
        let number: usize = number.parse().unwrap();
        let cut = Cut::ALL.into_iter().find(|one| format!("{one:?}") == cut).unwrap();
        let cut = if matches!(cut, Cut::Random(_)) { Cut::Random(number as u64 * 2 + 1) } else { cut };
        let shape = &shapes[number];
        let is_same = received.body == request(number)
            && received.head.matches("x-twice: ").count() == 2
            && received.header("anthropic-beta") == "a,b";
        let problem = if is_same { "" } else { "x-problem: the request is another one\r\n" };
        let head = format!(
            "HTTP/1.1 {} Some\r\ncontent-type: {}\r\nx-request-id: req_1\r\nx-limit: 1\r\nx-limit: 2\r\n{problem}",
            shape.status, shape.content_type
        );
        cut.write(&head, &shape.body, stream)
    })
}

fn same(place: &Place, with_wild: bool) {
    let shapes = Arc::new(shapes());
    let guard = Guard::start(place, provider(&shapes));
    let numbers = (0..shapes.len()).filter(|number| with_wild || !shapes[*number].is_wild);
    let asked: Vec<(usize, Cut)> = numbers.flat_map(|number| Cut::ALL.map(|cut| (number, cut))).collect();
    let found = differences(guard.address, &asked, &shapes);
    let report = guard.finish();
    assert!(
        found.is_empty(),
        "{} of {}: {}\n{report}",
        found.len(),
        asked.len(),
        found[..found.len().min(8)].join("\n")
    );
    assert!(!report.contains("was ended") && !report.contains("stopped"), "{report}");
}

#[test]
fn without_rules_every_shape_passes_as_it_is() {
    let place = Place::new();
    place.write("tidegate.toml", "[rules]\nenabled = false\n");
    same(&place, true);
}

#[test]
fn with_200_rules_that_do_not_match_every_shape_passes_as_it_is() {
    let place = Place::new();
    for number in 0..200 {
        let scope = ["[\"text\", \"thinking\", \"tool\"]", "\"text\"", "\"tool\"", "\"thinking\""][number % 4];
        let rule = format!("+++\ncondition = '(?i)§{number}\\w{{2,9}}\\s+[a-z]+'\nscope = {scope}\n+++\nNever.\n");
        place.write(&format!(".tidegate/rules/rule-{number}.md"), &rule);
    }
    place.write("tidegate.toml", "[rules]\nbuiltin_rules = false\n");
    same(&place, false);
}
