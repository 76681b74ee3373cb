//! The doctor's check of the environment of commands: which variables they get, which they do not, and what is suspicious.

use tools::CommandVariables;

use crate::doctor::{Check, Health};

/// How variables are added, for the end of a sentence.
const HOW: &str = "`env` of `[tools.shell]` names others";

/// Reports the variables of this process that commands of `shell` get.
pub(crate) fn check(variables: &CommandVariables) -> Check {
    let CommandVariables { passed, secret, left_out, unset, .. } = variables;
    let all = passed.len() + left_out.len();
    let mut detail = format!("commands get {} of {all} variables: {}", passed.len(), list(passed));
    if !left_out.is_empty() {
        detail.push_str(&format!("; they do not get {}; {HOW}", list(left_out)));
    }
    let check = Check::good("shell", detail);
    let warning = match (secret.as_slice(), unset.as_slice()) {
        ([], []) => return check,
        ([], unset) => format!("`env` of `[tools.shell]` names {}, which no variable has", list(unset)),
        (secret, _) => format!(
            "`env` of `[tools.shell]` gives every command that the model runs {}, which looks like a secret",
            list(secret)
        ),
    };
    Check { health: Health::Warning, detail: format!("{warning}; {}", check.detail), ..check }
}

fn list(names: &[String]) -> String {
    names.join(", ")
}
