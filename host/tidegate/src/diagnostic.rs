//! What is wrong with files and settings, and what to do about it.
//!
//! A [`Diagnostic`] has a stable code, a message, the place in a file and help; [`render`] makes the text of it that a terminal shows.
//! [`HostBuilder::doctor`](crate::HostBuilder::doctor) returns [`Check`]s, and [`Troubles`] collects what went wrong in a session.

pub use crate::doctor::{Check, Health, remedy};
pub use crate::front_end::trouble::Troubles;
pub use config::{Diagnostics, by_kind, render};
pub use flow::{Diagnostic, DiagnosticCode, Label, Location, Severity, SourceFile, Subject};
