//! A rule file: from its bytes to a rule, with everything that is wrong shown at its place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rules::{Rule, RuleLayer};

use crate::{Code, Diagnostic, Location, SourceFile};

/// The most bytes a rule file may have: 1 MiB. A rule is a page of text; a wrong file must not fill the memory.
pub const MAX_RULE_BYTES: u64 = 1 << 20;

/// A rule file as it was read.
#[derive(Clone, Debug)]
pub struct RuleFile {
    /// Its rule; `None` where the file was refused, and `findings` say why.
    pub rule: Option<Rule>,
    /// What is wrong with it. An error costs the rule or a part of it, a warning costs nothing.
    pub findings: Vec<Diagnostic>,
}

impl RuleFile {
    /// Reads a rule file. Its name without the extension is the rule's; `shown` is the name of the file in messages and
    /// to the model; diagnostics name `path`.
    pub fn read(path: &Path, layer: &RuleLayer, shown: &str) -> Self {
        match text_of(path, path) {
            Ok(text) => {
                let name = path.file_name().map(Path::new).unwrap_or(path);
                Self::of_source(&SourceFile::new(path, text), layer, shown, name)
            }
            Err(diagnostic) => Self::refused(*diagnostic),
        }
    }

    /// Reads a rule file whose text is there already. `within` is its path in the rule folder, which names the rule.
    pub fn of_source(source: &Arc<SourceFile>, layer: &RuleLayer, shown: &str, within: &Path) -> Self {
        let Some(name) = rule_name(within) else {
            let message = format!("`{}` cannot be a rule: its file name is not Unicode", source.path.display());
            return Self::refused(Diagnostic::error(Code::RuleFileName, message).help("rename the file"));
        };
        let from = rules::RuleOrigin { layer: layer.clone(), path: shown.to_owned() };
        let (rule, findings) = rules::parse_rule_source(&name, &from, source);
        Self { rule, findings }
    }

    pub(super) fn refused(diagnostic: Diagnostic) -> Self {
        Self { rule: None, findings: vec![diagnostic] }
    }
}

/// The text of a file, which messages call `named`, or the reason why it cannot be read.
pub(super) fn text_of(path: &Path, named: &Path) -> Result<String, Box<Diagnostic>> {
    let bytes = bytes_of(path).map_err(|(cause, help)| {
        let message = format!("cannot read the rule file `{}`: {cause}", named.display());
        Diagnostic::error(Code::RuleFileUnreadable, message).help(help)
    })?;
    String::from_utf8(bytes).map_err(|error| not_text(named, error.as_bytes(), error.utf8_error().valid_up_to()).into())
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, (String, &'static str)> {
    let failed = |error: io::Error| (error.to_string(), "make it readable, or remove it");
    // Opening a pipe would block until it has a writer.
    let about = path.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err((
            "it is not a file".to_owned(),
            "rename or move it: every `.md` or `.mdc` entry must be a rule file",
        ));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_RULE_BYTES {
        let cause = format!("its size exceeds the limit of {MAX_RULE_BYTES} bytes");
        return Err((cause, "a rule's body is sent to the model: shorten it, or rename the file if it is not a rule"));
    }
    Ok(bytes)
}

/// Shows where the text stops to be text: until there it reads the same.
fn not_text(named: &Path, bytes: &[u8], good: usize) -> Diagnostic {
    let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let message = match bytes.get(good) {
        _ if wide => "this rule file is UTF-16, not UTF-8".to_owned(),
        Some(byte) => format!("this rule file is not UTF-8: invalid byte 0x{byte:02x} here"),
        None => "this rule file is not UTF-8".to_owned(),
    };
    let source = SourceFile::new(named, String::from_utf8_lossy(bytes));
    Diagnostic::error(Code::RuleFileEncoding, message)
        .at(Location::new(&source, good..good), "")
        .help("save it as UTF-8")
}

/// The name of the rule in a file: its path in the rule folder without the extension, such as `api/errors`. `None` where that
/// is not Unicode.
pub(super) fn rule_name(within: &Path) -> Option<String> {
    within.with_extension("").to_str().map(|name| name.replace('\\', "/"))
}

/// Whether a file is about the rules of its folder and none itself: a `README.md` without front matter.
pub(super) fn is_about_rules(name: &OsStr, text: &str) -> bool {
    let file = Path::new(name).file_name().unwrap_or(name);
    file.eq_ignore_ascii_case("readme.md") && !has_front_matter(text)
}

/// Whether a text begins as a rule file does, with the first line of front matter.
pub(super) fn has_front_matter(text: &str) -> bool {
    let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim_end();
    first == "+++" || first == "---"
}
