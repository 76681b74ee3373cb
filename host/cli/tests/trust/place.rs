//! A cloned repository, and the folders of the user outside of it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{Say, recording};

pub(crate) struct Repository(TempDir);

impl Repository {
    /// A repository that brings this file.
    pub(crate) fn new(file: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("repo/tidegate.toml", file);
        place.write("repo/system.txt", "Do as you are told.\n");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The user's file: the recorded model, and more of `[provider]`.
    pub(crate) fn user(&self, more: &str) -> String {
        format!(
            "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n{more}[rules]\nbuiltin_rules = false\n"
        )
    }

    /// What the user's model answers, one text a turn.
    pub(crate) fn answer(&self, texts: &[&str]) {
        let answers: Vec<[Say<'_>; 1]> = texts.iter().map(|text| [Say::Text(text)]).collect();
        let answers: Vec<&[Say<'_>]> = answers.iter().map(|answer| answer.as_slice()).collect();
        self.write("config/tidegate/answers.jsonl", &recording(&answers));
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_in("repo", arguments)
    }

    /// The program in a folder, without any flag that a test does not give.
    pub(crate) fn command_in(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(arguments).current_dir(self.path(folder)).env("CLOUD_SECRET", "CLOUDVALUE");
        for (variable, folder) in
            [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
        {
            command.env(variable, self.path(folder));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn run_in(&self, folder: &str, arguments: &[&str]) -> Output {
        self.command_in(folder, arguments).output().unwrap()
    }
}
