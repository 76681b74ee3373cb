//! What can be completed in the input: commands, models, plugins, sessions and files. What takes a while to find is looked for on another
//! thread, so that keys never wait for it.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate::chat::{Author, ChatState};
use tidegate::{Host, Session};
use tokio::sync::mpsc;

use super::list::Item;
use super::queue::waiting;
use super::slash::COMMANDS;
use super::{files, images};
use crate::print::shorten;
use crate::session::choices;

/// What was looked for.
#[derive(Debug)]
pub(super) enum Found {
    Files(files::Found),
    Sessions(Arc<[Item]>),
    /// The paths of existing images, with their sizes.
    Images {
        paths: Vec<String>,
        present: Vec<(String, u64)>,
    },
}

/// What is known of it.
#[derive(Debug)]
struct Known<T> {
    /// `None`: nobody has looked yet.
    found: Option<T>,
    is_running: bool,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { found: None, is_running: false }
    }
}

pub(super) struct Offers {
    host: Host,
    workspace: PathBuf,
    files: Known<files::Found>,
    sessions: Known<Arc<[Item]>>,
    send: mpsc::UnboundedSender<Found>,
    receive: mpsc::UnboundedReceiver<Found>,
}

/// The items for a word; `None`: they are looked for.
pub(super) type Items = Option<Arc<[Item]>>;

impl Offers {
    pub(super) fn new(host: Host, workspace: PathBuf) -> Self {
        let (send, receive) = mpsc::unbounded_channel();
        Self { host, workspace, files: Known::default(), sessions: Known::default(), send, receive }
    }

    pub(super) fn workspace(&self) -> &PathBuf {
        &self.workspace
    }

    /// The next of what is looked for.
    pub(super) async fn next(&mut self) -> Found {
        match self.receive.recv().await {
            Some(found) => found,
            // Its other end is here.
            None => std::future::pending().await,
        }
    }

    pub(super) fn take(&mut self, found: Found) {
        match found {
            Found::Files(found) => self.files = Known { found: Some(found), is_running: false },
            Found::Sessions(found) => self.sessions = Known { found: Some(found), is_running: false },
            // Images are handled by the input.
            Found::Images { .. } => {}
        }
    }

    /// Checks which of these images exist.
    pub(super) fn look_for_images(&self, paths: Vec<String>) {
        let (send, workspace) = (self.send.clone(), self.workspace.clone());
        tokio::task::spawn_blocking(move || {
            let present = images::present(&paths, &workspace);
            // If nobody receives the result, the chat has ended.
            drop(send.send(Found::Images { paths, present }));
        });
    }

    /// The files of the workspace, and whether there are more. `is_new`: the list opens, and is looked for again behind what is known.
    pub(super) fn files(&mut self, is_new: bool) -> (Items, bool) {
        if is_new && !std::mem::replace(&mut self.files.is_running, true) {
            let (send, workspace) = (self.send.clone(), self.workspace.clone());
            // Where nobody waits for it any more, the chat has ended.
            tokio::task::spawn_blocking(move || drop(send.send(Found::Files(files::of(&workspace)))));
        }
        let found = self.files.found.as_ref();
        (found.map(|found| Arc::clone(&found.items)), found.is_some_and(|found| found.is_cut))
    }

    fn sessions(&mut self, session: &Session, is_new: bool) -> Items {
        if is_new && !std::mem::replace(&mut self.sessions.is_running, true) {
            let (send, workspace, host) = (self.send.clone(), self.workspace.clone(), self.host.clone());
            let own = session.id().clone();
            tokio::task::spawn_blocking(move || {
                // `/resume` prints why they cannot be listed.
                let found = host.transcripts().and_then(|store| choices::of(store, &workspace, Some(&own)).ok());
                drop(send.send(Found::Sessions(found.unwrap_or_default().iter().map(session_item).collect())));
            });
        }
        self.sessions.found.clone()
    }

    /// What an argument of a command can be, after other arguments.
    pub(super) fn arguments(
        &mut self,
        (command, before): (&str, &[&str]),
        (session, state): (&Session, &ChatState),
        is_new: bool,
    ) -> Items {
        let words = |words: &[&str]| words.iter().map(|word| Item::plain(*word, "")).collect::<Vec<_>>();
        let items = match (command, before) {
            ("help", []) => words(&["keys"]),
            ("model", []) => self.models(session),
            ("plugins", []) => words(&["on", "off"]),
            ("plugins", ["on" | "off"]) => {
                let plugins = session.loaded().plugins();
                plugins.iter().map(|one| Item::plain(one.id.as_str(), one.description.as_str())).collect()
            }
            ("queue", []) => words(&["send", "drop", "edit", "clear"]),
            ("queue", ["drop" | "edit"]) => {
                let waiting = waiting(&state.steering);
                (1..).zip(&waiting).map(|(place, one): (u32, _)| Item::plain(place.to_string(), &*one.text)).collect()
            }
            ("resume", []) => return self.sessions(session, is_new),
            ("why" | "fork", []) => turns(state),
            ("export", []) => {
                let name = |ending| Item::plain(format!("{}.{ending}", session.id()), "");
                ["md", "html", "jsonl"].map(name).into()
            }
            _ => Vec::new(),
        };
        Some(items.into())
    }

    /// The models that the host offers; which one the session has.
    pub(super) fn models(&self, session: &Session) -> Vec<Item> {
        let (_, own) = session.model();
        let about = |name: &str| if name == own { "in use" } else { "" };
        self.host.models().iter().map(|name| Item::plain(name, about(name))).collect()
    }
}

/// A session as an item of a list.
pub(super) fn session_item(one: &choices::Choice) -> Item {
    Item { value: one.id.clone(), label: one.title.clone(), about: one.about.clone() }
}

/// The commands, each with its arguments and what it does.
pub(super) fn commands() -> Arc<[Item]> {
    let about = |arguments: &str, what: &str| {
        if arguments.is_empty() { what.to_owned() } else { format!("{arguments}  {what}") }
    };
    COMMANDS.iter().map(|(name, arguments, what)| Item::plain(format!("/{name}"), about(arguments, what))).collect()
}

/// The turns of the conversation with their inputs, the last first.
fn turns(state: &ChatState) -> Vec<Item> {
    let mut turns: Vec<Item> = Vec::new();
    for message in state.messages.messages().rev().filter(|message| message.author == Author::User && message.turn > 0)
    {
        let number = message.turn.to_string();
        // What was sent to a running turn is not how it began.
        turns.pop_if(|last| last.value == number);
        turns.push(Item::plain(number, shorten(&message.text(), 80)));
    }
    turns
}
