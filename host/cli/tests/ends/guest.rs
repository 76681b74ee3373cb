//! Plugins that do not return, and a store of their state that does not answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_servers::{RedisServer, ensure_redis};

use super::provider::{Provider, Reply};
use super::run::{ENDS, End, OUTPUTS, recorded};
use super::started::Started;
use crate::support::{Place, code};

/// A workspace with the guest that does what its input says.
fn place(provider: &Provider, callbacks: &str, more: &str) -> Place {
    let (place, plugin) = Place::with_guest();
    let only = format!("[plugin.settings]\nonly = [{callbacks}]\n{more}");
    place.write("op.toml", &format!("{}{plugin}{only}", provider.settings()));
    place
}

/// A callback that does not return, of a plugin that is allowed to take as long as it likes.
#[test]
fn a_plugin_that_loops_keeps_no_program() {
    for end in ENDS {
        let provider = Provider::start(&[Reply::Text("Done.")]);
        let limits = "[plugin.limits]\ncallback_ms = 600_000\nturn_ms = 600_000\n";
        let place = place(&provider, "\"on_input_messages\"", limits);
        let arguments = ["run", "!loop", "--config", "op.toml", "--output", "stream-json"];
        let (started, output) = Started::unread(&mut place.command(&arguments));
        let mut lines = BufReader::new(output).lines();
        if !lines.any(|line| line.unwrap().contains("\"turn_start\"")) {
            panic!("no turn begins: {:?}", started.ended("a turn"));
        }
        // The callback runs a moment later; what is to be seen is the same before and after that.
        std::thread::sleep(Duration::from_millis(300));
        let what = format!("a plugin that loops, {end:?}");
        match end {
            End::Signal(name) => started.signal(name),
            End::Output => drop(lines),
        }
        let ended = started.ended(&what);
        assert_eq!(ended.code, end.code(), "{what}: {ended:?}");
        recorded(&what, &place);
    }
}

/// What goes between the program and a server, until it is frozen: then nothing gets an answer, and no connection ends.
struct Freezing {
    url: String,
    is_frozen: Arc<AtomicBool>,
}

impl Freezing {
    fn before(server: &RedisServer) -> Self {
        let to = server.url().trim_start_matches("redis://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let is_frozen = Arc::new(AtomicBool::new(false));
        let frozen = Arc::clone(&is_frozen);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&to).unwrap();
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                for (from, to) in [(client, server), back] {
                    let frozen = Arc::clone(&frozen);
                    std::thread::spawn(move || pass(from, to, &frozen));
                }
            }
        });
        Self { url, is_frozen }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_frozen: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if is_frozen.load(Ordering::SeqCst) {
            // Both connections stay open.
            std::mem::forget((from, to));
            return;
        }
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// What a plugin has written cannot be saved, which is said; the program ends all the same.
#[test]
fn a_store_that_does_not_answer_keeps_no_program() {
    ensure_redis().unwrap();
    let server = RedisServer::start().unwrap();
    for (number, (end, output)) in ENDS.iter().flat_map(|end| OUTPUTS.map(|output| (*end, output))).enumerate() {
        let store = Freezing::before(&server);
        let provider = Provider::start(&[Reply::Begun("Well, ")]);
        let place = place(&provider, "\"on_input_messages\", \"on_plain_text\"", "");
        let file = std::fs::read_to_string(place.path("op.toml")).unwrap();
        place.write("op.toml", &format!("{file}[state]\nbackend = \"redis\"\n"));
        let arguments = [
            "run",
            "!state-must-set a 1",
            "--config",
            "op.toml",
            "--output",
            output,
            "--session",
            &format!("s{number}"),
        ];
        let what = format!("a store that does not answer, {end:?}, {output}");
        let mut command = place.command(&arguments);
        command.env("TIDEGATE_REDIS_URL", &store.url);
        let (started, unread) = match end {
            End::Output => {
                let (started, unread) = Started::unread(&mut command);
                (started, Some(unread))
            }
            End::Signal(_) => (Started::of(command.stdin(Stdio::null()).stdout(Stdio::piped())), None),
        };
        provider.is_asked(1);
        store.is_frozen.store(true, Ordering::SeqCst);
        match end {
            End::Signal(name) => started.signal(name),
            End::Output => drop(unread),
        }
        let ended = started.ended(&what);
        // What a plugin keeps is lost, which counts where the end itself is no failure.
        assert_eq!(ended.code, Some(if end == End::Output { 1 } else { 130 }), "{what}: {ended:?}");
        let lost = "is lost as far as it was not saved before";
        assert!(ended.err.contains(lost) || ended.out.contains(lost), "{what}: {ended:?}");
        let shown = place.run(&["session", "list", "--all", "--config", "op.toml"]);
        assert_eq!(code(&shown), 0, "{shown:?}");
    }
}
