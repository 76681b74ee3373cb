//! A subscription to what is shown.

use record::Shown;
use turn::Subscription;

use super::Session;

/// The events of a session for a front end: what is shown, and nothing that was not.
#[derive(Debug)]
pub struct ShownSubscription {
    events: Subscription,
    thread: String,
}

impl ShownSubscription {
    /// The next one; `None` when the session has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Shown> {
        loop {
            let event = self.events.next().await?;
            if let Some(shown) = Shown::of(&event, &self.thread) {
                return Some(shown);
            }
        }
    }
}

impl Session {
    /// Subscribes to what is shown from now on, in all turns: as [`Session::subscribe`], without the text that rules and extensions kept from
    /// the user. What was not shown has no place in [`Shown`], so a front end that shows, stores or sends on all that it gets shows none of
    /// it. Evidence of rules, whole answers, what the model reads and what extensions log are in the events and in the transcript alone.
    ///
    /// ```no_run
    /// # async fn show(session: tidegate::Session) {
    /// use tidegate::record::ShownBody;
    ///
    /// let mut shown = session.subscribe_shown();
    /// while let Some(line) = shown.next().await {
    ///     match &line.body {
    ///         ShownBody::CognitionOutDelta(delta) => print!("{}", delta.text),
    ///         ShownBody::CognitionOut(answer) if answer.is_partial => {
    ///             println!("\n(the first {:?} bytes remain)", answer.kept_bytes);
    ///         }
    ///         _ => println!("{}", line.json()),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn subscribe_shown(&self) -> ShownSubscription {
        ShownSubscription { events: self.subscribe(), thread: self.id().as_str().to_owned() }
    }
}
