//! Whole answers: each at every chunking, and after attempts that were stopped at every position.

use super::answer::{Answer, Block, Shown};
use super::cuts::{Cuts, chunkings, single};
use super::{Harness, drive, host};
use crate::{Callback, Exported, Settings};

/// How many bytes of the answer a failure shows before and after a cut.
const AROUND: usize = 24;

/// What one run of an answer did.
struct Ran {
    shown: Shown,
    /// State and log, written out.
    effects: String,
}

impl<E: Exported> Harness<E> {
    /// Puts a whole answer of the model through `on_plain_text`, `on_tag` and `on_llm_output`, as a turn of the host does, and
    /// returns what the user sees.
    ///
    /// It runs at every chunking: in every possible way up to 11 characters; a longer answer in one chunk, by
    /// character, cut in two at each place (at 1,024 places of a very long one), and in 128 drawn ways, the same in each run. Each
    /// run begins with a new instance and the state as it is now. State and log afterwards are those of the run in one chunk; the
    /// position moves to the next step.
    ///
    /// # Panics
    /// What is shown, the calls, the state or the log depend on the chunking; or the extension rejects its settings.
    #[track_caller]
    pub fn answer(&mut self, answer: impl Into<Answer>) -> Shown {
        let answer = answer.into();
        let mut ways = chunkings(&answer.content()).into_iter();
        let whole = ways.next().unwrap_or_default();
        let (first, after) = self.ran(&answer, &whole);
        for cuts in ways {
            let (ran, _) = self.ran(&answer, &cuts);
            if let Some((what, expected, found)) = first.difference(&ran) {
                let cut = described(&answer.content(), &cuts);
                panic!("{what} depends on how the answer is cut\n  in one chunk: {expected}\n  cut {cut}: {found}");
            }
        }
        *self = after;
        let at = &mut self.host.session.at;
        (at.step, at.attempt) = (at.step.saturating_add(1), 1);
        first.shown
    }

    /// As [`Harness::answer`]; and for each place in the answer, once more after an attempt that was stopped there. What was
    /// written to the state during the discarded attempt is undone, and an instance that wrote is replaced.
    ///
    /// # Panics
    /// As [`Harness::answer`]; or what the user sees in the end depends on where the first attempt was stopped.
    #[track_caller]
    pub fn retried(&mut self, answer: impl Into<Answer>) -> Shown {
        let answer = answer.into();
        let whole = Cuts::new();
        let (first, _) = self.ran(&answer, &whole);
        let mut places = single(&answer.accepted());
        places.push(answer.accepted().len());
        for place in places {
            let retried = answer.clone().after_discarding(answer.up_to(place));
            let (Ran { shown, .. }, _) = self.ran(&retried, &whole);
            let ends = [
                ("the text", &first.shown.text, &shown.text),
                ("the reasoning", &first.shown.thinking, &shown.thinking),
            ];
            for (what, expected, found) in ends {
                let stopped = described(&answer.accepted(), &[place]);
                assert!(
                    expected == found,
                    "{what} depends on a discarded attempt\n  without one: {expected:?}\n  after one stopped {stopped}: {found:?}"
                );
            }
        }
        self.answer(answer)
    }

    /// Runs the answer once on a copy of this session, without an instance. Returns the copy afterwards.
    #[track_caller]
    fn ran(&self, answer: &Answer, cuts: &Cuts) -> (Ran, Self) {
        self.check_settings();
        let (manifest, id) = (self.manifest.clone(), self.id.clone());
        let copy = Self { host: self.host.clone(), manifest, id, instance: None, units: 0 };
        let (shown, after) = drive::run(copy, answer, cuts);
        let state = after.host.state.iter().map(|(key, stored)| format!("\n    {key}: {}", stored.written()));
        let log = after.host.log[self.host.log.len()..].iter();
        let log = log.map(|line| format!("\n    {:?}: {} {:?}", line.level, line.message, line.fields));
        let effects = format!("\n  state:{}\n  log:{}", state.collect::<String>(), log.collect::<String>());
        (Ran { shown, effects }, after)
    }

    /// The callbacks that the extension registers.
    #[track_caller]
    pub(super) fn registered(&mut self) -> Vec<Callback> {
        let swapped = super::Swapped::new(&mut self.host);
        let registered = host::registering(|| Ok(E::make(&Settings::host())?.registered()));
        drop(swapped);
        registered.unwrap_or_else(|error: crate::Error| panic!("the extension rejects its settings: {error}"))
    }
}

impl Ran {
    /// The first thing that differs, with both values.
    fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let seen = |ran: &Self| {
            format!("{:?}, reasoning {:?}, before {:?}", ran.shown.text, ran.shown.thinking, ran.shown.discarded)
        };
        let list = |list: &[String]| list.iter().map(|line| format!("\n    {line}")).collect::<String>();
        let views = |ran: &Self| {
            [
                ("what is shown", seen(ran)),
                ("what fails", list(&ran.shown.failures)),
                ("what callbacks are called with", list(&ran.shown.calls)),
                ("the answer to on_llm_output", format!("{:?}", ran.shown.output)),
                ("what callbacks do", ran.effects.clone()),
            ]
        };
        let mut pairs = views(self).into_iter().zip(views(other));
        let ((what, own), (_, other)) = pairs.find(|((_, own), (_, other))| own != other)?;
        Some((what, own, other))
    }
}

impl Answer {
    /// All of its content in the order in which it arrives, discarded attempts first.
    fn content(&self) -> String {
        let discarded = self.discarded.iter().flatten();
        discarded.chain(&self.blocks).map(Block::content).collect()
    }

    fn accepted(&self) -> String {
        self.blocks.iter().map(Block::content).collect()
    }

    /// The first `bytes` bytes of the accepted attempt.
    fn up_to(&self, mut bytes: usize) -> Self {
        let mut partial = Self::new();
        for block in &self.blocks {
            let content = block.content();
            let taken = bytes.min(content.len());
            partial.blocks.push(block.with(&content[..taken]));
            bytes -= taken;
            if bytes == 0 {
                break;
            }
        }
        partial
    }
}

/// The cuts, shown in the text around them where they are few.
fn described(content: &str, cuts: &[usize]) -> String {
    match cuts {
        [] => "nowhere".to_owned(),
        [cut] => {
            let from = content.floor_char_boundary(cut.saturating_sub(AROUND));
            let to = content.ceil_char_boundary(cut.saturating_add(AROUND).min(content.len()));
            format!("at byte {cut}, {:?} | {:?}", &content[from..*cut], &content[*cut..to])
        }
        _ if cuts.len() + 1 == content.chars().count() => "after every character".to_owned(),
        _ => format!("at bytes {cuts:?}"),
    }
}
