//! The environment of commands: a short list of variables, and those that the operator names. A list of what to leave out
//! would have to know each name under which somebody keeps a secret.

use std::ffi::OsString;

use system::environment;

use crate::ToolSettings;

/// The variables that commands get, by what they are for.
pub(crate) const LISTED: [(&str, &[&str]); 5] = [
    (
        "the user and the machine",
        &[
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "TERM",
            "TMPDIR",
            "TMP",
            "TEMP",
            "TZ",
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
        ],
    ),
    // Each category by its name: `LC_*` is what servers let through for anything.
    (
        "the language",
        &[
            "LANG",
            "LANGUAGE",
            "LC_ALL",
            "LC_COLLATE",
            "LC_CTYPE",
            "LC_MESSAGES",
            "LC_MONETARY",
            "LC_NUMERIC",
            "LC_TIME",
        ],
    ),
    (
        "toolchains",
        &[
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "GOPATH",
            "GOROOT",
            "GOCACHE",
            "GOMODCACHE",
            "GOTOOLCHAIN",
            "JAVA_HOME",
            "ANDROID_HOME",
            "ANDROID_SDK_ROOT",
            "DOTNET_ROOT",
            "NVM_DIR",
            "NODE_PATH",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "CONDA_DEFAULT_ENV",
            "PYENV_ROOT",
            "PYTHONPATH",
            "RBENV_ROOT",
            "GEM_HOME",
            "GEM_PATH",
            "SDKROOT",
            "DEVELOPER_DIR",
            "NIX_PATH",
            "NIX_PROFILES",
        ],
    ),
    (
        "compilers",
        &[
            "CC",
            "CXX",
            "AR",
            "LD",
            "CFLAGS",
            "CXXFLAGS",
            "CPPFLAGS",
            "LDFLAGS",
            "RUSTFLAGS",
            "CPATH",
            "LIBRARY_PATH",
            "LD_LIBRARY_PATH",
            "PKG_CONFIG_PATH",
            "CMAKE_PREFIX_PATH",
            "MACOSX_DEPLOYMENT_TARGET",
            "SOURCE_DATE_EPOCH",
            "CI",
        ],
    ),
    (
        "the network",
        &[
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "CURL_CA_BUNDLE",
            "REQUESTS_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
        ],
    ),
];

/// What keeps programs from waiting for a person.
const UNATTENDED: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Which variables of this process the commands of `shell` get, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandVariables {
    /// Those that they get, sorted.
    pub passed: Vec<String>,
    /// Those of `passed` that the operator names and that look like secrets.
    pub secret: Vec<String>,
    /// Those that they do not get, sorted.
    pub left_out: Vec<String>,
    /// Names and patterns of the operator that no variable has.
    pub unset: Vec<String>,
}

impl CommandVariables {
    pub(crate) fn of(settings: &ToolSettings) -> Self {
        let mut found = Self::default();
        for (name, value) in &environment::variables() {
            let (text, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy());
            if !passes(settings, &text, &value) {
                found.left_out.push(text);
                continue;
            }
            if looks_secret(&text, &value) {
                found.secret.push(text.clone());
            }
            found.passed.push(text);
        }
        let is_unset = |entry: &&String| !found.passed.iter().any(|name| fits(entry, name));
        found.unset = settings.shell_env.iter().filter(is_unset).cloned().collect();
        found
    }
}

/// The environment of a command that this process starts.
pub(super) fn of_process(settings: &ToolSettings) -> Vec<(OsString, OsString)> {
    let all = environment::variables().into_iter();
    let kept = all.filter(|(name, value)| passes(settings, &name.to_string_lossy(), &value.to_string_lossy()));
    kept.chain(UNATTENDED.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The environment of a command in a terminal that is not ours: what is set, and which of the terminal's variables are kept.
pub(super) struct OfTerminal {
    pub(super) set: Vec<(String, String)>,
    pub(super) kept: Vec<String>,
}

impl OfTerminal {
    pub(super) fn of(settings: &ToolSettings) -> Self {
        let set: Vec<(String, String)> = UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let ours = CommandVariables::of(settings);
        // The terminal can have variables that this process has not, but not patterns of names, and this process tells which values of
        // listed ones are secret.
        let listed = LISTED.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
        let named = settings.shell_env.iter().filter(|entry| !entry.ends_with('*')).cloned();
        let mut kept: Vec<String> = listed.filter(|name| !ours.left_out.contains(name)).chain(named).collect();
        kept.extend(ours.passed.into_iter().filter(|name| is_name(name)));
        kept.retain(|name| set.iter().all(|(other, _)| name != other));
        kept.sort();
        kept.dedup();
        Self { set, kept }
    }
}

/// Whether commands get a variable. One that the operator names in full is passed whatever it contains.
fn passes(settings: &ToolSettings, name: &str, value: &str) -> bool {
    if settings.shell_env.iter().any(|entry| entry == name) {
        return true;
    }
    let is_listed = LISTED.iter().any(|(_, names)| names.contains(&name));
    let is_meant = is_listed || settings.shell_env.iter().any(|entry| fits(entry, name));
    is_meant && !settings.own_keys.iter().any(|key| key == name) && !looks_secret(name, value)
}

/// Whether a name is the one that an entry of the operator names, or begins as its pattern does.
fn fits(entry: &str, name: &str) -> bool {
    entry.strip_suffix('*').map_or(entry == name, |start| name.starts_with(start))
}

/// Whether a shell can name the variable.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| plain(c) && !c.is_ascii_digit()) && name.chars().all(plain)
}

/// Whether a variable is a secret by its name or its value, or leads to secrets, as the socket of an agent does.
pub fn looks_secret(name: &str, value: &str) -> bool {
    secrets::variable(name, value).is_some()
}

#[cfg(test)]
mod tests {
    use super::LISTED;

    #[test]
    fn the_page_lists_the_variables() {
        let page = include_str!("../../../../TOOLS.md");
        for (what, names) in LISTED {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let row = format!("| {what} | {} |", names.join(" "));
            assert!(page.contains(&row), "host/TOOLS.md lacks the row\n{row}");
        }
    }
}
