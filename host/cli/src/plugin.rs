//! `tidegate plugin build`: from a folder with Rust source to a component.

use std::io::Write;
use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{say, screen};

/// Builds the plugin in `folder` and says where the component is.
pub(crate) fn build(folder: &Path) -> Result<Exit, Failure> {
    let options = tidegate_build::Options::default();
    let built = tidegate_build::build(folder, &options, &mut |line| say::note(line)).map_err(Failure::setup)?;
    let place = built.place_beside_manifest(folder).map_err(Failure::setup)?;
    let mut out = screen::out();
    writeln!(out, "{}", flat(&place.display().to_string()))?;
    out.flush()?;
    Ok(Exit::Completed)
}
