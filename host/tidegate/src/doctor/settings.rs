//! The checks of the settings: which files they come from, and what of the catalogue of events does not count.

use config::{Diagnostics, SettingInForce};

use crate::HostError;
use crate::doctor::Check;
use crate::host::loaded::Loaded;

pub(crate) fn settings_checks(loaded: &Loaded) -> Vec<Check> {
    let (shared, workspace) = (&loaded.shared, &loaded.wanted.workspace);
    let bad = |what: &str, found: Diagnostics| vec![Check::bad(what, &HostError::from(found))];
    // What is to be reported about the other tables is known where they are loaded.
    let mut checks: Vec<Check> = match shared.event_catalogue(workspace) {
        Ok((_, found)) => found.iter().map(|one| Check::of("setup", one)).collect(),
        Err(found) => return bad("events", found),
    };
    match shared.operator.in_force(shared.basis.user_folder(), workspace) {
        Ok((settings, _)) => checks.push(Check::good("settings", sources(&settings))),
        Err(found) => return bad("settings", found),
    }
    checks
}

/// The files, in the order of their layers, each with the number of settings that are in force.
fn sources(settings: &[SettingInForce]) -> String {
    let mut files = Vec::new();
    for place in settings.iter().flat_map(|setting| &setting.origin) {
        match files.iter_mut().find(|(_, file, _)| *file == &place.file) {
            Some((_, _, count)) => *count += 1,
            None => files.push((place.layer, &place.file, 1)),
        }
    }
    files.sort();
    let file = |(layer, file, count): &(config::LayerKind, &std::path::PathBuf, usize)| {
        format!("{count} from {} ({})", file.display(), layer.as_str())
    };
    let set = match files.is_empty() {
        true => "the defaults".to_owned(),
        false => files.iter().map(file).collect::<Vec<_>>().join(", "),
    };
    format!("{set}; `tidegate config show --origin` shows where each value comes from")
}
