//! The page of all commands, `host/COMMANDS.md`, which is made from the arguments. After a change run
//! `UPDATE_EXPECT=1 cargo test -p tidegate-cli page` and read the difference.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::Args;

const INTRODUCTION: &str = "\
# Commands

`tidegate COMMAND --help` prints it at the terminal. This page is generated from `host/cli/src/args.rs`.
";

#[test]
fn page() {
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    let mut page = INTRODUCTION.to_owned();
    contents(&mut page, &program);
    section(&mut page, &program, "## Flags of every command", |arg| arg.is_global_set());
    section(&mut page, &program, "## Without a command", |arg| !arg.is_global_set());
    commands(&program, &mut |command| {
        let title = format!("## {}", name(command));
        section(&mut page, command, &title, |arg| !arg.is_global_set());
    });
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../COMMANDS.md");
    expect_test::expect_file![file].assert_eq(&page);
}

fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_default().to_owned()
}

/// Every command that does something itself, in the order of `--help`.
fn commands<'a>(command: &'a Command, visit: &mut impl FnMut(&'a Command)) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        if !inner.has_subcommands() {
            visit(inner);
        }
        commands(inner, visit);
    }
}

fn contents(page: &mut String, program: &Command) {
    page.push_str("\n| command | what it does |\n|---|---|\n");
    commands(program, &mut |command| {
        let (name, about) = (name(command), command.get_about().map(ToString::to_string).unwrap_or_default());
        let anchor = name.replace(' ', "-");
        writeln!(page, "| [`{name}`](#{anchor}) | {} |", cell(&about)).expect("writes to a string");
    });
}

fn section(page: &mut String, command: &Command, title: &str, shown: impl Fn(&Arg) -> bool) {
    writeln!(page, "\n{title}").expect("writes to a string");
    if command.get_name() != "tidegate" {
        let usage = command.clone().render_usage().to_string();
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
        write!(page, "\n{about}.\n\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "))
            .expect("writes to a string");
    }
    let of_help = |arg: &Arg| ["help", "version"].contains(&arg.get_id().as_str());
    let rows: Vec<String> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && !of_help(arg) && shown(arg)).map(row).collect();
    if !rows.is_empty() {
        write!(page, "\n| argument | meaning |\n|---|---|\n{}", rows.concat()).expect("writes to a string");
    }
    let is_shown = title != "## Flags of every command";
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()).filter(|_| is_shown) {
        write!(page, "\n```text\n{}\n```\n", after.to_string().trim_end()).expect("writes to a string");
    }
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = cell(&help);
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), cell(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        write!(meaning, ". One of {}", values.join(", ")).expect("writes to a string");
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| format!("`{}`", value.display())).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        write!(meaning, ". Default: {}", defaults.join(", ")).expect("writes to a string");
    }
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    format!("| `{short}{}` | {meaning} |\n", arg.to_string().replace('|', "\\|"))
}

/// A text in the cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
