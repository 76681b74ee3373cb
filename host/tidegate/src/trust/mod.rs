//! The settings of a workspace, whose own `tidegate.toml` counts where its user trusts it.
//!
//! Files are read once: what a person was shown is what is loaded. A file that changes while sessions run is not used before it is trusted
//! as it is then, because a command of the model can have changed it.

mod store;

use std::path::{Path, PathBuf};

use config::{Diagnostics, FoundFiles, LayerKind, Operator, OperatorFiles};
pub use config::{JudgedSettings, RequestedKey, TrustRequest, TrustedFiles};
use flow::{Argument, DiagnosticCode, Preview};

pub use self::store::{TrustError, TrustRecord, TrustStore};
use crate::doctor::Check;

/// Reads the settings of workspaces: where their files are, and which of them are trusted.
#[derive(Clone, Debug, Default)]
pub struct SettingsReader {
    files: OperatorFiles,
    store: TrustStore,
    takes_all: bool,
}

/// The settings of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceSettings {
    from: SettingsReader,
    workspace: PathBuf,
    found: FoundFiles,
    judged: JudgedSettings,
    state: State,
}

/// What becomes of the file of the workspace.
#[derive(Clone, Debug)]
enum State {
    /// It counts, or there is none.
    Counts,
    /// Nobody has decided about it, as it is now.
    Undecided(Undecided),
    /// Somebody has decided to do without it this time.
    LeftOut,
}

#[derive(Clone, Debug, Default)]
struct Undecided {
    /// What was trusted before, as names and values.
    before: Option<Vec<(String, String)>>,
    /// Why an earlier decision is not known.
    problem: Option<String>,
}

impl SettingsReader {
    /// Those of the user, with what the user trusts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads these files.
    #[must_use]
    pub fn files(mut self, files: OperatorFiles) -> Self {
        self.files = files;
        self
    }

    /// Keeps in this store what the user decides.
    #[must_use]
    pub fn store(mut self, store: TrustStore) -> Self {
        self.store = store;
        self
    }

    /// Lets the file of each workspace count as it is when it is read first, without a decision: for scripts that have checked it. Nothing is
    /// kept, and a file that changes while sessions run is not used.
    #[must_use]
    pub fn take_all(mut self, takes_all: bool) -> Self {
        self.takes_all = takes_all;
        self
    }

    /// Reads the settings of a workspace.
    ///
    /// # Errors
    /// A file is there and cannot be read, or something in it is wrong; that of the workspace also where it does not count.
    pub fn read(&self, workspace: &Path) -> Result<WorkspaceSettings, Diagnostics> {
        let found = self.files.read(workspace)?;
        let judged = found.judge()?;
        let state = match &judged.request {
            Some(request) if !self.takes_all => self.state(workspace, request),
            _ => State::Counts,
        };
        Ok(WorkspaceSettings { from: self.clone(), workspace: workspace.to_owned(), found, judged, state })
    }

    fn state(&self, workspace: &Path, request: &TrustRequest) -> State {
        State::Undecided(match self.store.decided(workspace) {
            Ok(Some(record)) if record.digest == request.digest => return State::Counts,
            Ok(record) => Undecided { before: record.map(|record| record.keys), problem: None },
            Err(error) => Undecided { before: None, problem: Some(error.to_string()) },
        })
    }
}

impl WorkspaceSettings {
    /// What applies now: without the file of the workspace, where that does not count.
    pub fn operator(&self) -> &Operator {
        match self.state {
            State::Counts => &self.judged.with,
            State::Undecided(_) | State::LeftOut => &self.judged.without,
        }
    }

    /// What the file of the workspace asks for, where somebody has to decide about it; `None`: it counts, there is none, or it was left out.
    pub fn request(&self) -> Option<&TrustRequest> {
        match self.state {
            State::Undecided(_) => self.judged.request.as_ref(),
            State::Counts | State::LeftOut => None,
        }
    }

    /// The files that were read, whether they count or not.
    pub fn files(&self) -> &FoundFiles {
        &self.found
    }

    /// Whether the workspace has a file, and it counts.
    pub fn has_own_file(&self) -> bool {
        self.operator().layers.iter().any(|layer| layer.kind == LayerKind::Workspace)
    }

    /// Identifies the settings of the workspace that count, for hosts that are shared: workspaces without a file of their own have the same.
    pub fn identity(&self) -> Option<(PathBuf, String)> {
        let digest = self.judged.request.as_ref().map(|request| request.digest.clone());
        self.has_own_file().then(|| (self.workspace.clone(), digest.unwrap_or_default()))
    }

    /// What a person is shown before the decision: every key, what is new about it, and what it means.
    pub fn preview(&self) -> Option<Preview> {
        let (request, State::Undecided(undecided)) = (self.judged.request.as_ref()?, &self.state) else { return None };
        let argument = |key: &RequestedKey| {
            let meaning = key.meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default();
            Argument { name: format!("{}{meaning}", key.name), value: key.value.clone() }
        };
        let diff = undecided.before.as_ref().map(|before| difference(before, request));
        let mut notes = Vec::new();
        if let Some(problem) = &undecided.problem {
            notes.push(format!("what was decided before is not known: {problem}"));
        }
        notes.extend(diff.as_ref().map(|diff| match diff.as_str() {
            "" => "it was trusted before; since then only comments or the layout changed".to_owned(),
            _ => "it was trusted before, and has changed since then: the change is at the end".to_owned(),
        }));
        let diff = diff.filter(|diff| !diff.is_empty());
        Some(Preview { arguments: request.keys.iter().map(argument).collect(), diff, notes })
    }

    /// Trusts the file of the workspace as it was read, and keeps that.
    ///
    /// # Errors
    /// It cannot be kept; then the file does not count.
    pub fn trust(self) -> Result<Self, TrustError> {
        if let Some(request) = self.request() {
            self.from.store.trust(&self.workspace, request)?;
        }
        Ok(Self { state: State::Counts, ..self })
    }

    /// Trusts the file of the workspace again, after the user had this program enable or disable a plugin in it, where it was trusted before.
    /// `text`: what was written. Returns whether the file counts now; it does not where anything else is different.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn switched(&self, text: &str) -> Result<bool, TrustError> {
        let (State::Counts, Some(before), false) = (&self.state, &self.judged.request, self.from.takes_all) else {
            return Ok(self.judged.request.is_none());
        };
        let Ok(now) = self.from.read(&self.workspace) else { return Ok(false) };
        let Some(request) = now.request() else { return Ok(true) };
        let is_written = now.found.layers.iter().any(|one| one.kind == LayerKind::Workspace && one.source.text == text);
        let others = |request: &TrustRequest| -> Vec<(String, String)> {
            let keys = request.keys.iter().filter(|key| !key.name.ends_with(".enabled"));
            keys.map(|key| (key.name.clone(), key.value.clone())).collect()
        };
        if !is_written || others(request) != others(before) {
            return Ok(false);
        }
        now.trust().map(|now| now.has_own_file())
    }

    /// Does without the file of the workspace, whatever was decided about it, as long as these settings are used.
    #[must_use]
    pub fn without(self) -> Self {
        Self { state: State::LeftOut, ..self }
    }

    /// Reads the settings again, for [`HostBuilder::follow`](crate::HostBuilder::follow).
    ///
    /// # Errors
    /// One line: a file cannot be read, is not trusted as it is now, or is one that tools of the workspace can write and nobody can trust.
    pub fn again(&self) -> Result<Operator, String> {
        let now = SettingsReader { takes_all: false, ..self.from.clone() }.read(&self.workspace);
        let now = now.map_err(|found| found.in_one_line())?;
        self.refuse_written(&now.found)?;
        if let State::LeftOut = self.state {
            return Ok(now.judged.without);
        }
        let used = self.judged.request.as_ref().filter(|_| matches!(self.state, State::Counts));
        match (used, now.request()) {
            (used, Some(request)) if used.is_none_or(|used| used.digest != request.digest) => {
                let file = request.file.display();
                Err(format!(
                    "{file} asks for something that is not trusted: `tidegate trust` shows what it is, and trusts it"
                ))
            }
            // What was trusted is gone from the file: nobody decided that either.
            (Some(used), None) if now.judged.request.is_none() => Err(format!(
                "{} does not ask for what was trusted any more: that counts when the program is restarted",
                used.file.display()
            )),
            _ => Ok(now.judged.with),
        }
    }

    /// Refuses a changed file that tools of the workspace can write and that is not the workspace's own.
    fn refuse_written(&self, now: &FoundFiles) -> Result<(), String> {
        let is_written = |path: &Path| {
            let real = |path: &Path| path.canonicalize().ok();
            real(path).zip(real(&self.workspace)).is_some_and(|(file, workspace)| file.starts_with(workspace))
        };
        for layer in now.layers.iter().filter(|layer| layer.kind != LayerKind::Workspace) {
            if !self.found.layers.contains(layer) && is_written(&layer.source.path) {
                let file = layer.source.path.display();
                return Err(format!(
                    "{file} is in the workspace, where tools write: its changes are used when the program is restarted"
                ));
            }
        }
        Ok(())
    }

    /// The check of [`HostBuilder::doctor`](crate::HostBuilder::doctor) about the file of the workspace; `None`: it counts, or there is none.
    pub fn check(&self) -> Option<Check> {
        let request = self.request()?;
        let keys: Vec<&str> = request.keys.iter().map(|key| key.name.as_str()).collect();
        let detail = format!(
            "{} is not trusted, and was not used for these checks: it asks for {}; `tidegate trust` shows and trusts it",
            request.file.display(),
            keys.join(", ")
        );
        Some(Check { code: Some(DiagnosticCode::ConfigUntrusted), ..Check::failed("workspace", detail) })
    }
}

/// What is asked for now and was not, and the reverse; a line begins with `+` or `-`.
fn difference(before: &[(String, String)], request: &TrustRequest) -> String {
    let now: Vec<(&str, &str)> = request.keys.iter().map(|key| (key.name.as_str(), key.value.as_str())).collect();
    let was = |name: &str, value: &str| before.iter().any(|(n, v)| (n.as_str(), v.as_str()) == (name, value));
    let lines = |sign: char, name: &str, value: &str| {
        let lines = value.split('\n').map(|line| format!("{sign}   {line}\n")).collect::<String>();
        format!("{sign} {name}:\n{lines}")
    };
    let gone = before.iter().filter(|(name, value)| !now.contains(&(name.as_str(), value.as_str())));
    let new = now.iter().filter(|(name, value)| !was(name, value));
    let gone: String = gone.map(|(name, value)| lines('-', name, value)).collect();
    gone + &new.map(|(name, value)| lines('+', name, value)).collect::<String>()
}
