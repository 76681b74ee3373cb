//! The closed list of diagnostic codes. A code never changes its meaning and is never reused; new ones are added.

use std::fmt;

macro_rules! codes {
    ($($variant:ident $word:literal $about:literal)*) => {
        /// The kind of a problem, such as `rule-unknown-key`. Tools match on it instead of on the message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DiagnosticCode {
            $(#[doc = $about] $variant,)*
        }

        impl DiagnosticCode {
            /// All codes, in the order of their documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as it is shown and as it is written to JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// What the code means, in one or two sentences.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)*
                }
            }
        }
    };
}

codes! {
    HostNoProvider "host-no-provider"
        "No provider is selected, and the embedder gave no model."
    HostNoModel "host-no-model"
        "A provider is selected, but no model of it."
    HostProviderUnusable "host-provider-unusable"
        "The provider cannot be used with these settings, for example because its key or its recording cannot be read."
    HostEngineUnavailable "host-engine-unavailable"
        "The WebAssembly engine cannot run on this machine, so no plugin with a component is loaded."
    HostUnknownPlugin "host-unknown-plugin"
        "A session requests a plugin that the host does not have."
    HostPluginRequired "host-plugin-required"
        "A plugin that the operator requires was to be disabled or unregistered."
    HostSessionInUse "host-session-in-use"
        "A session with the same id is open."
    HostTranscriptUnavailable "host-transcript-unavailable"
        "The transcript of a session cannot be opened, read or continued."
    HostStateUnavailable "host-state-unavailable"
        "The store of the plugins' state cannot be opened or read."
    HostWorkspaceUnusable "host-workspace-unusable"
        "The workspace is not a folder, or cannot be read."
    ConfigUnreadable "config-unreadable"
        "A file cannot be read, or is larger than the limit."
    ConfigHeader "config-header"
        "A header under `[provider]` has an invalid name or value, or is set by the program."
    ConfigSyntax "config-syntax"
        "The file is not valid TOML, or for an event catalogue in that form not valid YAML."
    ConfigUnknownKey "config-unknown-key"
        "The table has no such key."
    ConfigMissingKey "config-missing-key"
        "A required key is missing."
    ConfigUnknownValue "config-unknown-value"
        "The key takes one of a fixed list of values, and this is not one of them."
    ConfigWrongType "config-wrong-type"
        "The value has another type than the key takes."
    ConfigEmptyValue "config-empty-value"
        "The value must not be empty."
    ConfigOutOfRange "config-out-of-range"
        "The number is outside of the range that the key takes."
    ConfigDuplicate "config-duplicate"
        "The same value is listed twice, or two keys that exclude each other are both set."
    ConfigRecording "config-recording"
        "`recording` is missing with `kind = \"recording\"`, or is set with another provider."
    ConfigStateBackend "config-state-backend"
        "A key of `[state]` belongs to another backend than the one that is set."
    ConfigInvalidVariable "config-invalid-variable"
        "The value is not the name of an environment variable. It may be a key that was put into the file by mistake."
    ConfigInvalidUrl "config-invalid-url"
        "The value is not an `http://` or `https://` address, or has parts that a base address must not have."
    ConfigInvalidPermission "config-invalid-permission"
        "The key of a permission is not `TOOL`, `TOOL(GLOB)` or `*`."
    ConfigUnknownTool "config-unknown-tool"
        "A permission names a tool that the session does not have. A warning, because embedders add tools of their own; an error \
         where the name is similar to that of a tool."
    ConfigUnknownRule "config-unknown-rule"
        "`disabled_rules` names a rule that does not exist, so a rule that was meant to be off is on."
    ErrorsSchemaVersion "errors-schema-version"
        "The table of error classes has a `schema_version` that this host does not read."
    ErrorsIncomplete "errors-incomplete"
        "An entry of the table of error classes has no class or no condition, or a retry policy has no `policy`."
    ErrorsInvalidStatus "errors-invalid-status"
        "An entry of the table of error classes has a status that is neither an HTTP status nor a range of them."
    ErrorsInvalidPattern "errors-invalid-pattern"
        "The `message` of an entry of the table of error classes is not a regular expression, or one that is too large."
    ErrorsInvalidDuration "errors-invalid-duration"
        "A wait of a retry policy is not a number with a unit, is longer than 2 minutes, or `base` is longer than `max`."
    LimitsSchemaVersion "limits-schema-version"
        "The limits of sessions have a `schema_version` that this host does not read."
    LimitsInvalidDuration "limits-invalid-duration"
        "A duration in the limits of sessions is not a number with a unit, or is 0."
    LimitsIncomplete "limits-incomplete"
        "A price has no `input` or no `output`."
    LimitsUnknownPrice "limits-unknown-price"
        "Money is limited, and the price of the session's model is not known, so the limit could not be kept."
    EventsSchemaVersion "events-schema-version"
        "The event catalogue has no `schema_version`, or one that this host does not read."
    EventsUnknownType "events-unknown-type"
        "The catalogue describes an event type that the host does not have. Types are fixed by the program."
    EventsUnknownName "events-unknown-name"
        "An event type names a category or a criticality level that no catalogue defines."
    EventsIncomplete "events-incomplete"
        "A new criticality level lacks a key, or its keys contradict each other."
    EventsInvalidThrottle "events-invalid-throttle"
        "A throttle is not a number with a unit, such as `1s`, or is longer than an hour."
    EventsInvalidMilestones "events-invalid-milestones"
        "Milestones are not ascending, or not from 0 to 100."
    EventsInvalidCondition "events-invalid-condition"
        "A condition of an event type does not follow the grammar, or names an unknown variable."
    EventsInvalidSchema "events-invalid-schema"
        "The schema of a payload is not a valid JSON Schema, or refers to other schemas."
    EventsUnsafe "events-unsafe"
        "A setting would lose events of a type that must not be lost, for example because a session is rebuilt from it."
    EventsWithoutEffect "events-without-effect"
        "A setting can have no effect on events of this type."
    EventsYaml "events-yaml"
        "The event catalogue uses a feature of YAML that is not supported, such as an anchor, a tag, or null."
    ManifestInvalidId "manifest-invalid-id"
        "The plugin's id contains other characters than letters, digits and hyphens, or is too long."
    ManifestInvalidVersion "manifest-invalid-version"
        "The plugin's version is not a semantic version."
    ManifestUnsupportedApi "manifest-unsupported-api"
        "The host does not support the version of the contract that the plugin is made for."
    ManifestEmpty "manifest-empty"
        "The plugin has neither a component nor rules, prompts or guidance."
    ManifestMissingCapability "manifest-missing-capability"
        "The plugin adds text to the prompt, or reads its state in a condition, and does not request the capability for it."
    ManifestInvalidCondition "manifest-invalid-condition"
        "A condition of a prompt addition is empty, contradicts itself, or has a malformed tag, glob or range of turns."
    ManifestPromptTooLarge "manifest-prompt-too-large"
        "The plugin adds more text to the prompt than one plugin is allowed to."
    ManifestConflictingGuidance "manifest-conflicting-guidance"
        "A tool is both preferred and avoided, or is in the order twice."
    ManifestComponentOutside "manifest-component-outside"
        "The path of the component leads out of the plugin's folder."
    ManifestInvalidDefault "manifest-invalid-default"
        "The default of a setting has another type than the setting."
    PluginDuplicateId "plugin-duplicate-id"
        "Two plugins have the same id."
    PluginPowerNotGranted "plugin-power-not-granted"
        "The plugin requests a power that the operator does not grant."
    PluginPowerNotRequested "plugin-power-not-requested"
        "The operator grants a power that the plugin does not request."
    PluginUnknownSetting "plugin-unknown-setting"
        "The operator sets a setting that the plugin does not declare."
    PluginSettingType "plugin-setting-type"
        "The value of a setting has another type than the plugin declares."
    PluginSettingMissing "plugin-setting-missing"
        "The plugin declares a setting without a default, and the operator does not set it."
    PluginUnknownTool "plugin-unknown-tool"
        "The plugin's guidance names a tool that the session does not have; it is left out."
    PluginGuidanceConflict "plugin-guidance-conflict"
        "The guidance of two plugins on a tool contradicts each other; that of the higher priority is used."
    PluginComponentMissing "plugin-component-missing"
        "The plugin has no component where its manifest says; it is probably not built yet."
    PluginComponentRefused "plugin-component-refused"
        "The plugin's component cannot be loaded: it does not follow the contract, or its registration failed."
    PluginToolConflict "plugin-tool-conflict"
        "A plugin provides a tool whose name another tool of the session has, or a tool that is built in."
    PluginStaleComponent "plugin-stale-component"
        "The plugin's component is older than its source code."
    PluginNoMigration "plugin-no-migration"
        "The plugin's `state_version` is above 1, and its component exports no `migration`: sessions with older state cannot use it."
    RuleFolderMissing "rule-folder-missing"
        "A rule folder that the operator names does not exist."
    RuleFolderUnreadable "rule-folder-unreadable"
        "A rule folder cannot be read."
    RuleFolderDuplicate "rule-folder-duplicate"
        "A rule folder is another name of a folder that is read already."
    RuleFolderTooLarge "rule-folder-too-large"
        "A rule folder has more rule files than are read."
    RuleFileUnreadable "rule-file-unreadable"
        "A rule file cannot be read, is not a regular file, or is larger than the limit."
    RuleFileEncoding "rule-file-encoding"
        "A rule file is not UTF-8."
    RuleFileName "rule-file-name"
        "The name of a rule file cannot be the name of a rule: it is not Unicode or contains control characters."
    RuleFileOutside "rule-file-outside"
        "A rule file of the project is a link to a file outside of the workspace."
    RuleFileIgnored "rule-file-ignored"
        "A file or folder looks as if it contained rules and is not read."
    RuleFileDeleted "rule-file-deleted"
        "The file of a required rule was deleted while the host was running."
    RuleFrontMatter "rule-front-matter"
        "The rule file has no front matter, or its front matter does not end."
    RuleSyntax "rule-syntax"
        "The front matter is not valid TOML, or a line of it is not `key: value`."
    RuleUnknownKey "rule-unknown-key"
        "Rules have no such key. An error in TOML; a warning in YAML, where files written for other hosts are read."
    RuleMisplacedKey "rule-misplaced-key"
        "`name` or `body` in a rule file: the name is that of the file, the body follows the front matter."
    RuleDuplicateKey "rule-duplicate-key"
        "A key is set twice, possibly under two of its names. In YAML the last one is used; in TOML the rule is refused."
    RuleInvalidValue "rule-invalid-value"
        "The value is not one that the key takes."
    RuleUnquotedClass "rule-unquoted-class"
        "YAML reads brackets without quotes as a list, not as a character class."
    RuleControlCharacter "rule-control-character"
        "A value contains a control character, usually because the file format decoded an escape such as `\\b`."
    RuleInvalidName "rule-invalid-name"
        "The rule has no name, or its name contains control characters."
    RuleDuplicateName "rule-duplicate-name"
        "Two rules of one plugin, or two of the checked files, have the same name."
    RuleNoBody "rule-no-body"
        "The rule has neither a body nor a reminder, so there is nothing to send to the model."
    RuleNoCondition "rule-no-condition"
        "The rule has no condition, is not always applied and has no description, so it would do nothing."
    RuleInvalidCondition "rule-invalid-condition"
        "A condition is not a valid regular expression of the dialect, or uses what the dialect does not support."
    RuleNoValidCondition "rule-no-valid-condition"
        "The rule is disabled because no valid condition is left, or one that restricts it was refused."
    RuleSuspiciousCondition "rule-suspicious-condition"
        "A condition is valid and probably does not mean what its author intended."
    RuleEmptyCondition "rule-empty-condition"
        "A condition that is empty, or consists of white space only, is ignored."
    RuleOuterBlank "rule-outer-blank"
        "A condition begins or ends with a blank, which has to match as well."
    RuleInvisibleCharacter "rule-invisible-character"
        "A condition contains a character that is not visible."
    RuleEmptyMatch "rule-empty-match"
        "A condition matches without any character, so it matches nearly everywhere."
    RuleGlobCondition "rule-glob-condition"
        "A condition is read as a file glob, which may not be what was meant."
    RuleInvalidScope "rule-invalid-scope"
        "A scope does not follow the grammar of scopes."
    RuleNoValidScope "rule-no-valid-scope"
        "The rule is disabled because none of its scopes is valid."
    RuleInvalidGlob "rule-invalid-glob"
        "A file glob cannot be compiled."
    RuleNoValidGlob "rule-no-valid-glob"
        "The rule is disabled because none of its globs is valid."
    RuleReminderTooLong "rule-reminder-too-long"
        "`reminder` is longer than the limit and is ignored."
    RuleKeyWithoutEffect "rule-key-without-effect"
        "A key has no effect because the rule has no condition."
    RuleInvalidExample "rule-invalid-example"
        "The fence of an example does not name the stream that its text is in."
    RuleExampleFailed "rule-example-failed"
        "The rule does not do with one of its examples what the example says."
    RuleUnreachable "rule-unreachable"
        "The rule can never fire on one of its streams, or on any."
    RuleIdle "rule-idle"
        "The rule cannot fire in this host: the tools or the agent that it watches do not exist here."
    RuleUnknownTool "rule-unknown-tool"
        "A scope names a tool that this host does not offer; the other scopes are used."
    RuleDisabled "rule-disabled"
        "The settings of this host would leave the rule out."
    RuleShadowed "rule-shadowed"
        "Several rules have the same name, and only one of them is used."
    RuleUnboundedMatch "rule-unbounded-match"
        "A condition has no longest match, so text is held back up to the limits of the settings."
    RuleRequired "rule-required"
        "A required rule is not in force, so the host does not run."
    HostNoPooling "host-no-pooling"
        "Instances of plugins cannot be pooled, which makes starting them slower."
    HostNoCache "host-no-cache"
        "Compiled plugins cannot be stored, so they are compiled at every start."
}

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::DiagnosticCode;

    #[test]
    fn codes_are_unique_kebab_case_words() {
        let words: BTreeSet<&str> = DiagnosticCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), DiagnosticCode::ALL.len());
        for word in words {
            assert!(word.contains('-') && word.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{word}");
        }
    }
}
