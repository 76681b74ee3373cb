//! A machine with a policy: the program in a namespace of its own, whose `/etc` has nothing else. The place of the policy is that of the
//! shipped program, which no option or variable changes.

use std::process::{Command, Stdio};

/// Puts the file there, and becomes the program.
const SCRIPT: &str = "mount -t tmpfs none /etc && mkdir /etc/tidegate && printf %s \"$1\" > /etc/tidegate/policy.toml && shift && exec \"$@\"";

/// What gives this user a namespace: root needs no other user.
///
/// # Panics
/// Where the system gives none to this user: a test that did nothing would prove nothing.
fn namespaces() -> &'static [&'static str] {
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let mut why = String::new();
    for way in ways {
        let mount = ["sh", "-c", "mount -t tmpfs none /etc"];
        match Command::new("unshare").args(way).args(mount).stderr(Stdio::piped()).output() {
            Ok(output) if output.status.success() => return way,
            Ok(output) => why.push_str(&String::from_utf8_lossy(&output.stderr)),
            Err(error) => why.push_str(&error.to_string()),
        }
    }
    panic!("namespaces are needed (`unshare` of util-linux, allowed for this user): {why}");
}

/// The same command on a machine with this policy.
pub(crate) fn under(policy: &str, command: &Command) -> Command {
    let namespaces = namespaces();
    let mut inside = Command::new("unshare");
    inside
        .args(namespaces)
        .args(["sh", "-c", SCRIPT, "sh", policy])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        inside.current_dir(folder);
    }
    inside
}
