//! From the operator's file and the flags to a host. Flags win over the file.

use std::path::Path;

use config::{KeySource, OPERATOR_FILE, Operator, PermissionRule, PluginEntry, Power, ProviderKind};

use crate::args::{Common, PowerWord, ProviderArgs, ProviderWord};
use crate::exit::Failure;

/// The program has one session, and each plugin one instance in it (the doctor another): more would only make it start
/// later.
pub(crate) const MAX_INSTANCES: u32 = 128;

/// What the operator decided: the file, then the flags that all commands take.
pub(crate) fn operator(common: &Common) -> Result<Operator, Failure> {
    // As a person would write it: `tidegate.toml`, not `./tidegate.toml`.
    let here = common.workspace == Path::new(".");
    let in_workspace = if here { OPERATOR_FILE.into() } else { common.workspace.join(OPERATOR_FILE) };
    let mut operator = match &common.config {
        Some(file) => Operator::load(file)?,
        None if in_workspace.exists() => Operator::load(&in_workspace)?,
        None => Operator::default(),
    };
    let grants: Vec<Power> = common.grant.iter().map(|word| word.power()).collect();
    if common.plugin.is_empty() && !grants.is_empty() {
        return Err(Failure::setup("--grant is for plugins given with --plugin, and there is none"));
    }
    for path in &common.plugin {
        let mut entry = PluginEntry::of_path(path);
        // Only what the manifest asks for: a grant on the command line is for several plugins at once.
        // A manifest that cannot be read is told of when the plugin is loaded.
        if let Ok(manifest) = config::Manifest::load(&entry.folder.join(config::MANIFEST_FILE)) {
            entry.grants = grants.iter().copied().filter(|power| manifest.capabilities.contains_key(power)).collect();
        }
        operator.plugins.push(entry);
    }
    Ok(operator)
}

/// Applies the flags that choose a model.
pub(crate) fn choose_provider(operator: &mut Operator, args: &ProviderArgs) -> Result<(), Failure> {
    let provider = &mut operator.provider;
    if let Some(word) = args.provider {
        provider.kind = Some(word.kind());
    }
    if let Some(model) = &args.model {
        provider.model = Some(model.clone());
    }
    if let Some(url) = &args.base_url {
        provider.base_url = Some(url.clone());
    }
    if let Some(variable) = &args.api_key_env {
        provider.key =
            KeySource::of_variable(variable).map_err(|wrong| Failure::setup(format_args!("--api-key-env: {wrong}")))?;
    }
    if let Some(file) = &args.recording {
        if args.provider.is_some_and(|word| word.kind() != ProviderKind::Recording) {
            return Err(Failure::setup("--recording answers in place of a provider: leave out --provider"));
        }
        provider.kind = Some(ProviderKind::Recording);
        provider.recording = Some(file.clone());
    }
    Ok(())
}

/// Reads `--permission`.
pub(crate) fn permissions(texts: &[String]) -> Result<Vec<PermissionRule>, Failure> {
    let read = |text: &String| {
        PermissionRule::parse(text)
            .map_err(|bad| Failure::setup(format!("--permission {text}: {}\n  help: {}", bad.message, bad.help)))
    };
    texts.iter().map(read).collect()
}

impl ProviderWord {
    fn kind(self) -> ProviderKind {
        match self {
            Self::Anthropic => ProviderKind::Anthropic,
            Self::OpenaiChat => ProviderKind::OpenaiChat,
            Self::OpenaiResponses => ProviderKind::OpenaiResponses,
            Self::Recording => ProviderKind::Recording,
        }
    }
}

impl PowerWord {
    fn power(self) -> Power {
        match self {
            Self::State => Power::State,
            Self::Session => Power::Session,
            Self::Tools => Power::Tools,
            Self::Prompt => Power::Prompt,
        }
    }
}
