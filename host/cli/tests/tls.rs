//! The certificates of `[serve]` and `[gateway]`, with `openssl s_client` as the client of another TLS library.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_servers::Certificates;

use crate::gateway::running::{Running, TOKEN_A, rest};
use crate::support::script::Model;
use crate::support::{Place, code, err, out};

/// The servers, each with a request that it answers with status 200.
pub(crate) const SERVERS: [(&str, &str, &str); 2] = [
    ("serve", "", "/v1/sessions"),
    ("gateway", "[[gateway.route]]\npath = \"/m\"\nupstream = \"http://127.0.0.1:9\"\n", "/healthz"),
];

/// A workspace with a certificate and the settings of a server that uses it.
pub(crate) fn place(server: &str, more: &str, from: &Certificates) -> Place {
    let place = Place::new();
    place.write(
        "tidegate.toml",
        &format!("[{server}]\ncertificate = \"own.pem\"\ncertificate_key = \"own.key\"\n{more}"),
    );
    install(&place, from);
    place
}

pub(crate) fn install(place: &Place, from: &Certificates) {
    for (name, file) in [("server.pem", "own.pem"), ("server.key", "own.key")] {
        std::fs::copy(from.path(name), place.path(file)).unwrap();
    }
}

pub(crate) fn start(place: &Place, server: &str) -> (Running, String) {
    let running = Running::of(place.command(&[server, "--listen", "127.0.0.1:0"]));
    let port = running.address.strip_prefix("https://127.0.0.1:").unwrap().to_owned();
    (running, port)
}

/// Returns the response to a client that trusts this authority; `None`: it does not trust the server.
fn ask(port: &str, authority: &Path, line: &str, headers: &str) -> Option<String> {
    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-verify_return_error", "-servername", "localhost"]);
    client.args(["-verify_hostname", "localhost", "-connect", &format!("127.0.0.1:{port}"), "-CAfile"]).arg(authority);
    let client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut client = client.unwrap();
    // One that does not trust the server is gone already.
    let request = format!("{line} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n");
    drop(client.stdin.as_mut().unwrap().write_all(request.as_bytes()));
    let (mut response, mut byte) = (Vec::new(), [0]);
    let stdout = client.stdout.as_mut().unwrap();
    while !response.ends_with(b"\r\n\r\n") && stdout.read(&mut byte).unwrap() == 1 {
        response.extend(byte);
    }
    let head = String::from_utf8_lossy(&response).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    stdout.take(length.unwrap_or(0)).read_to_end(&mut response).unwrap();
    drop(client.kill());
    drop(client.wait());
    Some(String::from_utf8(response).unwrap()).filter(|response| !response.is_empty())
}

fn get(port: &str, authority: &Path, path: &str) -> Option<String> {
    ask(port, authority, &format!("GET {path}"), "")
}

#[test]
fn clients_connect_over_tls_and_in_no_other_way() {
    let certificates = Certificates::make().unwrap();
    for (server, more, path) in SERVERS {
        let place = place(server, more, &certificates);
        let (running, port) = start(&place, server);
        let authority = certificates.path("authority.pem");
        let head = get(&port, &authority, path).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{server}: {head}");
        assert_eq!(get(&port, &certificates.path("stranger.pem"), path), None, "{server}");
        let plain = |sent: String| {
            let mut plain = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            plain.write_all(sent.as_bytes()).unwrap();
            rest(&mut plain)
        };
        let head = format!("Host: localhost:{port}\r\nAuthorization: Bearer {TOKEN_A}\r\n");
        for sent in [format!("GET {path} HTTP/1.1\r\n{head}\r\n"), format!("POST {path} HTTP/1.1\r\n{head}")] {
            let answer = plain(sent);
            assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("expects HTTPS"), "{server}: {answer}");
        }
        // Neither HTTP nor TLS.
        let answer = plain("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}".to_owned());
        assert!(!answer.starts_with("HTTP"), "{server}: {answer}");
        drop(running);
    }
}

#[test]
fn only_what_is_not_encrypted_has_a_warning() {
    let certificates = Certificates::make().unwrap();
    for (server, more, _) in SERVERS {
        let token = format!("[[{server}.token]]\nname = \"a\"\nvalue = \"env:A_TOKEN\"\n{more}");
        for is_encrypted in [true, false] {
            let place = place(server, &token, &certificates);
            if !is_encrypted {
                place.write("tidegate.toml", &token);
            }
            let mut command = place.command(&[server, "--listen", "0.0.0.0:0"]);
            command.env("A_TOKEN", TOKEN_A);
            let mut running = Running::of(command);
            running.signal("TERM");
            running.ended();
            assert_eq!(!running.log_has(0, "are not encrypted on their way"), is_encrypted, "{}", running.log());
        }
    }
}

#[test]
fn a_client_that_does_not_begin_tls_does_not_delay_the_end() {
    let certificates = Certificates::make().unwrap();
    for (server, more, path) in SERVERS {
        let more = format!("[{server}.limits]\nclient_timeout_ms = 3600000\n{more}");
        let place = place(server, &more, &certificates);
        let (mut running, port) = start(&place, server);
        let _silent = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        // The silent connection is accepted before this one.
        assert!(get(&port, &certificates.path("authority.pem"), path).is_some());
        running.signal("TERM");
        assert!(running.ended().success());
    }
}

#[test]
fn another_certificate_of_a_running_gateway_counts_at_the_next_start() {
    let certificates = Certificates::make().unwrap();
    let (_, routes, _) = SERVERS[1];
    let place = place("gateway", routes, &certificates);
    let encrypted = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", routes);
    let running = Running::of(place.command(&["gateway", "--listen", "127.0.0.1:0"]));
    place.write("tidegate.toml", &encrypted);
    running.signal("HUP");
    assert!(running.log_has(0, "which counts when the gateway is started again"), "{}", running.log());
}

#[test]
fn a_websocket_is_encrypted_too() {
    let (model, certificates) = (Model::start(), Certificates::make().unwrap());
    let place = place("serve", "", &certificates);
    let settings = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &model.settings(&settings));
    let (_running, port) = start(&place, "serve");
    let authority = certificates.path("authority.pem");
    let headers = "Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"id\": \"a\"}";
    let created = ask(&port, &authority, "POST /v1/sessions", headers).unwrap();
    let id = created.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgraded = ask(&port, &authority, &format!("GET /v1/sessions/{id}/events"), upgrade).unwrap();
    assert!(upgraded.starts_with("HTTP/1.1 101 "), "{upgraded}");
}

#[test]
fn a_renewed_certificate_is_used_and_a_damaged_one_is_not() {
    let [old, new] = [(); 2].map(|()| Certificates::make().unwrap());
    for (server, more, path) in SERVERS {
        let place = place(server, more, &old);
        let (running, port) = start(&place, server);
        let is_served = |by: &Certificates| get(&port, &by.path("authority.pem"), path).is_some();
        assert!(is_served(&old) && !is_served(&new));
        sleep(Duration::from_millis(1_100));
        let from = running.log().len();
        place.write("own.pem", "-----BEGIN CERTIFICATE-----\nMA");
        assert!(is_served(&old), "{server}: {}", running.log());
        assert!(running.log_has(from, "the previous certificate remains in use"), "{server}: {}", running.log());
        // A file that can be used later need not be newer.
        let changed = std::fs::metadata(place.path("own.pem")).unwrap().modified().unwrap();
        install(&place, &new);
        for file in ["own.pem", "own.key"] {
            std::fs::File::options().write(true).open(place.path(file)).unwrap().set_modified(changed).unwrap();
        }
        until(|| is_served(&new), &running);
        assert!(!is_served(&old), "{server}: {}", running.log());
    }
}

pub(crate) fn until(condition: impl Fn() -> bool, running: &Running) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", running.log());
        sleep(Duration::from_millis(50));
    }
}

/// Keeps others from opening the file that it names for 45 seconds, or until it ends: they wait, as for a disk of the network.
const LEASE: &str = "import fcntl, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nfile = open(sys.argv[1], 'r+')\n\
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('leased', flush=True)\nsys.stdin.read()\n";

#[test]
fn a_disk_that_does_not_answer_stops_no_connection() {
    let [old, new] = [(); 2].map(|()| Certificates::make().unwrap());
    for (server, more, path) in SERVERS {
        let place = place(server, more, &old);
        // Where files are on top of others, as in a container, nobody gets a lease.
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::rename(place.path("own.pem"), place.path("old.pem")).unwrap();
        std::fs::copy(place.path("old.pem"), memory.path().join("own.pem")).unwrap();
        std::os::unix::fs::symlink(memory.path().join("own.pem"), place.path("own.pem")).unwrap();
        let (mut running, port) = start(&place, server);
        let mut lease = Command::new("python3");
        lease.args(["-c", LEASE]).arg(place.path("own.pem")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut lease = lease.spawn().unwrap();
        lease.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        // Both files are read.
        std::fs::copy(new.path("server.key"), place.path("own.key")).unwrap();
        sleep(Duration::from_millis(1_500));
        let begun = Instant::now();
        // More than the program has threads.
        for _ in 0..8 {
            assert!(get(&port, &old.path("authority.pem"), path).is_some(), "{server}: {}", running.log());
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{server}: {:?}", begun.elapsed());
        lease.kill().unwrap();
        lease.wait().unwrap();
        install(&place, &new);
        until(|| get(&port, &new.path("authority.pem"), path).is_some(), &running);
        running.signal("TERM");
        assert!(running.ended().success(), "{server}: {}", running.log());
    }
}

#[test]
fn what_cannot_be_used_is_said_before_it_begins() {
    let certificates = Certificates::make().unwrap();
    let key = std::fs::read_to_string(certificates.path("server.key")).unwrap();
    let cut = key.replace("-----END PRIVATE KEY-----", "");
    let pipe = |place: &Place| {
        std::fs::remove_file(place.path("own.pem")).unwrap();
        assert!(Command::new("mkfifo").arg(place.path("own.pem")).status().unwrap().success());
    };
    type Change<'a> = &'a dyn Fn(&Place);
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let cases: [(Change<'_>, u32, &str); 9] = [
        (
            &|place| std::fs::remove_file(place.path("own.pem")).unwrap(),
            2,
            "the certificate of the server cannot be read from",
        ),
        (&|place| place.write("own.pem", &key), 2, "it contains no certificate in PEM"),
        (&|place| place.write("own.key", ""), 3, "it contains no private key in PEM"),
        (&|place| place.write("own.key", &cut), 3, "cannot be read from"),
        (&|place| place.write("own.key", &encrypted), 3, "it is encrypted"),
        (&pipe, 2, "it is not a regular file of at most 1 MiB"),
        (
            &|place| assert!(std::fs::copy(certificates.path("client.key"), place.path("own.key")).is_ok()),
            3,
            "the key is that of another certificate",
        ),
        (
            &|place| place.write("own.pem", "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"),
            2,
            "the certificate of the server cannot be read from",
        ),
        (
            &|place| place.write("own.key", "-----BEGIN PRIVATE KEY-----\nMAMCAQE=\n-----END PRIVATE KEY-----\n"),
            3,
            "TLS cannot use the key",
        ),
    ];
    for (server, more, _) in SERVERS {
        for (change, line, expected) in &cases {
            let place = place(server, more, &certificates);
            change(&place);
            let output = place.run(&[server, "--listen", "127.0.0.1:0"]);
            assert_eq!(code(&output), 2, "{}", err(&output));
            assert!(err(&output).contains(expected), "{expected}: {}", err(&output));
            assert!(err(&output).contains(&format!("tidegate.toml:{line}:")), "{}", err(&output));
            let doctor = place.run(&["doctor"]);
            let line = format!("fail certificate of [{server}]: ");
            assert!(out(&doctor).contains(&line) && out(&doctor).contains(expected), "{}", out(&doctor));
            let secret = key.lines().nth(1).unwrap();
            assert!(!err(&output).contains(secret), "{}", err(&output));
        }
        let place_of_files = place(server, more, &certificates);
        let shown = out(&place_of_files.run(&["config", "show"]));
        assert!(shown.contains("own.pem") && shown.contains("own.key"), "{shown}");
        let good = place_of_files.run(&["doctor"]);
        assert!(out(&good).contains(&format!("ok   certificate of [{server}]: ")), "{}", out(&good));
        for (set, missing) in [("certificate", "certificate_key"), ("certificate_key", "certificate")] {
            let place = Place::new();
            place.write("tidegate.toml", &format!("[{server}]\n{set} = \"own.pem\"\n{more}"));
            let output = place.run(&[server, "--listen", "127.0.0.1:0"]);
            assert_eq!(code(&output), 2, "{}", err(&output));
            assert!(err(&output).contains(&format!("`{set}` has no effect without `{missing}`")), "{}", err(&output));
        }
    }
}
