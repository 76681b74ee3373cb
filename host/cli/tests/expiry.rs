//! The time in which a certificate of `[serve]` and `[gateway]` is valid, where operators see it: health, metrics, log and doctor.

use std::process::Command;

use serde_json::Value;
use tidegate_servers::Certificates;

use crate::gateway::running::Running;
use crate::support::{Place, out};
use crate::tls::{SERVERS, install, place, start, until};

/// Times of a certificate, the word of `/healthz`, and what the log and doctor have.
const CASES: [(&str, &str, &str, &str); 4] = [
    ("-2 days", "+20 days", "ok", ""),
    ("-80 days", "+10 days", "expires_soon", "it expires on"),
    ("-90 days", "-1 day", "expired", "it expired on"),
    ("+1 day", "+90 days", "not_yet_valid", "it is valid from"),
];

/// Returns a response without a check of the certificate.
fn read(url: &str) -> String {
    let output = Command::new("curl").args(["-sSk", "--max-time", "20", url]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn number(metrics: &str, series: &str) -> Option<u64> {
    let line = metrics.lines().find(|line| line.starts_with(&format!("{series} ")))?;
    line.rsplit(' ').next()?.parse().ok()
}

const EXPIRY: &str = "server_certificate_expiration_timestamp_seconds";
const FAILED: &str = "server_certificate_renewal_failed";

fn end_of(place: &Place) -> u64 {
    let mut openssl = Command::new("openssl");
    let output = openssl.args(["x509", "-noout", "-enddate", "-in"]).arg(place.path("own.pem")).output().unwrap();
    let end = String::from_utf8(output.stdout).unwrap();
    let end = end.trim().strip_prefix("notAfter=").unwrap();
    let output = Command::new("date").args(["-u", "-d", end, "+%s"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn the_end_of_a_certificate_is_reported() {
    let certificates = Certificates::make().unwrap();
    for (from, until, word, said) in CASES {
        certificates.sign_server(from, until).unwrap();
        for (server, more, _) in SERVERS {
            let place = place(server, more, &certificates);
            let doctor = place.run(&["doctor"]);
            let line = out(&doctor)
                .lines()
                .find(|line| line.contains(&format!("certificate of [{server}]")))
                .map(str::to_owned);
            let line = line.unwrap_or_else(|| panic!("{}", out(&doctor)));
            let mark = match word {
                "ok" => "ok",
                "expires_soon" => "warn",
                _ => "fail",
            };
            assert!(line.starts_with(mark) && line.contains(said), "{until}: {line}");
            let mut command = place.command(&[server, "--listen", "127.0.0.1:0"]);
            command.env("TIDEGATE_LOG", "warn");
            let running = Running::of(command);
            assert!(said.is_empty() || running.log_has(0, said), "{until}: {}", running.log());
            assert!(!said.is_empty() || !running.log().contains("certificate"), "{}", running.log());
        }
        let (server, more, _) = SERVERS[1];
        let place = place(server, more, &certificates);
        let (_running, port) = start(&place, server);
        let health: Value = serde_json::from_str(&read(&format!("https://127.0.0.1:{port}/healthz"))).unwrap();
        assert_eq!(health["certificate"], word, "{health}");
        let is_usable = ["ok", "expires_soon"].contains(&word);
        assert_eq!(health["status"], if is_usable { "ok" } else { "degraded" }, "{health}");
        let metrics = read(&format!("https://127.0.0.1:{port}/metrics"));
        assert_eq!((number(&metrics, EXPIRY), number(&metrics, FAILED)), (Some(end_of(&place)), Some(0)), "{metrics}");
    }
}

#[test]
fn a_failed_renewal_is_reported_until_it_succeeds() {
    let [old, new] = [(); 2].map(|()| Certificates::make().unwrap());
    for certificates in [&old, &new] {
        certificates
            .sign_server("-2 days", if std::ptr::eq(certificates, &old) { "+20 days" } else { "+50 days" })
            .unwrap();
    }
    for (server, more, _) in SERVERS {
        let place = place(server, more, &old);
        let mut command = place.command(&[server, "--listen", "127.0.0.1:0"]);
        if server == "serve" {
            command.args(["--metrics", "127.0.0.1:0"]);
        }
        let running = Running::of(command);
        let own = match server {
            "serve" => {
                assert!(running.log_has(0, "metrics: http://"), "{}", running.log());
                running.log().split("metrics: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
            }
            _ => format!("{}/metrics", running.address),
        };
        let before = end_of(&place);
        let is_counted = |end, failed| {
            let metrics = read(&own);
            (number(&metrics, EXPIRY), number(&metrics, FAILED)) == (Some(end), Some(failed))
        };
        until(|| is_counted(before, 0), &running);
        place.write("own.pem", "-----BEGIN CERTIFICATE-----\nMA");
        until(|| is_counted(before, 1), &running);
        if server == "gateway" {
            let health: Value = serde_json::from_str(&read(&format!("{}/healthz", running.address))).unwrap();
            assert_eq!((&health["status"], &health["certificate"]), (&"degraded".into(), &"failed".into()), "{health}");
        }
        install(&place, &new);
        until(|| is_counted(end_of(&place), 0), &running);
    }
}
