//! Commands in terminals of a client get the short list of variables, too: a terminal begins with all that the client has, and the
//! protocol can only add to it.

use tidegate::tool::TerminalCommand;

use super::sdk::v1;

/// The variable with the script that starts a command. A client shows the arguments to its user, so the script is not one of them.
const VARIABLE: &str = "TIDEGATE_SHELL";

/// Runs the script with the command as its argument; without the script, a client that does not set variables runs nothing.
const START: &str = r#"eval "${TIDEGATE_SHELL:?is not set by the client}""#;

/// Returns the arguments of `sh` and the variables of the terminal for a command.
pub(super) fn arguments(command: &TerminalCommand<'_>) -> (Vec<String>, v1::EnvVariable) {
    let arguments = ["-c", START, "sh", command.command].map(str::to_owned).into();
    (arguments, v1::EnvVariable::new(VARIABLE, script(command.kept, command.environment)))
}

/// Replaces the shell by one that has only these variables of the terminal, those that are set there, and these values.
fn script(kept: &[String], set: &[(String, String)]) -> String {
    let mut script = "exec env -i".to_owned();
    for name in kept {
        script.push_str(&format!(r#" ${{{name}+"{name}=${name}"}}"#));
    }
    for (name, value) in set {
        script.push_str(&format!(" {name}='{}'", value.replace('\'', r"'\''")));
    }
    script + r#" sh -c "$1""#
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_is_listed_and_nothing_else() {
        let kept = ["PATH", "EMPTY", "SPACES", "UNSET"].map(str::to_owned);
        let set = [("QUOTED".to_owned(), "it's".to_owned())];
        let mut sh = std::process::Command::new("sh");
        sh.args(["-c", START, "sh", r#"printf '%s|' "$EMPTY" "$SPACES" "$QUOTED" "${UNSET-unset}"; env"#]);
        sh.env(VARIABLE, script(&kept, &set)).env("EMPTY", "").env("SPACES", " $(false)  \n\"x").env("OTHER", "secret");
        let output = sh.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("| $(false)  \n\"x|it's|unset|"), "{said}");
        assert!(said.contains("\nPATH=") && said.contains("EMPTY=\n"), "{said}");
        assert!(!said.contains("OTHER") && !said.contains(VARIABLE) && !said.contains("UNSET"), "{said}");
    }

    #[test]
    fn without_the_script_nothing_runs() {
        let output = std::process::Command::new("sh").args(["-c", START, "sh", "echo ran"]).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}
