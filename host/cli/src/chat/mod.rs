//! `tidegate` without a command, at a terminal: a chat with one session after the other. Keys and events are taken one at a time, by one
//! loop.

mod app;
mod driver;
mod history;
mod input;
mod slash;
mod status;
mod view;

use std::sync::Arc;

use tidegate::chat::ChildThread;
use tidegate::{
    Backlog, CancellationToken, Event, EventKind, Host, Metrics, Model, Operator, Session, SessionId, SessionOptions,
    Subscription,
};
use tokio::sync::mpsc;

use self::app::{Act, App};
use self::slash::{COMMANDS, Slash};
use crate::args::{Chat, Common, ExplainArgs, ExportFormat, RulesCommand, RulesList};

use crate::ask::edit;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::screen::keys::{Key, Keys};
use crate::screen::live::Live;
use crate::screen::{self, terminal};
use crate::style::{self, err};
use crate::{open, print, rules, run, say, session, state};

/// Events that are taken before the rows are drawn again.
const AT_ONCE: usize = 256;

/// Why there is no chat.
const NO_TERMINAL: &str = "a chat needs a terminal for input and output; `tidegate run PROMPT` runs a prompt without one, \
                           and `tidegate --help` lists the commands";

/// What follows a session.
enum Next {
    End(Exit),
    /// Another session, or the same with another model.
    Open {
        id: SessionId,
        model: Option<Arc<dyn Model>>,
    },
    /// A fork of the session, from the end of a turn.
    Fork(Option<u32>),
}

/// Opens the chat.
/// `exported`: the metrics that are exported.
pub(crate) async fn run(common: &Common, args: Chat, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    if !terminal::is_interactive() || !screen::is_live() {
        return Err(Failure::setup(NO_TERMINAL));
    }
    let operator = settings(common, &args)?;
    let again = (common.clone(), args.clone());
    let mut builder = Host::builder(operator)
        .max_instances(open::MAX_INSTANCES)
        .permissions(open::permissions(&args.permission)?)
        .remember_shown_prompts()
        .follow(move || settings(&again.0, &again.1).map_err(Failure::into_line));
    if let Some(metrics) = exported {
        builder = builder.metrics(metrics);
    }
    let host = builder.open().await?;
    let chosen = run::continued(&host, args.go_on, args.resume.as_deref(), common)?;
    let mut options = options(common);
    if let Some(id) = chosen {
        options = options.id(id);
    }
    let session = host.session(options).await?;
    print::warnings(&session.loaded());
    let stop = run::cancel_on_signal();
    let mut place =
        Place { common, host, keys: Keys::read(), live: Live::begin().map_err(|error| not_raw(&error))?, stop };
    let ended = place.sessions(session).await;
    // Before the last lines: they are not above anything any more.
    let Place { host, live, .. } = place;
    drop(live);
    let (exit, id) = ended?;
    if host.transcripts().is_some() {
        say::note(format_args!("continue with `tidegate chat --resume {}`", flat(id.as_str())));
    }
    if let Err(error) = host.remove_expired_sessions() {
        say::note(format_args!("warning: old sessions cannot be removed: {error}"));
    }
    Ok(exit)
}

fn not_raw(error: &std::io::Error) -> Failure {
    Failure::setup(format_args!("the terminal cannot be read key by key: {error}; `tidegate run PROMPT` does without"))
}

fn options(common: &Common) -> SessionOptions {
    SessionOptions::new(&common.workspace).backlog(Backlog::default()).questions_wait()
}

/// The operator's settings with those of the arguments. Sessions are recorded unless the operator has decided otherwise.
fn settings(common: &Common, args: &Chat) -> Result<Operator, Failure> {
    let mut operator = open::operator(common)?;
    open::choose_provider(&mut operator, &args.provider)?;
    if args.no_transcript {
        operator.transcript.enabled = Some(false);
    }
    session::keep(&mut operator);
    if operator.transcript.enabled == Some(true) {
        state::keep(&mut operator);
    }
    Ok(operator)
}

/// Where a chat runs.
struct Place<'c> {
    common: &'c Common,
    host: Host,
    keys: Keys,
    live: Live,
    stop: CancellationToken,
}

impl Place<'_> {
    /// Chats with one session after the other. Returns how it ended, and the last session's id.
    async fn sessions(&mut self, first: Session) -> Result<(Exit, SessionId), Failure> {
        let mut session = first;
        loop {
            let id = session.id().clone();
            let next = self.chat(session.clone()).await;
            session.close();
            session.closed().await;
            let wanted = match next? {
                Next::End(exit) => return Ok((exit, id)),
                Next::Open { id, model } => Ok((id, model)),
                Next::Fork(turn) => self.fork(&id, turn).await.map(|fork| (fork, None)),
            };
            let opened = match wanted {
                Ok((wanted, model)) => self.open(wanted, model).await,
                Err(failure) => Err(failure),
            };
            session = match opened {
                Ok(session) => session,
                Err(failure) => {
                    failure.say();
                    self.open(id, None).await?
                }
            };
            screen::note(err(style::DIM, &format!("  session {}", session.id())));
        }
    }

    async fn open(&self, id: SessionId, model: Option<Arc<dyn Model>>) -> Result<Session, Failure> {
        let mut options = options(self.common).id(id);
        if let Some(model) = model {
            options = options.model(model);
        }
        Ok(self.host.session(options).await?)
    }

    async fn fork(&self, id: &SessionId, turn: Option<u32>) -> Result<SessionId, Failure> {
        let store = self.host.transcripts().ok_or_else(not_recorded)?;
        session::fork_of(self.common, store, id, turn, None).await
    }

    /// Chats with a session until it is left.
    async fn chat(&mut self, session: Session) -> Result<Next, Failure> {
        let is_recorded = self.host.transcripts().is_some();
        let mut events = session.subscribe_from(0).map_err(Failure::late)?;
        let mut app = App::new(session, is_recorded);
        if let Some(before) = events.snapshot.take() {
            app.restore(before.chat)?;
        }
        let (mut children, mut of_children) = Children::new();
        loop {
            self.live.draw(&app.rows(terminal::size().0))?;
            tokio::select! {
                event = events.events.next() => {
                    let Some(event) = event else { return Err(Failure::late("the session has ended")) };
                    self.events(&mut app, &mut children, event, &mut events.events)?;
                }
                Some((child, event)) = of_children.recv() => app.child(&child, &event),
                key = self.keys.next() => {
                    if let Some(next) = self.key(&mut app, key).await? {
                        return Ok(next);
                    }
                }
                () = children.look(&app.session) => {}
                () = self.stop.cancelled() => {
                    app.session.cancel_by("a signal");
                    return Ok(Next::End(Exit::Cancelled));
                }
            }
            app.carry_out();
            if app.has_new_question() {
                self.live.draw(&app.rows(terminal::size().0))?;
                self.keys.forget_letters();
            }
        }
    }

    /// Takes an event and those that follow it already.
    fn events(
        &self,
        app: &mut App,
        children: &mut Children,
        first: Event,
        more: &mut Subscription,
    ) -> Result<(), Failure> {
        let more = std::iter::from_fn(|| more.try_next()).take(AT_ONCE);
        for event in std::iter::once(first).chain(more) {
            if let EventKind::ChildThreadStarted { child, agent, .. } = &event.kind {
                children.awaited.push((child.clone(), agent.clone()));
            }
            app.event(&event)?;
        }
        Ok(())
    }

    async fn key(&mut self, app: &mut App, key: Key) -> Result<Option<Next>, Failure> {
        if let Key::Gone(why) = &key {
            return Err(Failure::late(format_args!("keys cannot be read any more: {why}")));
        }
        match app.key(&key) {
            Act::Stay => {}
            Act::Redraw => self.live.clear()?,
            Act::End(exit) => return Ok(Some(Next::End(exit))),
            Act::Edit(question, arguments) => {
                let edited = self.keys.paused(|| self.live.suspended(|| edit::edited(&arguments)))?;
                match edited {
                    Ok(arguments) => app.edited(&question, arguments),
                    Err(why) => screen::note(format!("{} {why}", err(style::WARNING, "!"))),
                }
            }
            Act::Run(command) => {
                return match self.command(app, command).await {
                    Ok(next) => Ok(next),
                    // A command that fails does not end the chat.
                    Err(failure) => {
                        failure.say();
                        Ok(None)
                    }
                };
            }
        }
        Ok(None)
    }

    async fn command(&self, app: &mut App, command: Slash) -> Result<Option<Next>, Failure> {
        let id = app.session.id().clone();
        let idle = |app: &App| match app.is_running() {
            true => Err(Failure::setup("a turn runs: wait for its end, or cancel it with Ctrl+C")),
            false => Ok(()),
        };
        match command {
            Slash::Help => help(),
            Slash::Cost => app.status.lines(&app.session).iter().for_each(screen::note),
            Slash::Queue(queue) => app.queue_command(&queue),
            Slash::Model(None) => {
                let (provider, model) = app.session.model();
                screen::note(format!("{} ({})", flat(model), flat(provider)));
            }
            Slash::Model(Some(name)) => {
                idle(app)?;
                self.host.transcripts().ok_or_else(not_recorded)?;
                let model =
                    self.host.other_model(&name).ok_or_else(|| Failure::setup("the host has only this model"))?;
                return Ok(Some(Next::Open { id, model: Some(model?) }));
            }
            Slash::Continue => {
                idle(app)?;
                app.session.resume().detach();
            }
            Slash::Plugins(switch) => plugins(&app.session, switch)?,
            Slash::Rules => {
                let list = RulesCommand::List(RulesList { json: false, verbose: false });
                rules::run(self.common, list).await?;
            }
            Slash::Why(turn) => {
                let session = Some(id.as_str().to_owned());
                session::explain(self.common, &ExplainArgs { turn, session, prompt: None, json: false })?;
            }
            Slash::Resume(None) => {
                session::list(self.host.transcripts().ok_or_else(not_recorded)?, Some(&self.common.workspace), false)?;
            }
            Slash::Resume(Some(wanted)) => {
                idle(app)?;
                let store = self.host.transcripts().ok_or_else(not_recorded)?;
                let id = store.find(&wanted)?;
                session::warn_of_workspace(store, &id, &self.common.workspace)?;
                return Ok(Some(Next::Open { id, model: None }));
            }
            Slash::Fork(turn) => {
                idle(app)?;
                self.host.transcripts().ok_or_else(not_recorded)?;
                return Ok(Some(Next::Fork(turn)));
            }
            Slash::Export(file) => {
                let file = file.unwrap_or_else(|| format!("{}.md", id.as_str()).into());
                let format = match file.extension().and_then(|end| end.to_str()) {
                    Some("html" | "htm") => ExportFormat::Html,
                    Some("jsonl") => ExportFormat::Jsonl,
                    _ => ExportFormat::Markdown,
                };
                session::export(self.host.transcripts().ok_or_else(not_recorded)?, &id, format, Some(&file))?;
                screen::note(format!("the session is in {}", flat(&file.display().to_string())));
            }
            Slash::Quit => {
                idle(app)?;
                return Ok(Some(Next::End(Exit::Completed)));
            }
        }
        Ok(None)
    }
}

fn not_recorded() -> Failure {
    Failure::setup("the session is not recorded: it cannot be continued, forked or exported")
}

/// Prints the keys and commands.
fn help() {
    const KEYS: [(&str, &str); 9] = [
        ("Enter", "send; while a turn runs: give it to the running turn"),
        ("Alt+Enter", "queue: send when the turn has completed"),
        ("Ctrl+J", "begin another line"),
        ("Esc", "while a turn runs: interrupt it with what is written, or cancel it"),
        ("Ctrl+C", "cancel the turn, and take back what waits; or clear the line"),
        ("Ctrl+D", "end the chat"),
        ("Up, Down", "earlier inputs"),
        ("Ctrl+L", "clear the screen"),
        ("y n e a", "answer a question: yes, no, edit, always"),
    ];
    for (key, what) in KEYS {
        screen::note(format!("{}  {what}", err(style::STRONG, &format!("{key:<10}"))));
    }
    for (name, arguments, what) in COMMANDS {
        let command = format!("/{name} {arguments}");
        screen::note(format!("{}  {what}", err(style::STRONG, &format!("{:<38}", command.trim()))));
    }
}

/// Lists the plugins of the session, or switches one.
fn plugins(session: &Session, switch: Option<slash::Switch>) -> Result<(), Failure> {
    if let Some(slash::Switch { plugin, on }) = switch {
        let id = plugin.parse().map_err(Failure::setup)?;
        if on {
            session.enable_plugin(&id)?;
        } else {
            session.disable_plugin(&id)?;
        }
        screen::note(format!("{plugin} is {} from the next turn on", if on { "used" } else { "not used" }));
        return Ok(());
    }
    let plugins = session.loaded().plugins();
    if plugins.is_empty() {
        screen::note("no plugins");
    }
    for plugin in plugins {
        let name = err(style::STRONG, plugin.id.as_str());
        screen::note(format!("{name} {}  {}", flat(&plugin.version), flat(&plugin.description)));
    }
    Ok(())
}

/// The sessions of agents that the model has started: their questions are asked here too.
struct Children {
    /// Started, and not found yet.
    awaited: Vec<(SessionId, String)>,
    send: mpsc::UnboundedSender<(ChildThread, Event)>,
}

impl Children {
    /// No children, and where their events arrive.
    fn new() -> (Self, mpsc::UnboundedReceiver<(ChildThread, Event)>) {
        let (send, events) = mpsc::unbounded_channel();
        (Self { awaited: Vec::new(), send }, events)
    }

    /// Subscribes to children whose sessions are open now. Where none is awaited, it waits for ever.
    async fn look(&mut self, session: &Session) {
        if self.awaited.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let open = session.children();
        self.awaited.retain(|(id, agent)| {
            let Some(child) = open.iter().find(|child| child.id() == id) else { return true };
            // It has a backlog because its parent has.
            let Ok(mut events) = child.subscribe_from(0) else { return false };
            let (thread, send) = (ChildThread::new(id.as_str(), agent), self.send.clone());
            tokio::spawn(async move {
                while let Some(event) = events.events.next().await {
                    if send.send((thread.clone(), event)).is_err() {
                        return;
                    }
                }
            });
            false
        });
    }
}
