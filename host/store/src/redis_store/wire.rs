//! The format of state in Redis: names of keys and fields, and the header in front of each value.

use std::sync::Arc;

use flow::SessionId;
use flow::ports::{StateEntry, StateLifetime};

const START: &str = "{tidegate:";
const STATE: &str = "}:state";
const LEASE: &str = "}:lease";

/// The patterns of the keys of all sessions, for `SCAN`.
pub(super) const ALL_STATES: &str = "{tidegate:*}:state";

/// The two keys of a session. They begin alike up to the hash tag's end, so that a cluster keeps them in one slot.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) state: String,
    pub(super) lease: String,
}

impl Keys {
    pub(super) fn of(session: &SessionId) -> Self {
        Self { state: format!("{START}{session}{STATE}"), lease: format!("{START}{session}{LEASE}") }
    }
}

/// Returns the key of a name.
pub(super) fn name_key(name: &str) -> String {
    format!("{{tidegate-name:{name}}}")
}

/// The session that a key belongs to.
pub(super) fn session_of(state_key: &str) -> Option<SessionId> {
    Some(SessionId::new(state_key.strip_prefix(START)?.strip_suffix(STATE)?))
}

/// A value with its times in front of it.
pub(super) fn encode(entry: &StateEntry) -> Vec<u8> {
    let (kind, ttl_ms) = match entry.lifetime {
        StateLifetime::Default { ttl_ms } => ('D', ttl_ms),
        StateLifetime::Own { ttl_ms } => ('O', ttl_ms),
        StateLifetime::Session => ('S', 0),
    };
    let mut bytes = format!("{kind} {ttl_ms} {} {}\n", expires(entry.expires_ms), entry.used_ms).into_bytes();
    bytes.extend_from_slice(&entry.value);
    bytes
}

pub(super) fn expires(expires_ms: Option<u64>) -> String {
    expires_ms.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

/// The reverse of [`encode`]; `None` if the value has no such header.
pub(super) fn decode(key: &str, bytes: &[u8]) -> Option<StateEntry> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, value) = bytes.split_at_checked(end)?;
    let mut words = std::str::from_utf8(header).ok()?.split(' ');
    let (kind, ttl_ms) = (words.next()?, words.next()?.parse().ok()?);
    let lifetime = match kind {
        "D" => StateLifetime::Default { ttl_ms },
        "O" => StateLifetime::Own { ttl_ms },
        "S" => StateLifetime::Session,
        _ => return None,
    };
    let expires_ms = match words.next()? {
        "-" => None,
        at => Some(at.parse().ok()?),
    };
    let used_ms = words.next()?.parse().ok()?;
    let value = Arc::from(value.get(1..)?);
    words.next().is_none().then(|| StateEntry { key: key.to_owned(), value, lifetime, expires_ms, used_ms })
}

#[cfg(test)]
mod tests {
    use super::{Keys, decode, encode, session_of};
    use flow::SessionId;
    use flow::ports::{StateEntry, StateLifetime};
    use proptest::prelude::*;

    /// The part of a key that decides its slot, as the specification of Redis clusters defines it.
    fn hash_tag(key: &str) -> &str {
        let Some((_, rest)) = key.split_once('{') else { return key };
        rest.split_once('}').map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
    }

    #[test]
    fn the_keys_of_a_session_are_in_one_slot_and_name_it() {
        for id in ["chat-1", "", "}", "{", "a}:state", "{}", "ä b"] {
            let session = SessionId::new(id);
            let keys = Keys::of(&session);
            assert_eq!(hash_tag(&keys.state), hash_tag(&keys.lease), "{id}");
            assert_eq!(session_of(&keys.state), Some(session));
        }
        assert_eq!(session_of("{other:chat-1}:state"), None);
    }

    #[test]
    fn a_value_without_a_valid_header_is_refused() {
        for bytes in ["", "D 1 2 3", "X 1 2 3\n", "D 1 2\n", "D 1 2 3 4\n", "D a 2 3\n", "D 1 x 3\n"] {
            assert_eq!(decode("key", bytes.as_bytes()), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            value in prop::collection::vec(any::<u8>(), 0..40),
            (kind, ttl_ms, used_ms) in (0..3u8, any::<u64>(), any::<u64>()),
            expires_ms in any::<Option<u64>>(),
        ) {
            let lifetimes = [StateLifetime::Default { ttl_ms }, StateLifetime::Own { ttl_ms }, StateLifetime::Session];
            let lifetime = lifetimes[usize::from(kind)];
            let entry = StateEntry { key: "key".to_owned(), value: value.into(), lifetime, expires_ms, used_ms };
            prop_assert_eq!(decode("key", &encode(&entry)), Some(entry));
        }
    }
}
