//! A policy that cannot be used is not an absent one: nothing runs.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use tidegate::model::Model;

use super::Machine;
use crate::sessions::support::Scripted;

/// Makes a file that cannot be used.
type Make = fn(&Path);

/// What is done to the file of a policy, and a part of the error.
const FAULTS: [(&str, Make, &str); 13] = [
    ("a folder", |file| fs::create_dir(file).unwrap(), "cannot use the policy"),
    ("a link that leads nowhere", |file| symlink("gone", file).unwrap(), "cannot use the policy"),
    ("a loop of links", |file| symlink("policy.toml", file).unwrap(), "cannot use the policy"),
    (
        "a pipe",
        |file| assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success()),
        "it is not a file",
    ),
    ("a socket", |file| drop(std::os::unix::net::UnixListener::bind(file).unwrap()), "it is not a file"),
    ("a device", |file| symlink("/dev/zero", file).unwrap(), "it is not a file"),
    ("other bytes than text", |file| fs::write(file, [0xff, 0xfe]).unwrap(), "UTF-8"),
    ("too large", |file| fs::write(file, "#".repeat((4 << 20) + 1)).unwrap(), "exceeds the limit"),
    ("no TOML", |file| fs::write(file, "[tools").unwrap(), "config-syntax"),
    ("an unknown key", |file| fs::write(file, "[permission]\nshell = \"deny\"\n").unwrap(), "config-unknown-key"),
    (
        "a file that everybody can write",
        |file| {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        },
        "everybody can write",
    ),
    (
        "a folder that everybody can write",
        |file| {
            fs::write(file, "").unwrap();
            fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        },
        "everybody can write",
    ),
    (
        "a file in the place of its folder",
        |file| {
            fs::remove_dir(file.parent().unwrap()).unwrap();
            fs::write(file.parent().unwrap(), "").unwrap();
        },
        "cannot use the policy",
    ),
];

#[tokio::test]
async fn nothing_runs_under_a_policy_that_cannot_be_used() {
    for (fault, make, part) in FAULTS {
        let machine = Machine::new("");
        fs::remove_file(machine.path("etc/policy.toml")).unwrap();
        let builder = || machine.builder("").model(Scripted::new([]) as Arc<dyn Model>);
        builder().open().await.unwrap_or_else(|error| panic!("there is no policy: {error}"));
        make(&machine.path("etc/policy.toml"));
        let opened = builder().open().await.map(drop).err();
        let loaded = builder().load(machine.path("work")).await.map(drop).err();
        for error in [opened, loaded] {
            let error = error.unwrap_or_else(|| panic!("{fault}: it runs")).to_string();
            assert!(error.contains(part) && error.contains("policy.toml"), "{fault}: {error}");
        }
        let [check] = builder().doctor(machine.path("work")).await.try_into().unwrap();
        let said = format!("{} {}", check.detail, check.code.map(|code| code.as_str()).unwrap_or_default());
        assert!(check.what == "policy" && said.contains(part), "{fault}: {check:?}");
    }
    println!("{} faults", FAULTS.len());
}
