//! `tidegate guard -- COMMAND…`: runs an agent with a gateway between it and its model.

mod upstreams;

use std::env;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use serve::gateway::{Acting, Conversations, Gateway, Report, Site, Watching};
use tidegate::config::machine_policy;
use tidegate::gateway::ConversationCounts;
use tidegate::metrics::Metrics;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Common, Guard};
use crate::exit::{Exit, Failure};
use crate::gateway::rules;
use crate::say::{self, count};
use crate::{open, run, style};

/// Runs the command, and ends as it ends.
pub(crate) async fn run(common: &Common, args: Guard) -> Result<Exit, Failure> {
    let operator = open::under_policy(open::operator(common)?)?;
    let loaded = rules::load(&operator, &common.workspace).await?;
    loaded.report();
    let rules = loaded.set;
    let (watching, plugins) = (rules::watching(&rules), operator.plugins.len());
    if watching == 0 && plugins == 0 {
        say::note("warning: no rule watches anything: answers pass as they are; `tidegate rules list` shows why");
    }
    let upstreams = upstreams::of(&args, machine_policy()?.as_ref())?;
    let host = crate::gateway::host(&operator, None, None)?;
    let loaded = crate::gateway::loaded(&host, &common.workspace)?;
    crate::gateway::plugin_notes::report(&loaded, false);
    let conversations = Conversations::new(Acting {
        host: &host,
        workspace: &common.workspace,
        rules,
        plugins: None,
        has_plugins: loaded.plugins().iter().any(crate::gateway::gets_traffic),
        watching: Watching::default(),
        without_store: operator.gateway.without_store,
        before: None,
    });
    let routes = upstreams.routes(&conversations);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let site = Site { routes, ..Site::default() };
    let gateway = Gateway::open(address, None, site, &Metrics::new()).await.map_err(Failure::setup)?;
    let base = format!("http://{}", gateway.address());
    let mut child = start(&args, &base)?;
    say::note(format_args!(
        "guard: {}{} between the agent and its model at {base}",
        count(watching as u64, "rule", "rules"),
        if plugins == 0 { String::new() } else { format!(" and {}", count(plugins as u64, "plugin", "plugins")) },
    ));
    let status = wait(&mut child).await?;
    conversations.close().await;
    report(gateway.report());
    report_conversations(&conversations.counts());
    run::remove_expired(&host, &common.workspace).await;
    Ok(Exit::Child(code(status)))
}

/// The variables that clients read their model's address from.
///
/// A proxy for other addresses must not get what is for the gateway.
fn variables(base: &str) -> Vec<(&'static str, String)> {
    let direct = |name: &str| {
        let others = env::var(name).ok().filter(|others| !others.is_empty());
        others.into_iter().chain(["127.0.0.1".to_owned()]).collect::<Vec<_>>().join(",")
    };
    let openai = format!("{base}/v1");
    let opencode = serde_json::json!({"provider": {
        "openai": {"options": {"baseURL": openai}}, "anthropic": {"options": {"baseURL": openai}},
    }});
    vec![
        ("ANTHROPIC_BASE_URL", base.to_owned()),
        ("OPENAI_BASE_URL", openai.clone()),
        ("OPENAI_API_BASE", openai),
        ("OPENCODE_CONFIG_CONTENT", opencode.to_string()),
        ("NO_PROXY", direct("NO_PROXY")),
        ("no_proxy", direct("no_proxy")),
    ]
}

/// Flags of a client that does not read its model's address from a variable: codex has providers by name.
fn flags(program: &OsStr, base: &str) -> Vec<String> {
    if Path::new(program).file_stem() != Some(OsStr::new("codex")) {
        return Vec::new();
    }
    let key = match env::var_os("OPENAI_API_KEY") {
        Some(_) => "env_key=\"OPENAI_API_KEY\"",
        None => "requires_openai_auth=true",
    };
    let provider = format!("{{name=\"OpenAI\",base_url=\"{base}/v1\",wire_api=\"responses\",{key}}}");
    [
        "-c".to_owned(),
        "model_provider=\"tidegate\"".to_owned(),
        "-c".to_owned(),
        format!("model_providers.tidegate={provider}"),
    ]
    .into()
}

fn start(args: &Guard, base: &str) -> Result<Child, Failure> {
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::setup("there is no command to run; write `tidegate guard -- COMMAND…`"));
    };
    let mut command = Command::new(program);
    command.args(flags(program, base)).args(rest).envs(variables(base)).kill_on_drop(true);
    let failed = |error| Failure::setup(format_args!("cannot start {}: {error}", program.to_string_lossy()));
    command.spawn().map_err(failed)
}

/// Waits for the command. A terminal sends its signals to the command as well, which decides what they mean; others are passed on to it.
async fn wait(child: &mut Child) -> Result<ExitStatus, Failure> {
    let failed = |error: std::io::Error| Failure::setup(format_args!("cannot wait for the command: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    loop {
        let passed = tokio::select! {
            ended = child.wait() => return ended.map_err(failed),
            _ = interrupt.recv() => continue,
            _ = terminate.recv() => rustix::process::Signal::TERM,
            _ = hangup.recv() => rustix::process::Signal::HUP,
        };
        let process = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        // Without one it has ended.
        let Some(process) = process else { continue };
        if let Err(error) = rustix::process::kill_process(process, passed) {
            say::note(format_args!("warning: the command did not get a signal: {error}"));
        }
    }
}

/// The exit code of a command, as shells report it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Reports lost and unstored conversations.
fn report_conversations(counts: &ConversationCounts) {
    // After the end, those that could not be stored are lost, too.
    let lost = counts.lost + counts.unstored as u64;
    let of = |number: u64| count(number, "conversation", "conversations");
    if lost > 0 {
        say::note(format_args!(
            "warning: the data of {} is not stored, because the state store is away: rules and masks of a later run do not know it",
            of(lost)
        ));
    }
    if counts.evicted > 0 {
        say::note(format_args!("  {} left memory before the end, for others", of(counts.evicted)));
    }
    if counts.forgotten > 0 {
        say::note(format_args!(
            "  {} were forgotten, because `[state]` is in memory; `backend = \"disk\"` keeps them",
            of(counts.forgotten)
        ));
    }
}

/// Reports the matches of rules.
fn report(report: &Report) {
    let rules = report.rules();
    say::note(format_args!("guard: {} checked", count(report.answers(), "answer", "answers")));
    if report.answers() == 0 {
        say::note(
            "warning: no answer came through the gateway: the command may have its model's address from elsewhere",
        );
    }
    for (notice, times) in report.notices() {
        say::note(format_args!("  {times}× {notice}"));
    }
    for (rule, did) in rules {
        let words = [
            (did.stopped, "stopped and asked again"),
            (did.ended, "ended"),
            (did.reminded, "reminded of"),
            (did.passed, "only noted"),
        ];
        let words: Vec<String> =
            words.iter().filter(|(times, _)| *times > 0).map(|(times, what)| format!("{what} {times}×")).collect();
        say::note(format_args!("  {}: {}", style::err(style::STRONG, &rule), words.join(", ")));
    }
    for (plugin, did) in report.plugins() {
        let words = [(did.changed, "changed"), (did.failed, "failed")];
        let words: Vec<String> =
            words.iter().filter(|(times, _)| *times > 0).map(|(times, what)| format!("{what} {times}×")).collect();
        let words = if words.is_empty() { "changed nothing".to_owned() } else { words.join(", ") };
        say::note(format_args!("  plugin {}: {words}", style::err(style::STRONG, &plugin)));
    }
}
