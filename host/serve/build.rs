//! Embeds the page that `cargo xtask page` has built, or nothing where it was not built.

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where the page is built, the same for all target folders of a clone.
const FOLDER: &str = "../../target/page";

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(name));
    let folder = variable("CARGO_MANIFEST_DIR")?.join(FOLDER);
    // Cargo takes a folder that is not there for one that has changed, at each build.
    fs::create_dir_all(folder.join("assets"))?;
    writeln!(io::stdout(), "cargo::rerun-if-changed={}", folder.display())?;
    let mut files = list(&folder, "/")?;
    files.extend(list(&folder.join("assets"), "/assets/")?);
    let mut code = String::new();
    for (address, file) in &files {
        // A string takes everything.
        let _ =
            writeln!(code, "File {{ address: {address:?}, bytes: include_bytes!({:?}) }},", file.display().to_string());
    }
    fs::write(variable("OUT_DIR")?.join("page.rs"), format!("&[{code}]"))
}

/// Returns the files of a folder with their addresses, in the order of these.
fn list(folder: &Path, address: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push((format!("{address}{}", entry.file_name().to_string_lossy()), entry.path().canonicalize()?));
        }
    }
    files.sort();
    Ok(files)
}
