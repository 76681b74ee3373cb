//! Keys in the environment of the program: it uses them, and commands of the model do not find them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::support::{Place, Say, code, err, recording};

/// A place where the model runs one command.
fn place(command: &str, settings: &str) -> Place {
    let place = Place::new();
    let call = json!({"command": command}).to_string();
    place.write("answers.jsonl", &recording(&[&[Say::Call("shell", &call)], &[Say::Text("Done.")]]));
    let permission = "[tools.permission]\nshell = \"allow\"\n";
    place.write(
        "tidegate.toml",
        &format!("[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n{permission}{settings}"),
    );
    place
}

fn read(place: &Place, name: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(place.path(name)).unwrap()).into_owned()
}

/// The command reads what the system shows of the process that started it, which a superuser can, and a variable that the operator names.
#[cfg(target_os = "linux")]
#[test]
fn keys_are_not_in_the_environment_that_others_see() {
    let command =
        "tr '\\0' '\\n' < /proc/$PPID/environ > seen.txt 2>&1; echo \"$DEPLOY_TOKEN\" > named.txt; env > got.txt";
    let place = place(command, "[tools.shell]\nenv = [\"DEPLOY_TOKEN\"]\n");
    let mut program = place.command(&["run", "-"]);
    program.env("OPENAI_API_KEY", "sk-test-000000000000000000").env("DEPLOY_TOKEN", "two\nlines").env("PLAIN", "x");
    // The prompt comes from standard input, which arrives although the program starts itself again.
    let output = with_input(program, "Go.");
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(!err(&output).contains("warning"), "{}", err(&output));
    let seen = read(&place, "seen.txt");
    assert!(!seen.contains("sk-test") && !seen.contains("two"), "{seen}");
    assert_eq!(read(&place, "named.txt"), "two\nlines\n");
    let got = read(&place, "got.txt");
    assert!(!got.contains("sk-test") && !got.contains("PLAIN") && !got.contains("TIDEGATE"), "{got}");
}

/// A variable whose value looks like a key is taken out of the environment, and is read nevertheless.
#[test]
fn settings_of_the_environment_count_whatever_they_contain() {
    let place = place("true", "");
    let key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWx-AAAA";
    for arguments in [&["run", "Go."][..], &["doctor"]] {
        let mut program = place.command(arguments);
        let output = program.env("TIDEGATE_SETTINGS", format!("nonsense = \"{key}\"")).output().unwrap();
        assert_eq!(code(&output), 2, "{}", err(&output));
        assert!(err(&output).contains("TIDEGATE_SETTINGS:1:1"), "{}", err(&output));
    }
}

/// Without the rights of a superuser, a command reads the environment of another process, and not that of the program.
#[cfg(target_os = "linux")]
#[test]
fn others_of_the_same_user_cannot_read_the_process() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    let command = "cat /proc/$PPID/environ > program.txt 2>&1; echo $? > program.code; \
                   sleep 60 & cat /proc/$!/environ > child.txt 2>&1; echo $? > child.code";
    let place = place(command, "");
    let mut program = place.command(&["run", "Go."]);
    if is_root {
        let mut without_rights = std::process::Command::new("setpriv");
        without_rights
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(program.get_program())
            .args(program.get_args());
        for (name, value) in program.get_envs() {
            without_rights.env(name, value.unwrap());
        }
        without_rights.current_dir(program.get_current_dir().unwrap());
        program = without_rights;
    }
    // Named so that it is not taken out of the environment.
    let output = program.env("MY_MODEL", "unsuspicious").output().unwrap();
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert_eq!(read(&place, "child.code"), "0\n", "{}", read(&place, "child.txt"));
    assert_ne!(read(&place, "program.code"), "0\n", "{}", read(&place, "program.txt"));
    assert!(!read(&place, "program.txt").contains("unsuspicious"));
}

#[test]
fn the_provider_gets_its_key() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let provider = format!(
        "[provider]\nkind = \"openai-chat\"\nmodel = \"m\"\nbase_url = \"{url}\"\napi_key_env = \"MY_PROVIDER_TOKEN\"\n"
    );
    place.write("tidegate.toml", &provider);
    let mut program = place.command(&["run", "Go."]);
    let mut running =
        program.env("MY_PROVIDER_TOKEN", "key-of-the-test").stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (mut connection, _) = server.accept().unwrap();
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.contains("authorization: bearer key-of-the-test"), "{head}");
    connection.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    drop(connection);
    assert_eq!(running.wait().unwrap().code(), Some(1));
}

fn with_input(mut program: std::process::Command, input: &str) -> std::process::Output {
    use std::process::Stdio;
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}
