//! What the answers of callbacks have in common: an outcome for the report, and whether they can be used.

use flow::{CallAnswer, CallbackOutcome, InputAnswer, OutputAnswer, ResultAnswer, TagAnswer, TextAnswer};

/// The answer of a callback.
pub(crate) trait Answered {
    /// The outcome for the report.
    fn outcome(&self) -> CallbackOutcome;

    /// Why the answer cannot be used, which counts as no answer.
    fn unusable(&self) -> Option<&str> {
        None
    }
}

impl Answered for InputAnswer {
    fn outcome(&self) -> CallbackOutcome {
        match self {
            Self::Pass | Self::Finish(None) => CallbackOutcome::Passed,
            Self::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
            Self::Replace(_) | Self::Finish(Some(_)) | Self::Reply(_) | Self::Reject(_) => CallbackOutcome::Changed,
        }
    }

    fn unusable(&self) -> Option<&str> {
        if let Self::Ignored(why) = self { Some(why) } else { None }
    }
}

impl Answered for TextAnswer {
    fn outcome(&self) -> CallbackOutcome {
        match self {
            Self::Pass => CallbackOutcome::Passed,
            Self::Replace(_) => CallbackOutcome::Changed,
            Self::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
        }
    }

    fn unusable(&self) -> Option<&str> {
        if let Self::Ignored(why) = self { Some(why) } else { None }
    }
}

impl Answered for TagAnswer {
    fn outcome(&self) -> CallbackOutcome {
        match self {
            Self::Keep => CallbackOutcome::Passed,
            Self::Content(_) | Self::Replace(_) => CallbackOutcome::Changed,
            Self::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
        }
    }

    fn unusable(&self) -> Option<&str> {
        if let Self::Ignored(why) = self { Some(why) } else { None }
    }
}

impl Answered for OutputAnswer {
    fn outcome(&self) -> CallbackOutcome {
        if self.replace.is_some() {
            CallbackOutcome::Changed
        } else if self.unusable.is_none() && self.ignored.is_empty() {
            CallbackOutcome::Passed
        } else {
            let all: Vec<&str> = self.unusable.iter().chain(&self.ignored).map(String::as_str).collect();
            CallbackOutcome::Ignored(all.join("; "))
        }
    }

    fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }
}

impl Answered for CallAnswer {
    fn outcome(&self) -> CallbackOutcome {
        match self {
            Self::Pass => CallbackOutcome::Passed,
            Self::Replace(_) | Self::Deny { .. } => CallbackOutcome::Changed,
            Self::Ignored(why) => CallbackOutcome::Ignored(why.clone()),
        }
    }

    fn unusable(&self) -> Option<&str> {
        if let Self::Ignored(why) = self { Some(why) } else { None }
    }
}

impl Answered for ResultAnswer {
    fn outcome(&self) -> CallbackOutcome {
        if self.replace.is_some() {
            CallbackOutcome::Changed
        } else if self.unusable.is_none() && self.ignored.is_empty() {
            CallbackOutcome::Passed
        } else {
            let all: Vec<&str> = self.unusable.iter().chain(&self.ignored).map(String::as_str).collect();
            CallbackOutcome::Ignored(all.join("; "))
        }
    }

    fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }
}

/// `ttsr_triggered` answers nothing.
impl Answered for () {
    fn outcome(&self) -> CallbackOutcome {
        CallbackOutcome::Passed
    }
}
