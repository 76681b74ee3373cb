//! The powers a plugin may have: what they are called, and which are there for everybody.

use std::fmt;

/// One power: an interface that a plugin may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Power {
    /// The time of the host's clock.
    Clock,
    /// The messages of the conversation.
    History,
    /// Lines for the operator.
    Log,
    /// Bytes from the system's random generator.
    Random,
    /// Facts about the session of the call.
    Session,
    /// The plugin's own settings.
    Settings,
    /// Data that persists between calls.
    State,
    /// Which tools the model is offered.
    Tools,
}

impl Power {
    /// All of them, by name.
    pub const ALL: [Self; 8] =
        [Self::Clock, Self::History, Self::Log, Self::Random, Self::Session, Self::Settings, Self::State, Self::Tools];

    /// The power's name in manifests, in the operator's file and as an interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::History => "history",
            Self::Log => "log",
            Self::Random => "random",
            Self::Session => "session",
            Self::Settings => "settings",
            Self::State => "state",
            Self::Tools => "tools",
        }
    }

    /// The power of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|power| power.as_str() == name)
    }

    /// Every plugin has it without asking: it gives away nothing and changes nothing.
    pub fn always_granted(self) -> bool {
        matches!(self, Self::Clock | Self::Log | Self::Random | Self::Settings)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
