//! A configuration that cannot be read is not an empty one: every file that guards, and everything that can be wrong with it or with the
//! folders above it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use flow::Diagnostic;
use tidegate_config::agents::Agents;
use tidegate_config::events::Catalogue;
use tidegate_config::rule_sources::{self, Sources};
use tidegate_config::{Diagnostics, Operator, OperatorFiles, Policy, RuleFiles, thread_limits};

/// The folders of a user, of a workspace, and of the machine.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["user", "work", "etc"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn user(&self) -> PathBuf {
        self.path("user")
    }

    fn work(&self) -> PathBuf {
        self.path("work").canonicalize().unwrap_or_else(|_| self.path("work"))
    }

    /// Settings with these keys.
    fn operator(&self, text: &str) -> Operator {
        fs::write(self.path("settings.toml"), text).unwrap();
        Operator::load(&self.path("settings.toml")).unwrap_or_else(|found| panic!("{found}"))
    }
}

/// Reads all files of a kind: what is wrong with them, and whether nothing is there.
type Read = fn(&Place) -> Result<(), Diagnostics>;

/// Files and folders that guard, each with what reads it.
const GUARDS: [(&str, bool, Read); 15] = [
    ("user/tidegate.toml", false, settings),
    ("work/tidegate.toml", false, settings),
    ("etc/policy.toml", false, |place| Policy::read(&place.path("etc/policy.toml")).map(drop)),
    ("user/errors.toml", false, retries),
    ("work/.tidegate/errors.toml", false, retries),
    ("user/thread_limits.toml", false, limits),
    ("work/.tidegate/thread_limits.toml", false, limits),
    ("work/.tidegate/thread_events.toml", false, |place| {
        Catalogue::load(&Operator::default(), None, &place.work()).map(drop)
    }),
    ("work/.ai/config/thread_events.yaml", false, |place| {
        Catalogue::load(&Operator::default(), None, &place.work()).map(drop)
    }),
    ("user/agents", true, agents),
    ("work/.tidegate/agents", true, agents),
    ("user/rules", true, |place| rules(place, "")),
    ("work/.tidegate/rules", true, |place| rules(place, "")),
    ("work/.tidegate/rules/guard.md", false, |place| rules(place, "")),
    ("more/rules", true, |place| rules(place, "[rules]\nfolders = [\"more/rules\"]\n")),
];

fn settings(place: &Place) -> Result<(), Diagnostics> {
    let found = OperatorFiles::new().user_folder(Some(place.user())).read(&place.work())?;
    found.judge().map(drop)
}

fn retries(place: &Place) -> Result<(), Diagnostics> {
    Operator::default().retry_table(Some(&place.user()), &place.work()).map(drop)
}

fn limits(place: &Place) -> Result<(), Diagnostics> {
    thread_limits::load(&Operator::default(), Some(&place.user()), &place.work()).map(drop)
}

fn agents(place: &Place) -> Result<(), Diagnostics> {
    let found: Vec<Diagnostic> = Agents::load(Some(&place.user()), &place.work()).found;
    if found.iter().any(Diagnostic::is_error) { Err(Diagnostics(found)) } else { Ok(()) }
}

/// Whether the host would run with these rules.
fn rules(place: &Place, settings: &str) -> Result<(), Diagnostics> {
    let operator = place.operator(settings);
    let sources = Sources::new(&operator, &[], &place.work(), Vec::new(), &[]);
    let user = place.user().join("rules");
    let folders = rule_sources::folders(&operator, &place.work(), &place.work(), Some(&user));
    let mut files = RuleFiles::new(folders, sources.demands());
    files.look();
    let unmet = sources.build(&files).unmet;
    if unmet.is_empty() { Ok(()) } else { Err(Diagnostics(unmet)) }
}

/// Puts something there that cannot be read.
type Make = fn(&Path);

/// What can be in the place of a file or folder.
const FAULTS: [(&str, Make); 6] = [
    ("a link that leads nowhere", |path| symlink("gone", path).unwrap()),
    ("a link below what leads nowhere", |path| symlink("gone/deeper", path).unwrap()),
    ("a loop of links", |path| symlink(path, path).unwrap()),
    ("a pipe", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ("a device", |path| symlink("/dev/zero", path).unwrap()),
];

/// What can be in the place of the folder that it is in.
const ABOVE: [(&str, Make); 3] = [
    ("in a link that leads nowhere", |folder| symlink("gone", folder).unwrap()),
    ("in a loop of links", |folder| symlink(folder, folder).unwrap()),
    ("in a file", |folder| fs::write(folder, "").unwrap()),
];

fn bytes(path: &Path) {
    fs::write(path, [b'#', 0xff, 0xfe, b'\n']).unwrap();
}

#[test]
fn what_guards_and_cannot_be_read_is_an_error_that_names_it() {
    let mut cases = 0;
    for (name, is_folder, read) in GUARDS {
        read(&Place::new()).unwrap_or_else(|found| panic!("{name}: what is absent is none: {found}"));
        let own: [(&str, Make); 2] = match is_folder {
            true => [("a file", |path| fs::write(path, "").unwrap()), ("other bytes than text", bytes)],
            false => [("a folder", |path| fs::create_dir(path).unwrap()), ("other bytes than text", bytes)],
        };
        for (fault, make) in FAULTS.iter().chain(&own).copied() {
            // A project's link to what is not of the workspace is refused as that, and gives no rule, required or not.
            if name.ends_with("guard.md") && fault == "a device" {
                continue;
            }
            let place = Place::new();
            fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
            make(&place.path(name));
            refused(read(&place), name, fault);
            cases += 1;
        }
        for (fault, make) in ABOVE {
            let place = Place::new();
            let folder = place.path(name).parent().unwrap().to_owned();
            // Nothing is in it yet.
            drop(fs::remove_dir(&folder));
            fs::create_dir_all(folder.parent().unwrap()).unwrap();
            // The workspace itself is there, or the host does not open.
            if folder == place.path("work") {
                fs::create_dir(&folder).unwrap();
                continue;
            }
            make(&folder);
            refused(read(&place), name, fault);
            cases += 1;
        }
    }
    println!("{cases} cases");
    assert!(cases >= 155, "only {cases} cases");
}

fn refused(read: Result<(), Diagnostics>, name: &str, fault: &str) {
    let found = read.err().unwrap_or_else(|| panic!("{name}, {fault}: it counts as none")).to_string();
    // What is wrong with a folder is reported of the folder.
    let known: Vec<&str> = name.split('/').collect();
    assert!(known[1..].iter().any(|part| found.contains(part)), "{name}, {fault}: {found}");
}
