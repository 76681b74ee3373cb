//! The interfaces of the contract that a component may import, and the powers they need.

use std::fmt;

use flow::Power;

/// An interface of the contract that a component may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    /// The time of the host's clock.
    Clock,
    /// Events of declared types.
    Events,
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
    /// Lines about a running tool.
    ToolProgress,
    /// Which tools the model is offered.
    Tools,
}

impl Interface {
    /// All of them, by name.
    pub const ALL: [Self; 10] = [
        Self::Clock,
        Self::Events,
        Self::History,
        Self::Log,
        Self::Random,
        Self::Session,
        Self::Settings,
        Self::State,
        Self::ToolProgress,
        Self::Tools,
    ];

    /// Returns the interface's name in the contract. An interface that needs a power is named as the power is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Events => "events",
            Self::Log => "log",
            Self::Random => "random",
            Self::Settings => "settings",
            Self::ToolProgress => "tool-progress",
            Self::History => Power::History.as_str(),
            Self::Session => Power::Session.as_str(),
            Self::State => Power::State.as_str(),
            Self::Tools => Power::Tools.as_str(),
        }
    }

    /// Returns the interface of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interface| interface.as_str() == name)
    }

    /// Returns the power that a plugin must be granted to import it. `None`: every plugin is allowed to, because it gives away
    /// nothing and changes nothing.
    pub fn power(self) -> Option<Power> {
        match self {
            Self::Clock | Self::Events | Self::Log | Self::Random | Self::Settings | Self::ToolProgress => None,
            Self::History => Some(Power::History),
            Self::Session => Some(Power::Session),
            Self::State => Some(Power::State),
            Self::Tools => Some(Power::Tools),
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
