//! A machine with a policy: the program in a namespace of its own, whose `/etc` has nothing else. The place of the policy is that of the
//! shipped program, which no option or variable changes.

use std::process::{Command, Stdio};

/// Puts the file there, and becomes the program.
const SCRIPT: &str = "mount -t tmpfs none /etc && mkdir /etc/tidegate && printf %s \"$1\" > /etc/tidegate/policy.toml && shift && exec \"$@\"";

/// The same command on a machine with this policy.
///
/// # Panics
/// Where the system gives no namespaces to this user: a test that did nothing would prove nothing.
pub(crate) fn under(policy: &str, command: &Command) -> Command {
    let namespaces = ["--user", "--map-root-user", "--mount"];
    let probe = Command::new("unshare").args(namespaces).arg("true").stderr(Stdio::piped()).output();
    let refused = match &probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = refused {
        panic!("user namespaces are needed (`unshare` of util-linux, allowed for this user): {why}");
    }
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
