//! `tidegate` without a command, at a terminal: a chat with one session after the other. Keys and events are taken one at a time, by one
//! loop.

mod app;
mod asking;
mod bindings;
mod complete;
mod files;
mod history;
mod images;
mod input;
mod list;
mod offers;
mod pager;
mod pick;
mod questions;
mod queue;
mod rows;
mod running;
mod slash;
mod status;
mod view;

use std::sync::Arc;
use std::time::Instant;

use tidegate::event::Backlog;
use tidegate::metrics::Metrics;
use tidegate::model::Model;
use tidegate::{Event, Host, Operator, Session, SessionId, SessionOptions, Subscription};
use tokio::signal::unix::Signal;

use self::app::{Act, App};
use self::bindings::{ANSWERS, BINDINGS, plain};
use self::offers::{Offers, session_item};
use self::slash::{COMMANDS, Slash};
use crate::args::{CHOOSE, Chat, Common, ExplainArgs};
use crate::ask::edit;
use crate::ending::Ending;
use crate::exit::{Exit, Failure};
use crate::metrics::Measured;
use crate::screen::clean::flat;
use crate::screen::keys::{Key, Keys};
use crate::screen::live::{self, Live};
use crate::screen::wrap::{text_columns, wrapped};
use crate::screen::{self, terminal};
use crate::style::{self, err};
use crate::{open, print, rules, run, say, session, trust};

/// Events that are taken before the rows are drawn again.
const AT_ONCE: usize = 256;

/// Why there is no chat.
const NO_TERMINAL: &str = "a chat needs a terminal for input and output; `tidegate run PROMPT` runs a prompt without one, \
                           and `tidegate --help` lists the commands";

/// Why there is no chat at such a terminal.
const DUMB: &str =
    "a chat needs a terminal that can move its cursor, and TERM is `dumb`; `tidegate run PROMPT` does without";

/// What follows a session.
enum Next {
    End(Exit),
    /// Another session, or the same with another model.
    Open {
        id: SessionId,
        model: Option<Arc<dyn Model>>,
    },
    /// A fork of the session, from the end of a turn, with the same model.
    Fork(Option<u32>, Option<Arc<dyn Model>>),
}

/// Opens the chat. `exported`: the metrics that are exported in addition to those of the arguments.
pub(crate) async fn run(common: &Common, args: Chat, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    if !terminal::is_interactive() || !screen::is_live() {
        return Err(Failure::setup(NO_TERMINAL));
    }
    if terminal::is_dumb() {
        return Err(Failure::setup(DUMB));
    }
    let ending = Ending::watch();
    let found = trust::decided(common).await?;
    let operator = settings(common, &args, found.operator().clone())?;
    screen::set_raw(!operator.terminal.markdown);
    let again = (common.clone(), args.clone());
    let measured = Measured::start(&args.metrics, exported).await?;
    let builder = Host::builder(operator)
        .max_instances(open::MAX_INSTANCES)
        .permissions(open::permissions(&args.permission)?)
        .remember_shown_prompts()
        .follow(move || found.again().and_then(|now| settings(&again.0, &again.1, now).map_err(Failure::into_line)));
    let host = measured.count(builder).open().await?;
    let (chosen, begun) = match args.resume.as_deref() {
        Some(CHOOSE) => match picked(&host, common, &ending).await? {
            (Some(id), keys, live) => (Some(id), Some((keys, live))),
            (None, ..) => return measured.finish(Ok(Exit::Cancelled)),
        },
        resume => (run::continued(&host, args.go_on, resume, common)?, None),
    };
    let mut options = options(common);
    if let Some(id) = chosen {
        options = options.id(id);
        if args.provider.names_no_model() {
            options = options.keep_model();
        }
    }
    let session = host.session(options).await?;
    print::warnings(&session.loaded());
    ending.begin_work();
    let continued = terminal::continued().map_err(Failure::setup)?;
    let (keys, live) = match begun {
        Some(begun) => begun,
        None => begin()?,
    };
    let mut place = Place { common, host, keys, live, ending, continued };
    let ended = place.sessions(session).await;
    // Before the last lines: they are not above anything any more.
    let Place { host, live, .. } = place;
    drop(live);
    let (exit, id, waiting) = match ended {
        Ok(ended) => ended,
        Err(failure) => return measured.finish(Err(failure)),
    };
    if waiting > 0 {
        let what = say::count(waiting as u64, "message waits", "messages wait");
        let kept =
            if host.transcripts().is_some() { "kept with the session" } else { "lost: the session is not recorded" };
        say::note(format_args!("{what}: {kept}"));
    }
    if host.transcripts().is_some() {
        say::note(format_args!("continue with `tidegate chat --resume {}`", flat(id.as_str())));
    }
    run::remove_expired(&host, &common.workspace).await;
    measured.finish(Ok(exit))
}

/// Takes the terminal.
fn begin() -> Result<(Keys, Live), Failure> {
    let live = Live::begin().map_err(|error| not_raw(&error))?;
    Ok((Keys::read(), live))
}

/// Has one of the sessions of the workspace chosen.
async fn picked(host: &Host, common: &Common, ending: &Ending) -> Result<(Option<SessionId>, Keys, Live), Failure> {
    let store = host.transcripts().ok_or_else(not_recorded)?;
    let choices = session::choices::of(store, &common.workspace, None)?;
    if choices.is_empty() {
        return Err(Failure::setup("no session of this workspace is recorded; without `--resume`, a new one begins"));
    }
    let items: Vec<_> = choices.iter().map(session_item).collect();
    let (mut keys, live) = begin()?;
    let id = match pick::one_of(&items, &mut keys, &live, ending).await? {
        Some(id) => Some(store.find(&id)?),
        None => None,
    };
    Ok((id, keys, live))
}

/// Cancels what runs in a session, because the program ends. A question stays open: the next process asks it.
fn stop(session: &Session, by: &str) {
    if session.pending_questions().is_empty() {
        session.cancel_by(by);
    }
}

fn not_raw(error: &std::io::Error) -> Failure {
    Failure::setup(format_args!("the terminal cannot be read key by key: {error}; `tidegate run PROMPT` does without"))
}

fn options(common: &Common) -> SessionOptions {
    SessionOptions::new(&common.workspace).backlog(Backlog::default()).questions_wait()
}

fn settings(common: &Common, args: &Chat, operator: Operator) -> Result<Operator, Failure> {
    open::session_settings(common, operator, &args.provider, args.no_transcript, false)
}

/// Where a chat runs.
struct Place<'c> {
    common: &'c Common,
    host: Host,
    keys: Keys,
    live: Live,
    ending: Ending,
    /// Notifies that the program was continued after a stop.
    continued: Signal,
}

impl Place<'_> {
    /// Chats with one session after the other. Returns how it ended, the last session's id, and how many messages wait in it.
    async fn sessions(&mut self, first: Session) -> Result<(Exit, SessionId, usize), Failure> {
        let (mut session, mut shown) = (first, None);
        loop {
            let id = session.id().clone();
            let next = match self.chat(session.clone(), shown.replace(id.clone()) == Some(id.clone())).await {
                // A signal says so as well, earlier or later.
                Err(_) if terminal::is_gone() => {
                    stop(&session, "a signal");
                    Ok(Next::End(Exit::Cancelled))
                }
                next => next,
            };
            let waiting = session.inbox().waiting().len();
            session.close();
            session.closed().await;
            let wanted = match next? {
                Next::End(exit) => return Ok((exit, id, waiting)),
                Next::Open { id, model } => Ok((id, model)),
                Next::Fork(turn, model) => self.fork(&id, turn).await.map(|fork| (fork, model)),
            };
            let before = self.chosen(&session);
            let (opened, model) = match wanted {
                Ok((wanted, model)) => (self.open(wanted, model.clone()).await, model),
                Err(failure) => (Err(failure), None),
            };
            session = match opened {
                Ok(session) => {
                    if let Some(model) = model {
                        screen::note(model_line(model.name(), &self.host.models()));
                    }
                    session
                }
                Err(failure) => {
                    failure.say();
                    self.open(id, before).await?
                }
            };
            screen::note(err(style::DIM, &format!("  session {}", session.id())));
        }
    }

    async fn open(&self, id: SessionId, model: Option<Arc<dyn Model>>) -> Result<Session, Failure> {
        let options = options(self.common).id(id);
        let options = match model {
            Some(model) => options.model(model),
            None => options.keep_model(),
        };
        Ok(self.host.session(options).await?)
    }

    /// The model of a session, where it is another one than the host's.
    fn chosen(&self, session: &Session) -> Option<Arc<dyn Model>> {
        let (_, name) = session.model();
        let is_other = self.host.models().first().is_some_and(|own| *own != name);
        self.host.other_model(&name).filter(|_| is_other)?.ok()
    }

    async fn fork(&self, id: &SessionId, turn: Option<u32>) -> Result<SessionId, Failure> {
        let store = self.host.transcripts().ok_or_else(not_recorded)?;
        session::fork_of(self.common, store, id, turn, None).await
    }

    /// Chats with a session until it is left. `is_on_screen`: its conversation is printed already.
    async fn chat(&mut self, session: Session, is_on_screen: bool) -> Result<Next, Failure> {
        let is_recorded = self.host.transcripts().is_some();
        let mut children = session.child_events().map_err(Failure::late)?;
        let mut events = session.subscribe_from(0).map_err(Failure::late)?;
        let offers = Offers::new(self.host.clone(), self.common.workspace.clone());
        let mut app = App::new(session, is_recorded, offers);
        if let Some(before) = events.snapshot.take() {
            app.restore(before.chat, is_on_screen)?;
        }
        loop {
            let held = self.draw(&mut app)?;
            if held.is_none() {
                app.drawn(Instant::now());
            }
            let wakes = app.wakes(Instant::now()).into_iter().chain(held).min();
            tokio::select! {
                event = events.events.next() => {
                    let Some(event) = event else { return Err(Failure::late("the session has ended")) };
                    self.events(&mut app, event, &mut events.events)?;
                }
                event = children.next() => app.child(&event),
                found = app.offers.next() => app.offered(found),
                (key, at) = self.keys.next() => {
                    if let Some(next) = self.key(&mut app, key, at).await? {
                        return Ok(next);
                    }
                }
                () = until(wakes) => {}
                // Whoever had the terminal meanwhile has left it in another state.
                _ = self.continued.recv() => {
                    self.live.suspended(|| ())?;
                    app.erased();
                }
                _reason = self.ending.requested() => {
                    stop(&app.session, "a signal");
                    return Ok(Next::End(Exit::Cancelled));
                }
            }
            app.carry_out();
        }
    }

    /// Draws the rows at the bottom, or a page in the place of everything. Returns until when nothing is drawn, because the terminal has got
    /// another size.
    fn draw(&self, app: &mut App) -> Result<Option<Instant>, Failure> {
        if let Some((lines, below)) = app.page(terminal::size(), Instant::now()) {
            self.live.cover(&lines, &below)?;
            return Ok(None);
        }
        if self.live.uncover()? {
            app.erased();
        }
        self.live.draw(&app.rows(terminal::size(), Instant::now()))?;
        Ok(live::held_until())
    }

    /// Takes an event and those that follow it already.
    fn events(&self, app: &mut App, first: Event, more: &mut Subscription) -> Result<(), Failure> {
        let more = std::iter::from_fn(|| more.try_next()).take(AT_ONCE);
        for event in std::iter::once(first).chain(more) {
            app.event(&event)?;
        }
        Ok(())
    }

    async fn key(&mut self, app: &mut App, key: Key, at: Instant) -> Result<Option<Next>, Failure> {
        if let Key::Gone(why) = &key {
            return Err(Failure::late(format_args!("keys cannot be read any more: {why}")));
        }
        match app.key(&key, at) {
            Act::Stay => {}
            Act::Redraw => {
                self.live.clear()?;
                app.erased();
            }
            Act::Stop => {
                // When the program is continued, the rows are drawn again because of the signal.
                let stopped = self.keys.paused(|| self.live.suspended(terminal::stop));
                if let Err(why) = stopped? {
                    screen::note(format!("{} the program cannot be stopped: {why}", err(style::WARNING, "!")));
                }
            }
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
            Slash::Help { keys: false } => help(),
            Slash::Help { keys: true } => help_keys(),
            Slash::Cost => app.status.lines(&app.session).iter().for_each(screen::note),
            Slash::Queue(queue) => app.queue_command(&queue),
            Slash::Model(None) => {
                let (provider, model) = app.session.model();
                screen::note(format!("{} ({})", flat(&model), flat(&provider)));
                let models = app.offers.models(&app.session);
                if models.iter().any(|other| other.value != model) {
                    app.choose("model", models);
                } else {
                    screen::note(err(
                        style::DIM,
                        "  the host offers no other model: `models` of `[provider]` lists more",
                    ));
                }
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
            Slash::Rules => drop(rules::in_force(app.session.loaded().rules_in_force())?),
            Slash::Why(turn) => {
                self.host.transcripts().ok_or_else(not_recorded)?;
                let session = Some(id.as_str().to_owned());
                session::explain(self.common, &ExplainArgs { turn, session, prompt: None, json: false })?;
            }
            Slash::Resume(None) => {
                let store = self.host.transcripts().ok_or_else(not_recorded)?;
                match session::choices::of(store, &self.common.workspace, Some(&id))? {
                    others if others.is_empty() => _ = session::list(store, Some(&self.common.workspace), false)?,
                    others => app.choose("resume", others.iter().map(session_item).collect()),
                }
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
                return Ok(Some(Next::Fork(turn, self.chosen(&app.session))));
            }
            Slash::Export(file) => {
                let file = file.unwrap_or_else(|| format!("{}.md", id.as_str()).into());
                let format = session::export_format(&file)?;
                if file.exists() {
                    let name = flat(&file.display().to_string());
                    return Err(Failure::setup(format_args!(
                        "`{name}` is there already: give another name, or remove it"
                    )));
                }
                session::export(self.host.transcripts().ok_or_else(not_recorded)?, &id, format, Some(&file))?;
                screen::note(format!("the session is in {}", flat(&file.display().to_string())));
            }
            Slash::Quit => {
                stop(&app.session, "the user");
                return Ok(Some(Next::End(Exit::Completed)));
            }
        }
        Ok(None)
    }
}

/// Confirms another model. `offered`: the models that the host offers, of which the first is the one it begins with.
fn model_line(name: &str, offered: &[String]) -> String {
    let is_other = offered.len() > 1 && offered.iter().all(|one| one != name);
    let not_listed = if is_other { "; it is not among the models that the operator's file lists" } else { "" };
    format!("model: {} from now on{not_listed}", flat(name))
}

fn not_recorded() -> Failure {
    Failure::setup("the session is not recorded: it cannot be explained, continued, forked or exported")
}

/// Prints the commands: few enough for one screen.
fn help() {
    for (name, arguments, what) in COMMANDS {
        help_line(format!("/{name} {arguments}").trim(), what);
    }
    screen::note(err(style::DIM, "  `/help keys` prints the keys"));
}

/// Prints the keys.
fn help_keys() {
    for binding in BINDINGS {
        let running = match (binding.idle, binding.running) {
            (_, "the same" | "") => String::new(),
            ("", running) => format!("while a turn runs: {running}"),
            (_, running) => format!("; while a turn runs: {running}"),
        };
        help_line(&plain(binding.keys), &plain(&format!("{}{running}", binding.idle)));
    }
    for answer in ANSWERS {
        help_line(&plain(answer.key), &format!("at a question: {}", plain(answer.what)));
    }
}

/// Prints a name, and what it does next to it or, where the name is long, below it.
fn help_line(name: &str, what: &str) {
    const INDENT: usize = 16;
    let columns = text_columns(terminal::size().0).saturating_sub(INDENT).max(INDENT);
    let mut begin = format!("{name:<INDENT$}");
    if terminal::width(name) >= INDENT {
        screen::note(err(style::STRONG, name));
        begin = " ".repeat(INDENT);
    }
    for part in wrapped(what, columns) {
        screen::note(format!("{}{}", err(style::STRONG, &begin), part.trim_end()));
        begin = " ".repeat(INDENT);
    }
}

/// Waits until a time; for ever where there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_listed_is_named_as_such() {
        let offered = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        for (name, names, is_listed) in
            [("b", &["a", "b"][..], true), ("c", &["a", "b"], false), ("c", &["a"], true), ("c", &[], true)]
        {
            let line = model_line(name, &offered(names));
            assert_eq!(line.contains("not among"), !is_listed, "{line}");
            assert!(line.starts_with(&format!("model: {name} from now on")), "{line}");
        }
    }
}
