//! `[rules]` of `tidegate.toml` as typed: the settings of stream rules, which the engine's room owns, and beside them
//! where rule files are, which is ours.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::OnProblem;

/// `[rules]`. Both halves reject unknown keys, so each one receives only its own keys.
#[derive(Debug, Default)]
pub(crate) struct RulesFile {
    /// What happens on a match.
    pub(crate) settings: rules::RuleSettings,
    /// Which rule files are read.
    pub(crate) folders: RuleFoldersFile,
}

/// Which rule files are read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuleFoldersFile {
    /// Whether to read the rule files of the workspace, in `.tidegate/rules`.
    pub(crate) project_rules: bool,
    /// Whether to read the user's rule files, in `tidegate/rules` of the user's configuration folder.
    pub(crate) user_rules: bool,
    /// Further folders with rule files, relative to this file. Their rules belong to the project layer, after its own.
    #[schemars(inner(length(min = 1)))]
    pub(crate) folders: Vec<String>,
    /// Folders, relative to this file, whose rules are all required: the folder must exist, and every rule in it must be
    /// active. A folder that is not read otherwise is read as if it were listed in `folders`.
    #[schemars(inner(length(min = 1)))]
    pub(crate) required_folders: Vec<String>,
    /// What happens if a rule is invalid, required or not.
    pub(crate) on_problem: OnProblem,
}

/// The keys of [`RuleFoldersFile`].
const FOLDER_KEYS: [&str; 5] = ["project_rules", "user_rules", "folders", "required_folders", "on_problem"];

impl Default for RuleFoldersFile {
    fn default() -> Self {
        Self {
            project_rules: true,
            user_rules: true,
            folders: Vec::new(),
            required_folders: Vec::new(),
            on_problem: OnProblem::Warn,
        }
    }
}

impl<'de> Deserialize<'de> for RulesFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut settings = toml::Table::deserialize(deserializer)?;
        let mut folders = toml::Table::new();
        for key in FOLDER_KEYS {
            if let Some((key, value)) = settings.remove_entry(key) {
                folders.insert(key, value);
            }
        }
        Ok(Self {
            settings: rules::RuleSettings::deserialize(settings).map_err(Error::custom)?,
            folders: RuleFoldersFile::deserialize(folders).map_err(Error::custom)?,
        })
    }
}

impl JsonSchema for RulesFile {
    fn schema_name() -> Cow<'static, str> {
        "RulesFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut both = rules::RuleSettings::json_schema(generator);
        let mut folders = RuleFoldersFile::json_schema(generator);
        let more = folders.remove("properties");
        if let (Some(all), Some(serde_json::Value::Object(more))) =
            (both.get_mut("properties").and_then(serde_json::Value::as_object_mut), more)
        {
            all.extend(more);
        }
        let about = "Stream rules: what happens when one matches, and where rule files are. Rules may override \
                     `interrupt_mode`, `repeat_mode`, `repeat_gap` and `context_mode`.";
        both.insert("description".to_owned(), about.into());
        both
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_are_split_off_are_those_of_the_folders() {
        let schema = SchemaGenerator::default().into_root_schema_for::<RuleFoldersFile>();
        let mut keys: Vec<&str> =
            schema.get("properties").and_then(|keys| keys.as_object()).unwrap().keys().map(String::as_str).collect();
        let mut ours = FOLDER_KEYS;
        keys.sort_unstable();
        ours.sort_unstable();
        assert_eq!(keys, ours);
    }
}
