//! Finding the conversation of a request: by the points of its trail, in memory and in the store.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use flow::SessionId;
use gateway::Trail;

use super::entry::Visited;
use super::links::Link;
use super::{Conversation, Conversations, Heritage};
use crate::HostError;
use crate::session::options::new_session_id;

/// The maximum number of points of a request that are looked up, from its end.
const LOOKED_UP: usize = 64;

impl Conversations {
    /// Finds the latest known point of a request, or the name of the request as a whole.
    pub(super) async fn find(&self, trail: &Trail) -> Result<Option<(Link, String)>, HostError> {
        let mut points = trail.points().iter().rev().take(LOOKED_UP).map(String::as_str);
        let last = points.next().into_iter().chain(trail.without_ids());
        let root = trail.begins().then_some(trail.root());
        let names: Vec<String> = last.chain(points).chain(trail.previous()).chain(root).map(str::to_owned).collect();
        let known = { self.links().first(&names) };
        // Links in memory are always valid; a later point can be known to the store only.
        if let Some((0, link)) = known {
            return Ok(Some((link, names[0].clone())));
        }
        let end = known.as_ref().map_or(names.len(), |(at, _)| *at);
        let store = self.host.live.shared().basis.stored.sessions.clone();
        let stored = match self.noted(store.named(&names[..end]).await) {
            Ok(lines) => lines,
            Err(error) if self.is_local(&error) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let stored = stored.iter().enumerate().find_map(|(at, line)| Some((at, Link::parse(line.as_deref()?)?)));
        Ok(stored.or(known).map(|(at, link)| (link, names[at].clone())))
    }

    /// Returns the conversation of a point, or a new one that branches off there.
    pub(super) async fn continued(&self, link: &Link, name: &str, trail: &Trail) -> Result<Visited, HostError> {
        let parent = self.open(&link.id).await?;
        let tip = parent.conversation.tip();
        let is_tip = match &tip {
            // No exchange runs in a conversation that has just begun, unless its client asks again.
            _ if trail.is_fixed() => true,
            None => trail.is_named() || parent.is_alone(),
            Some(tip) => *tip == link.point || tip == name,
        };
        if is_tip {
            return Ok(parent);
        }
        if trail.begins() {
            return self.open_new(trail).await;
        }
        self.branched.fetch_add(1, Ordering::Relaxed);
        let child = self.open(&new_id()).await?;
        match child.conversation.inherit(&parent.conversation.heritage(), &link.point, link.completed).await {
            Err(HostError::State(error)) if self.is_local(&error) => {
                tracing::warn!(conversation = %child.conversation.id(), %error, "it branches off without the state of its plugins");
            }
            inherited => inherited?,
        }
        Ok(child)
    }

    /// Returns a conversation that is not known: it begins, or began elsewhere.
    pub(super) async fn begun(&self, trail: &Trail) -> Result<Visited, HostError> {
        if !trail.begins() {
            let new = self.open(&new_id()).await?;
            self.continue_side_request(&new.conversation, trail).await?;
            return Ok(new);
        }
        let new = Link { id: new_id(), completed: 0, point: String::new() };
        if !trail.is_named() {
            self.links().insert(trail.root(), new.clone());
            return self.open(&new.id).await;
        }
        // Another instance can have got the same request concurrently.
        let store = self.host.live.shared().basis.stored.sessions.clone();
        let before = match self.noted(store.name(trail.root(), &new.line()).await) {
            Ok(before) => before.and_then(|line| Link::parse(&line)),
            Err(error) if self.is_local(&error) => None,
            Err(error) => return Err(error.into()),
        };
        let link = before.unwrap_or(new);
        self.links().insert(trail.root(), link.clone());
        self.open(&link.id).await
    }

    /// Begins a conversation with the data of a side request, if its client continues that.
    async fn continue_side_request(&self, new: &Conversation, trail: &Trail) -> Result<(), HostError> {
        let Some(point) = trail.first() else { return Ok(()) };
        let data = self.inheritance.side_requests.lock().unwrap_or_else(PoisonError::into_inner).get(point);
        match data {
            Some(data) => new.inherit(&data, point, data.completed_turns()).await,
            None => Ok(()),
        }
    }

    /// Remembers the data of an answered side request.
    pub(super) async fn remember_side_request(&self, point: String, data: Heritage) {
        let size = self.open.count_bytes(data.bytes().await);
        self.inheritance.side_requests.lock().unwrap_or_else(PoisonError::into_inner).insert(point, data, size);
    }

    /// Opens a new conversation that begins with the same messages as another.
    async fn open_new(&self, trail: &Trail) -> Result<Visited, HostError> {
        let link = Link { id: new_id(), completed: 0, point: String::new() };
        self.links().insert(trail.root(), link.clone());
        self.open(&link.id).await
    }
}

/// Returns an id that no other host creates.
fn new_id() -> SessionId {
    use std::hash::{BuildHasher as _, RandomState};
    // Random for each process.
    let random = RandomState::new().hash_one(new_session_id().as_str());
    SessionId::new(format!("{PREFIX}{}-{random:016x}", new_session_id()))
}

/// How the ids of conversations begin.
const PREFIX: &str = "gateway-";

/// Returns whether a session is a conversation of a gateway, whose client makes its requests: its id has the form that a gateway gives, which no
/// person chooses.
///
/// ```
/// use tidegate::{SessionId, gateway::is_conversation};
/// assert!(is_conversation(&SessionId::new("gateway-1a21f8b8ba7-3ff0-1-f2a825de273055d2")));
/// assert!(!is_conversation(&SessionId::new("gateway-notes")));
/// ```
pub fn is_conversation(id: &SessionId) -> bool {
    let rest = id.as_str().strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'));
    rest.is_some_and(|(_, random)| random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
