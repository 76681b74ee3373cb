//! Another model between two turns.

use std::sync::Arc;

use flow::Price;
use flow::ports::Model;

use super::{Compaction, Session};

impl Session {
    /// Has this model answer from the next turn on, which reports it as [`flow::EventKind::ThreadResumed`]. `compaction` and `price` are those
    /// of the model. The conversation, its budget and everything else stay.
    pub fn set_model(&mut self, model: Arc<dyn Model>, compaction: Option<Compaction>, price: Option<Price>) {
        self.view.set_model(model.provider(), model.name());
        self.parts.model = model;
        (self.parts.settings.compaction, self.parts.settings.price) = (compaction, price);
        // What was learnt about the other model: how it counts, what it refused, and where its context was full.
        self.asked.no_prefill = false;
        self.thread.is_cut_reported = false;
        (self.thread.compaction_failed, self.thread.summary_failed) = (None, None);
        (self.thread.context, self.thread.accepted) = (None, None);
        self.resume_gauge(None);
        self.thread.has_new_model = true;
    }
}
