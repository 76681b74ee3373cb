//! Access for the benches to the stage that puts together the prompt. Not a stable API.

use std::sync::Arc;

use flow::{Message, Prompt, PromptAddition, Registration, SystemBlock};

use crate::events::Hub;
use crate::prompt::Frame;
use flow::ports::{Clock, Extensions};
use guard::Caller;
use guard::additions::{Facts, Texts};

/// The stage that puts together what is sent to the model.
pub struct Assembly {
    frame: Frame,
    caller: Caller,
}

impl Assembly {
    /// A prompt with these additions, whose conditions read the state of the extensions.
    pub fn new(
        system: &[SystemBlock],
        additions: &[PromptAddition],
        registrations: Arc<[Registration]>,
        extensions: Arc<dyn Extensions>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let caller = Caller::new(registrations, extensions, Arc::new(Hub::new(clock)));
        Self { frame: Frame::new(system, additions, None), caller }
    }

    /// Evaluates the conditions and puts together a request, as at the start of a step. Returns what is to be reported too.
    pub fn assemble(&mut self, history: &[Arc<Message>]) -> (Prompt, Vec<String>) {
        let texts = if self.frame.looks_at_texts() { Texts::of(history) } else { Texts::default() };
        let (model, agent, workspace) = ("bench", "main", "/work/shop");
        let facts = Facts { model, agent, workspace, turn: 2, texts, state: &self.caller };
        let reported = self.frame.choose(&facts);
        (self.frame.prompt(history.to_vec(), Vec::new()), reported)
    }
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly").finish_non_exhaustive()
    }
}
