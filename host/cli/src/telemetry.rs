//! The export of a run to OpenTelemetry, where the standard variables ask for it: begun with the program, finished at its end.

#[cfg(feature = "otel")]
mod built_in;
#[cfg(not(feature = "otel"))]
mod left_out;

#[cfg(feature = "otel")]
pub(crate) use built_in::Export;
#[cfg(not(feature = "otel"))]
pub(crate) use left_out::Export;

use crate::args::Command;

/// Whether a command runs turns.
fn has_turns(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Chat(_) | Command::Acp(_))
}
