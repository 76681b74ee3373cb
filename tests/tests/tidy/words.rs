//! Words that belong to one crate or to none: paths of a developer's machine, addresses of registries, names of
//! vendors and engines outside the crate that owns them.

use crate::tree::{File, files};
use crate::{bites, hold};

/// Words that no file may hold. Put together here, so that this file does not hold them.
const NOWHERE: [&str; 11] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/main"),
    concat!("/wo", "rk/shared"),
    concat!("/tmp/t", "-"),
    concat!("registry.npm", "js"),
    concat!("py", "pi.org"),
    concat!("pythonhos", "ted"),
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
];

/// What cargo writes into each lock file (it names an index, not an address to fetch from), and the home that samples use.
const ALLOWED: [&str; 2] =
    [concat!("registry+https://github.com/rust-lang/crates", ".io-index"), concat!("\"/ho", "me/me\"")];

/// Words of the host's sources and the one crate that is allowed to use them.
const OWNED: [(&str, &str); 9] = [
    ("wasmtime::", "host/sandbox/"),
    ("reqwest::", "host/net/"),
    ("anthropic-version", "host/providers/"),
    ("chat/completions", "host/wire/"),
    ("redis::", "host/store/"),
    ("redb::", "host/store/"),
    ("hyper::", "host/telemetry/"),
    ("std::io::stdout", "host/cli/"),
    ("clap::", "host/cli/"),
];

/// Exceptions from [`OWNED`]: the words of lists are values of flags, behind a feature that only `cli` switches on; two modules send requests
/// with the client of `net`; servers of tests answer where requests go, and the doctor of the gateway asks as a client does; standard output is the connection of a protocol, which nothing is printed to.
const ALSO: [(&str, &str); 14] = [
    ("anthropic-version", "host/cli/tests/gateway/"),
    ("anthropic-version", "host/serve/src/gateway/doctor.rs"),
    ("chat/completions", "host/cli/tests/guard/"),
    ("chat/completions", "host/providers/tests/"),
    ("chat/completions", "host/serve/src/gateway/"),
    ("clap::", "host/flow/src/words.rs"),
    ("reqwest::", "host/telemetry/src/otel/http.rs"),
    ("reqwest::", "host/providers/src/http.rs"),
    ("std::io::stdout", "host/serve/src/acp/sdk.rs"),
    ("reqwest::", "host/serve/src/gateway/"),
    ("reqwest::", "host/serve/src/http/peers.rs"),
    ("hyper::", "host/serve/src/gateway/"),
    ("hyper::", "host/serve/src/http/"),
    ("hyper::", "host/serve/src/inbound/"),
];

/// Rooms whose code is bound by [`OWNED`]; tests and benches may compare with anything.
const ROOMS: [&str; 2] = ["host/", "rules/"];

fn nowhere(files: &[File]) -> (usize, Vec<String>) {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            let line = ALLOWED.iter().fold(line.to_owned(), |line, allowed| line.replace(allowed, ""));
            let bad = NOWHERE.iter().filter(|word| line.contains(**word));
            findings.extend(bad.map(|word| format!("{}:{} holds {word}", file.path, number + 1)));
        }
    }
    (files.len(), findings)
}

fn owned(files: &[File]) -> (usize, Vec<String>) {
    let inside = |file: &&File| file.is_rust() && ROOMS.iter().any(|room| file.path.starts_with(room));
    let mut findings = Vec::new();
    for file in files.iter().filter(inside) {
        let code = file.text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.flat_map(|line| [line, "\n"]).collect();
        let bad = OWNED.iter().filter(|(word, owner)| !file.path.starts_with(owner) && code.contains(word));
        let is_also = |word: &str| ALSO.iter().any(|(also, path)| *also == word && file.path.starts_with(path));
        let bad = bad.filter(|(word, _)| !is_also(word));
        findings.extend(bad.map(|(word, owner)| format!("{} names {word}, which belongs to {owner}", file.path)));
    }
    (files.iter().filter(inside).count(), findings)
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    let (read, findings) = nowhere(&files());
    hold("machines and registries", read, 100, &findings);
}

#[test]
fn each_outside_thing_has_one_room() {
    let (read, findings) = owned(&files());
    hold("owned words", read, 60, &findings);
}

#[test]
fn words_are_found() {
    let lock = format!("\"resolved\": \"https://{}.org/x.tgz\"", concat!("registry.npm", "js"));
    bites(&nowhere(&[File::sample("package-lock.json", &lock)]).1, "package-lock.json:1");
    bites(&nowhere(&[File::sample("a.md", &format!("ok\nsee {}me\n", concat!("/ho", "me/")))]).1, "a.md:2");
    assert!(nowhere(&[File::sample("Cargo.lock", &format!("source = \"{}\"", ALLOWED[0]))]).1.is_empty());
    bites(&owned(&[File::sample("host/turn/src/a.rs", "use wasmtime::Engine;")]).1, "belongs to host/sandbox/");
    assert!(owned(&[File::sample("host/turn/src/a.rs", "// as wasmtime::Engine does")]).1.is_empty());
}
