//! A gateway whose workspace has a file that changes while it runs.

use std::time::Duration;

use super::place::Repository;
use crate::gateway::model::Model;
use crate::gateway::running::Running;
use crate::support::code;

/// Returns the status of a request with a body between 1 and 2 MiB, and that of the gateway.
fn asked(running: &Running) -> (u16, bool) {
    std::thread::sleep(Duration::from_millis(300));
    let status = running.ask("POST", "/a", &[], &"x".repeat(3 << 19)).status;
    (status, running.ask("GET", "/healthz", &[], "").body.contains("degraded"))
}

fn limit(mib: u32) -> String {
    format!("[gateway.limits]\nbody_mib = {mib}\n")
}

/// A command of the guarded model can change the file: what it asked for, such as a plugin that masks, stays in force until a user trusts the
/// change.
#[test]
fn a_changed_file_is_not_served_before_it_is_trusted() {
    let model = Model::start();
    let place = Repository::new(&limit(1));
    let route = format!("[[gateway.route]]\npath = \"/\"\nupstream = \"{}\"\n", model.url);
    place.write("config/tidegate/tidegate.toml", &route);
    let serve = ["gateway", "--listen", "127.0.0.1:0"];
    assert_eq!(asked(&Running::of(place.command(&serve))), (200, false), "a file that nobody has trusted");
    assert_eq!(code(&place.run(&["trust"])), 0);
    let running = Running::of(place.command(&serve));
    assert_eq!(asked(&running), (413, false));
    for file in [limit(4), String::new(), "[tools.permission]\nshell = \"deny\"\n".to_owned()] {
        place.write("repo/tidegate.toml", &file);
        assert_eq!(asked(&running), (413, true), "{file}: {}", running.log());
    }
    assert!(
        running.log().contains("is not trusted as it is now") && running.log().contains("any more"),
        "{}",
        running.log()
    );
    std::fs::remove_file(place.path("repo/tidegate.toml")).unwrap();
    assert_eq!(asked(&running), (413, true), "{}", running.log());
    place.write("repo/tidegate.toml", &limit(2));
    assert_eq!(code(&place.run(&["trust"])), 0);
    running.signal("HUP");
    assert_eq!(asked(&running), (200, false), "{}", running.log());
}

/// The certificates that a route trusts are part of what is trusted.
#[test]
fn certificates_are_trusted_with_the_file() {
    let route = "[[gateway.route]]\npath = \"/a\"\nupstream = \"https://api.example\"\nca = \"ca.pem\"\n";
    let place = Repository::new(&format!(
        "{route}rules = [\"one\"]\nplugins = [\"two\"]\n[gateway]\nwithout_store = \"local\"\nconversation_header = \"x-a\"\n"
    ));
    let request = || {
        let shown = place.run(&["run", "hi"]);
        (code(&shown), String::from_utf8_lossy(&shown.stderr).into_owned())
    };
    place.write("repo/ca.pem", "one");
    let (_, shown) = request();
    for words in [
        "trusts a server with these certificates",
        "only these rules, and required ones",
        "only these plugins, and required ones",
        "while budgets and masks cannot be read",
        "whose budgets and masks a request has",
        "SHA-256 of its content",
    ] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let untrusted = || request().1.contains("config-untrusted");
    assert!(untrusted());
    assert_eq!(code(&place.run(&["trust"])), 0);
    assert!(!untrusted(), "{}", request().1);
    place.write("repo/ca.pem", "another");
    assert!(untrusted());
}

/// The files of the connection to the store are part of what is trusted.
#[test]
fn files_of_the_store_are_trusted_with_the_file() {
    let place = Repository::new(
        "[state]\nbackend = \"redis\"\nuser = \"me\"\npassword = \"env:REDIS_PASSWORD\"\nca = \"ca.pem\"\n\
         certificate = \"own.pem\"\ncertificate_key = \"own.key\"\n",
    );
    let shown = || String::from_utf8_lossy(&place.run(&["run", "hi"]).stderr).into_owned();
    let files = ["ca.pem", "own.pem", "own.key"];
    files.iter().for_each(|file| place.write(&format!("repo/{file}"), "one"));
    let first = shown();
    for words in [
        "state.ca, SHA-256 of its content",
        "state.certificate, SHA-256 of its content",
        "state.certificate_key, SHA-256 of its content",
        "the certificate with which this machine identifies itself to that server",
        "the user as whom that server is used",
    ] {
        assert!(first.contains(words), "{words} is not in {first}");
    }
    for file in files {
        assert_eq!(code(&place.run(&["trust"])), 0);
        assert!(!shown().contains("config-untrusted"), "{file}: {}", shown());
        place.write(&format!("repo/{file}"), &format!("another {file}"));
        assert!(shown().contains("config-untrusted"), "{file}: {}", shown());
    }
}
