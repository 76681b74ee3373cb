//! Proxies and certificates of the environment, with real proxies and a server that only they can find: what is named is used, and what
//! cannot be used is an error and never a request without it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Output;

use tidegate_servers::{BEHIND, ProxyServers, free_port};

use crate::support::Place;

/// Runs the program with a prompt for this server, and these variables in place of those of the tests.
fn run(place: &Place, base_url: &str, variables: &[(&str, &str)]) -> Output {
    run_with(&["run", "hi"], place, base_url, variables)
}

fn run_with(arguments: &[&str], place: &Place, base_url: &str, variables: &[(&str, &str)]) -> Output {
    let file = format!(
        "[provider]\nkind = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{base_url}\"\nconnect_timeout_ms = 5000\nidle_timeout_ms = 5000\n"
    );
    place.write("user/tidegate/tidegate.toml", &file);
    let config = place.path("user/tidegate/tidegate.toml").display().to_string();
    let errors = "schema_version = \"1.0.0\"\n[retry.transient]\nmax_retries = 0\n";
    place.write("user/tidegate/errors.toml", errors);
    let mut command = place.command(&[&["--config", &config], arguments].concat());
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"] {
        command.env_remove(name).env_remove(name.to_ascii_uppercase());
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn every_kind_of_proxy_is_used() {
    let servers = ProxyServers::start().unwrap();
    let place = Place::new();
    let port = |part: &str| servers.port(part).unwrap();
    let (tls, plain) = (format!("https://{BEHIND}:{}", port("tls")), format!("http://{BEHIND}:{}", port("plain")));
    let authority = ("SSL_CERT_FILE", servers.authority().unwrap());
    let (http, socks) =
        (format!("http://127.0.0.1:{}", port("proxy")), format!("socks5h://127.0.0.1:{}", port("proxy")));
    // Before one with a password: it remembers who has named it.
    let guarded = format!("http://127.0.0.1:{}", port("guarded"));
    for (url, variable) in [(&tls, "HTTPS_PROXY"), (&plain, "HTTP_PROXY")] {
        let output = run(&place, url, &[authority, (variable, &guarded)]);
        assert!(!output.status.success() && said(&output).contains("a user and a password"), "{}", said(&output));
    }
    let with_password = format!("http://user:pass-word-1@127.0.0.1:{}", port("guarded"));
    let behind_tls = format!("https://localhost:{}", port("behind_tls"));
    let mut expected = servers.connected().unwrap();
    for proxy in [&http, &socks, &with_password, &behind_tls] {
        for (url, variable) in
            [(&tls, "HTTPS_PROXY"), (&tls, "https_proxy"), (&plain, "HTTP_PROXY"), (&plain, "ALL_PROXY")]
        {
            let output = run(&place, url, &[authority, (variable, proxy)]);
            assert!(said(&output).contains("Reached."), "{proxy} {url}: {}", said(&output));
            expected += 1;
            assert_eq!(servers.connected().unwrap(), expected, "{proxy} {url}");
        }
    }
    let doctor = said(&run_with(&["doctor"], &place, &tls, &[authority, ("ALL_PROXY", &with_password)]));
    let place_and_proxy = format!("{tls} through the proxy {guarded} (ALL_PROXY) answers and knows m");
    assert!(doctor.contains(&place_and_proxy) && !doctor.contains("pass-word-1"), "{doctor}");
    expected += 1;
    // Without a proxy the name means nothing, and with `NO_PROXY` there is none.
    for variables in [vec![authority], vec![authority, ("HTTPS_PROXY", &http), ("NO_PROXY", "other.example, .example")]]
    {
        let output = run(&place, &tls, &variables);
        assert!(!output.status.success() && said(&output).contains("cannot connect"), "{}", said(&output));
        assert_eq!(servers.connected().unwrap(), expected);
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_an_error() {
    let servers = ProxyServers::start().unwrap();
    let place = Place::new();
    // Addresses of this machine need no proxy; a variable that cannot be used is wrong all the same.
    let url = format!("http://127.0.0.1:{}", servers.port("plain").unwrap());
    assert!(said(&run(&place, &url, &[])).contains("Reached."));
    for (variable, value) in [
        ("HTTPS_PROXY", "htp://user:pass-word-1@proxy:1"),
        ("HTTP_PROXY", "http://user:pass-word-1@proxy:port"),
        ("ALL_PROXY", "socks4://proxy:1"),
        ("NO_PROXY", "127.*"),
    ] {
        let output = run(&place, &url, &[(variable, value)]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(variable) && !said(&output).contains("pass-word-1"), "{}", said(&output));
        let doctor = run_with(&["doctor"], &place, &url, &[(variable, value)]);
        assert_eq!(doctor.status.code(), Some(1), "{}", said(&doctor));
        assert!(
            said(&doctor).contains(&format!("fail provider: the environment variable {variable}")),
            "{}",
            said(&doctor)
        );
    }
    // A proxy that is not there is named, with its variable and without its password.
    let nobody = format!("http://user:pass-word-1@127.0.0.1:{}", free_port().unwrap());
    let output = run(&place, &format!("https://{BEHIND}"), &[("HTTPS_PROXY", &nobody)]);
    let said = said(&output);
    assert!(!output.status.success() && said.contains("through the proxy http://127.0.0.1:"), "{said}");
    assert!(said.contains("(HTTPS_PROXY)") && !said.contains("pass-word-1"), "{said}");
    assert_eq!(servers.connected().unwrap(), 0);
}

#[test]
fn certificates_that_cannot_be_used_are_an_error() {
    let servers = ProxyServers::start().unwrap();
    let place = Place::new();
    let url = format!("https://localhost:{}", servers.port("tls").unwrap());
    let authority = servers.authority().unwrap();
    assert!(said(&run(&place, &url, &[("SSL_CERT_FILE", authority)])).contains("Reached."));
    place.write("folder/authority.pem", &std::fs::read_to_string(authority).unwrap());
    let folder = place.path("folder").display().to_string();
    assert!(said(&run(&place, &url, &[("SSL_CERT_DIR", &folder)])).contains("Reached."));
    place.write("empty.pem", "");
    place.write("damaged.pem", "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n");
    for (name, expected) in
        [("missing.pem", "cannot be read"), ("empty.pem", "no certificate"), ("damaged.pem", "invalid")]
    {
        let path = place.path(name).display().to_string();
        for variables in
            [vec![("SSL_CERT_FILE", path.as_str())], vec![("SSL_CERT_FILE", &path), ("SSL_CERT_DIR", &folder)]]
        {
            let output = run(&place, &url, &variables);
            let said = said(&output);
            assert!(
                !output.status.success() && said.contains("SSL_CERT_FILE") && said.contains(expected),
                "{name}: {said}"
            );
        }
    }
    // Those of the machine do not know the authority.
    let output = run(&place, &url, &[]);
    assert!(!output.status.success() && said(&output).to_lowercase().contains("certificate"), "{}", said(&output));
}
