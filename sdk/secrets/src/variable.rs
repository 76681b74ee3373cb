//! Whether a variable of the environment is a secret.

use crate::names::{Name, Strength, mentions_secret};
use crate::text::Text;
use crate::{Kind, PRIVATE_KEY, find, shapes};

/// Variables whose name looks like that of a secret, and whose value is none.
const HARMLESS: &[&str] = &["PWD", "OLDPWD", "GPG_TTY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"];

/// Variables that give access to something without being a secret themselves.
const HANDLES: &[&str] =
    &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KRB5CCNAME", "DOCKER_HOST", "KUBECONFIG", "VAULT_ADDR"];

/// Why a variable is not for everybody: it is a secret by its name, a secret is in its value, or it is a handle to secrets, such as the socket of an
/// agent. `None`: nothing is known against it, which does not say that it is harmless.
#[must_use]
pub fn variable(name: &str, value: &str) -> Option<Kind> {
    if HANDLES.contains(&name) {
        return Some("handle to secrets");
    }
    if HARMLESS.contains(&name) {
        return None;
    }
    match Name::of(name.as_bytes()).strength() {
        Some(Strength::Password) => return Some("password"),
        // Of a variable the name alone is enough.
        Some(Strength::Token | Strength::Weak) => return Some("key"),
        None => {}
    }
    if mentions_secret(name) {
        return Some("key");
    }
    if with_password(value) {
        return Some("password");
    }
    // Of a whole value a part of a key, or of its mark, is enough.
    if let Some(found) = shapes::begun(&Text::new(value.as_bytes(), None), 0) {
        return Some(found.kind);
    }
    let is_public = value.contains("CERTIFICATE") || value.contains("PUBLIC KEY");
    if value.contains("-----BEGIN ") && !is_public {
        return Some(PRIVATE_KEY);
    }
    // With the name, since that of a vendor says what a random value is.
    let line = format!("{name}={value}");
    value.lines().flat_map(find).next().or_else(|| find(&line).into_iter().next()).map(|found| found.kind)
}

/// Whether a value is an address with a password, whatever that is: nobody puts an example into the environment.
fn with_password(value: &str) -> bool {
    let authority = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_judged_by_name_and_by_value() {
        let key = format!("sk-proj-{}", "a1B2c3D4e5".repeat(3));
        let block = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", "b3BlbnNzaC1rZXktdjEAAAAA".repeat(2));
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "x"),
            ("github_token", "x"),
            ("DB_PASSWORD", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("SMTP_PASS", "x"),
            ("MYSQL_PWD", "x"),
            ("GH_PAT", "x"),
            ("REDISCLI_AUTH", "x"),
            ("SENTRY_DSN", "https://x@o1.ingest.sentry.io/2"),
            ("PGPASSWORD", "x"),
            ("SLACK_WEBHOOK", "https://hooks.example.org"),
            ("DATABASE_URL", "postgres://me:hunter2@host/db"),
            ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a"),
            ("MY_MODEL", key.as_str()),
            ("DEPLOY", block.as_str()),
            ("CUT_OFF", "-----BEGIN OPENSSH PRIVATE "),
            ("CACHE", "redis://:hunter2@host:6379"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("GOOGLE_APPLICATION_CREDENTIALS_JSON", "{}"),
            ("SESSION_COOKIE", "x"),
        ] {
            assert!(variable(name, value).is_some(), "{name}");
        }
        for (name, value) in [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("PWD", "/home/me"),
            ("OLDPWD", "/"),
            ("GIT_ASKPASS", "/bin/ask"),
            ("PREFIX", "sk-"),
            ("URL", "https://host/a:b@c"),
            ("REMOTE", "ssh://git@host"),
            ("LS_COLORS", "rs=0:di=01;34:ln=01;36"),
            ("LANG", "C.UTF-8"),
            ("TERM_SESSION_ID", "w0t0p0:6C4A8E60-0000-4B0B-8C1F-8A0E2C1D1234"),
        ] {
            assert_eq!(variable(name, value), None, "{name}");
        }
    }
}
