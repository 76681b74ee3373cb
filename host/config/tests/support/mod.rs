//! Runs a folder of the corpus through a reader: files that load, and files that are refused in the words next to them.

pub(crate) mod keys;
pub(crate) mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::SourceFile;
use tidegate_config::Diagnostics;

/// A folder of `tests/corpus` with the folders `valid` and `invalid`, and what reads its files.
pub(crate) struct Corpus<T> {
    pub(crate) name: &'static str,
    pub(crate) read: fn(&[Arc<SourceFile>]) -> Result<T, Diagnostics>,
}

impl<T> Corpus<T> {
    /// All files but the expected words, sorted.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(self.name).join(folder);
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<_> = entries.filter(|path| path.extension().is_none_or(|end| end != "stderr")).collect();
        found.sort();
        found
    }

    fn load(&self, file: &Path) -> Result<T, Diagnostics> {
        let shown = Path::new(self.name).join(file.file_name().unwrap());
        (self.read)(&[SourceFile::new(shown, fs::read_to_string(file).unwrap())])
    }

    /// Asserts that each of the valid files loads.
    pub(crate) fn assert_valid(&self, at_least: usize) {
        let files = self.files("valid");
        assert!(files.len() >= at_least, "only {} files read", files.len());
        for file in files {
            if let Err(found) = self.load(&file) {
                panic!("{} was refused:\n{found}", file.display());
            }
        }
    }

    /// Asserts that each of the invalid files is refused in the expected words, or writes these.
    pub(crate) fn assert_invalid(&self, at_least: usize) {
        let files = self.files("invalid");
        assert!(files.len() >= at_least, "only {} files read", files.len());
        let wrong: String = files.iter().filter_map(|file| self.wrong(file)).collect();
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// What is not as expected with an invalid file.
    fn wrong(&self, file: &Path) -> Option<String> {
        let Err(found) = self.load(file) else { return Some(format!("== {} was accepted\n", file.display())) };
        for one in &found.0 {
            let place = one.location().unwrap_or_else(|| panic!("{one} has no place"));
            assert!(place.file.path.starts_with(self.name), "{one} blames {}", place.file.path.display());
            let has_remedy = one.help.is_some() || one.code.as_str().starts_with("config-");
            assert!(has_remedy, "{one} says nothing about what to do");
        }
        let (expected, found) = (file.with_added_extension("stderr"), format!("{}\n", found.render(false)));
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, &found).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        let differs = format!("== {}\n-- expected\n{wanted}\n-- found\n{found}\n", expected.display());
        (wanted != found).then_some(differs)
    }
}
