//! The policy of a machine: nothing below it widens what it permits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the test prints how many cases it has")]

mod addresses;
mod permissions;
mod required;
mod unusable;

use std::path::PathBuf;

use tempfile::TempDir;
use tidegate::{Host, HostBuilder, Operator};

/// A folder with a policy and a workspace.
struct Machine(TempDir);

impl Machine {
    fn new(policy: &str) -> Self {
        let machine = Self(TempDir::new().unwrap());
        machine.write("etc/policy.toml", policy);
        machine.write("work/notes.txt", "notes");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn operator(&self, text: &str) -> Operator {
        self.write("tidegate.toml", text);
        Operator::load(&self.path("tidegate.toml")).unwrap_or_else(|found| panic!("{found}"))
    }

    /// A host under the policy, with these settings and without what the user of this machine has.
    fn builder(&self, settings: &str) -> HostBuilder {
        let builder = Host::builder(self.operator(settings)).cache_dir(None).max_instances(4).user_rules(None);
        builder.policy_file(self.path("etc/policy.toml"))
    }
}
