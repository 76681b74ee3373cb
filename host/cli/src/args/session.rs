//! The arguments of `session` and `explain`, which are about recorded sessions.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Print the recorded sessions of this workspace, the latest first
    List {
        /// Also print those of other workspaces
        #[arg(long)]
        all: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what happened in a session: inputs, answers, tools, rules, errors
    Show {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Print only this turn
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        /// Print the rules whose reminders are in the conversation instead
        #[arg(long, conflicts_with = "turn")]
        rules: bool,
        /// Print each record, or each rule, as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a session like `show`, and what another process adds to it, until Ctrl-C
    Follow {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Print each record as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a session as Markdown, as one HTML page that needs no network, or as its records
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The format of what is written
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
        /// Write to this file and replace it if it exists [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Create a session that continues another one from the end of a turn, and print its id; no record is copied
    Fork {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The turn after which it continues [default: the last that has finished]
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        /// The id of the new session [default: a new one]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Cancel the turn that another process runs in a session
    Cancel {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Approve the request of a session for a higher limit; a session that was suspended is then continued with `run --resume`
    Approve {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// The new limit: a number, or a time such as 90s, 5m or 1h [default: the one that is proposed]
        #[arg(long, value_name = "N")]
        max: Option<String>,
    },
    /// Deny the request of a session for a higher limit: it stays suspended
    Deny {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Remove the damaged lines of a transcript; the damaged file is kept next to it
    Repair {
        /// The id of the session, or the start of it
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Remove sessions for good, with what plugins keep in them; one that is open, or that a fork continues, is refused
    Rm {
        /// The ids of the sessions, or the starts of them
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
}

const EXPORT_HELP: &str = "\
Example:
    tidegate session export 19ab --format html -o session.html

An export contains everything that was said, also what an extension removed from what the user saw.";

/// The format of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Text for people, with tables of totals
    Markdown,
    /// One page with the timeline, plots and tables, which needs neither the network nor scripts
    Html,
    /// The records, each as a line of JSON
    Jsonl,
}

pub(super) const EXPLAIN_HELP: &str = "\
Examples:
    tidegate explain                      # the last turn of the latest session of this workspace
    tidegate explain 3 --session 19ab
    tidegate explain --prompt 'Which port?'

Each change is printed with the original. With --prompt the request is printed part by part,
each with its origin; nothing is sent.";

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The number of the turn [default: the last]
    #[arg(value_name = "TURN", conflicts_with = "prompt")]
    pub(crate) turn: Option<u32>,
    /// The id of the recorded session, or the start of it [default: the latest session of this workspace]
    #[arg(long, value_name = "ID", conflicts_with = "prompt")]
    pub(crate) session: Option<String>,
    /// Print the request for this input instead; `-` is standard input; plugins see it as in a turn
    #[arg(long, value_name = "INPUT")]
    pub(crate) prompt: Option<String>,
    /// Print a JSON object, with all texts whole
    #[arg(long)]
    pub(crate) json: bool,
}
