//! A key, and what the operator sends with each request, leave this machine over `https` alone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

use flow::KeySource;
use tidegate_providers::{HttpConfig, ProviderConfig, ProviderError, Secret, check, connect};
use wire::Wire;

/// Addresses, and whether what is secret is sent there.
const ADDRESSES: [(&str, bool); 16] = [
    ("http://localhost:8080", true),
    ("http://LOCALHOST/v1", true),
    ("http://127.0.0.1:11434", true),
    ("http://127.8.8.8", true),
    ("http://127.1", true),
    ("http://[::1]:8000", true),
    ("http://[::ffff:127.0.0.1]", true),
    ("https://gateway.example", true),
    ("http://gateway.example", false),
    ("HTTP://GATEWAY.EXAMPLE", false),
    ("http://localhost.evil.com", false),
    ("http://127.0.0.1.evil.com", false),
    ("http://0.0.0.0:8000", false),
    ("http://10.0.0.7:8000", false),
    ("http://[::ffff:10.0.0.7]", false),
    ("http://lo\u{441}alhost", false),
];

fn config(wire: Wire, address: &str) -> HttpConfig {
    HttpConfig { base_url: Some(address.to_owned()), key: KeySource::None, ..HttpConfig::new(wire, "m") }
}

fn is_refused(config: &HttpConfig) -> bool {
    match connect(&ProviderConfig::Http(config.clone())) {
        Ok(_) => false,
        Err(ProviderError::PlaintextKey { .. }) => true,
        Err(other) => panic!("{:?}: {other}", config.base_url),
    }
}

#[tokio::test]
async fn what_is_secret_is_not_sent_to_another_machine_unless_the_operator_says_so() {
    let mut cases = 0;
    for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
        for (address, is_sent) in ADDRESSES {
            let bare = config(wire, address);
            let given = HttpConfig { given_key: Some(Box::new(Secret::new("sk-given"))), ..bare.clone() };
            // A variable that every test has.
            let named = HttpConfig { key: KeySource::Env("PATH".to_owned()), ..bare.clone() };
            let header = HttpConfig { headers: vec![("x-token".into(), "t".into())], ..bare.clone() };
            assert!(!is_refused(&bare), "{address}: there is nothing to keep");
            for secret in [given, named, header] {
                assert_eq!(is_refused(&secret), !is_sent, "{address}: {secret:?}");
                assert!(!is_refused(&HttpConfig { allow_plaintext_key: true, ..secret.clone() }), "{address}");
                if !is_sent {
                    let asked = check(&ProviderConfig::Http(secret)).await.unwrap_err();
                    assert!(matches!(asked, ProviderError::PlaintextKey { .. }), "{address}: {asked}");
                }
                cases += 1;
            }
        }
    }
    println!("{cases} cases");
    assert_eq!(cases, 144);
}

#[test]
fn the_error_names_the_server_and_not_the_key() {
    let given = HttpConfig {
        given_key: Some(Box::new(Secret::new("sk-given"))),
        ..config(Wire::Anthropic, "http://Gateway.example:8080/team")
    };
    let error = connect(&ProviderConfig::Http(given)).err().unwrap().to_string();
    assert!(error.starts_with("the key would be sent to http://gateway.example:8080 over plain http"), "{error}");
    assert!(error.contains("allow_plaintext_key = true") && !error.contains("sk-given"), "{error}");
}
