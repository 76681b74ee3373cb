//! What the counts of the provider say about the estimates, and how many tokens a request can have.

use flow::NamedSizes;

use super::Estimate;

/// A count of the provider that is so much more or less than the estimate says nothing about other content: a server that counts
/// nothing, or cuts off what it was sent, or a prompt that is so short that what the provider adds is most of it.
const CREDIBLE: std::ops::RangeInclusive<f64> = 0.4..=3.0;

/// The same of what the refusal of a request says.
const REFUSED: std::ops::RangeInclusive<f64> = 0.2..=10.0;

/// By how much a refused request is larger than its limit where only that is known.
const TOO_LOW: f64 = 1.05;

/// A request of which a server counts less than this share was cut off: no tokenizer makes so few tokens of text.
const CUT: f64 = 0.4;

/// Requests of fewer tokens, by either count, are not compared: what surrounds the text is too much of them, and no context is so small.
const COMPARED: u64 = 256;

/// The largest share of the context that is reserved for an answer.
const RESERVED: u64 = 2;

/// What is reserved where the request says nothing of its answer, at most, and the share of the context.
const ANSWER: u64 = 8_192;
const ANSWER_SHARE: u64 = 8;

/// An answer of fewer tokens is of no use.
const LEAST_ANSWER: u64 = 1_024;

/// The share of the context by which a count can be too low without consequences.
const SLACK_SHARE: u64 = 64;

/// How full the context was by the last count, and how counts differ from estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    /// The last request that was counted, with its answer.
    last: Option<Counted>,
    /// Tokens by the provider for each estimated token.
    ratio: Option<f64>,
    /// Tokens that the model takes, as the refusal of a request has shown.
    learnt: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    tokens: u64,
    estimate: Estimate,
}

/// What is known of a request that was refused because of its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The request, estimated.
    pub(crate) sent: Estimate,
    /// The sizes that the provider named.
    pub(crate) sizes: NamedSizes,
    /// The most tokens of the answer, as the request said.
    pub(crate) answer: Option<u64>,
    /// Tokens that the model takes, as far as the host knows.
    pub(crate) known: Option<u64>,
    /// Tokens of the system prompt and the tools: a model that takes hardly more could not be used at all.
    pub(crate) frame: u64,
}

/// What a request was sent with, and what the provider has counted of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    /// Tokens of the prompt.
    pub(crate) prompt: u64,
    /// Tokens of the prompt and the answer.
    pub(crate) whole: u64,
    /// The prompt, estimated.
    pub(crate) prompt_estimate: Estimate,
    /// The prompt with the answer, estimated.
    pub(crate) whole_estimate: Estimate,
}

impl Gauge {
    /// Tokens of a request. Content that was counted before is as large as it was counted.
    pub(crate) fn tokens(&self, request: Estimate) -> u64 {
        let by_ratio = self.scaled(request);
        let by_count = self.last.map_or(0, |last| {
            let (more, less) = (request.minus(last.estimate), last.estimate.minus(request));
            last.tokens.saturating_add(self.scaled(more)).saturating_sub(self.scaled(less))
        });
        by_ratio.max(by_count)
    }

    /// An estimate in tokens of the provider.
    pub(crate) fn scaled(&self, content: Estimate) -> u64 {
        (content.tokens() as f64 * self.ratio.unwrap_or(1.0)).ceil() as u64
    }

    /// The provider has counted a request. Returns whether it counts so little that it must have cut the request off.
    pub(crate) fn count(&mut self, count: Count) -> bool {
        let estimated = count.prompt_estimate.tokens();
        let ratio = count.prompt as f64 / (estimated.max(1)) as f64;
        if CREDIBLE.contains(&ratio) {
            self.ratio = Some(ratio);
        }
        self.last = Some(Counted { tokens: count.whole, estimate: count.whole_estimate });
        // What was accepted fits, whatever a refusal has said.
        self.learnt = self.learnt.map(|learnt| learnt.max(count.whole));
        let is_compared = count.prompt >= COMPARED && estimated >= COMPARED;
        is_compared && (count.prompt as f64) < self.scaled(count.prompt_estimate) as f64 * CUT
    }

    /// What an earlier process has counted: so many tokens for what is estimated so.
    pub(crate) fn resumed(counted: Option<(u64, Estimate)>) -> Self {
        let ratio = counted.map(|(tokens, estimate)| tokens as f64 / estimate.tokens().max(1) as f64);
        Self {
            last: counted.map(|(tokens, estimate)| Counted { tokens, estimate }),
            ratio: ratio.filter(|ratio| CREDIBLE.contains(ratio)),
            learnt: None,
        }
    }

    /// Takes up that a request was refused because of its size.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        let Refusal { sent, sizes, answer, known, frame } = refusal;
        let limit = sizes.limit.filter(|limit| *limit >= COMPARED);
        // A prompt that is larger than the limit without its answer, or with it, is what was refused.
        if let Some(tokens) = sizes.tokens.filter(|tokens| *tokens >= COMPARED) {
            self.ratio = Some(tokens as f64 / sent.tokens().max(1) as f64)
                .filter(|ratio| REFUSED.contains(ratio))
                .or(self.ratio);
            self.last = Some(Counted { tokens, estimate: sent });
        }
        let took = self.tokens(sent);
        match limit {
            Some(limit) => {
                self.learnt = Some(limit);
                if took.saturating_add(answer.unwrap_or(0).min(limit / RESERVED)) <= limit {
                    // The estimate is too low: the request had more than that.
                    self.ratio = Some(limit as f64 / sent.tokens().max(1) as f64 * TOO_LOW);
                    self.last = None;
                }
            }
            // Either the context is smaller than what it was taken for, or the estimate is too low: in both cases it takes less of this.
            None => {
                let less = self.context(known).unwrap_or(took).min(took) / 10 * 8;
                self.learnt = Some(less.max(frame.saturating_add(LEAST_ANSWER)));
            }
        }
    }

    /// Tokens that the model takes, prompt and answer together: as it was learnt, or as it is known.
    pub(crate) fn context(&self, known: Option<u64>) -> Option<u64> {
        match (self.learnt, known) {
            (Some(learnt), Some(known)) => Some(learnt.min(known)),
            (learnt, known) => learnt.or(known),
        }
    }
}

/// How many tokens a prompt can have in a context of a size, and when the conversation is to become smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Tokens that the model takes, prompt and answer together.
    pub(crate) context: u64,
    /// The most tokens of a prompt that leaves its answer what it needs.
    pub(crate) prompt: u64,
    /// The tokens of a prompt from which on the conversation becomes smaller.
    pub(crate) trigger: u64,
    /// How many it has then.
    pub(crate) aim: u64,
}

impl Capacity {
    /// `at`: the share of the context, from 0 to 1, at which the conversation becomes smaller. `answer`: the most tokens of an answer, as
    /// the request says it.
    pub(crate) fn new(context: u64, at: f64, answer: Option<u64>) -> Self {
        // A limit of answers that leaves nothing for a prompt is lowered in the request.
        let answer = answer.unwrap_or_else(|| ANSWER.min(context / ANSWER_SHARE)).min(context / RESERVED);
        let prompt = context.saturating_sub(answer).saturating_sub(context / SLACK_SHARE);
        let trigger = ((context as f64 * at) as u64).min(prompt);
        Self { context, prompt, trigger, aim: trigger / 10 * 7 }
    }

    /// The most tokens of a prompt that leaves enough for an answer of any use.
    pub(crate) fn most(self) -> u64 {
        let least = LEAST_ANSWER.min(self.context / ANSWER_SHARE);
        self.context.saturating_sub(least).saturating_sub(self.context / SLACK_SHARE).max(self.prompt)
    }

    /// The most tokens that the answer to a prompt can have; `None`: as many as the request says.
    pub(crate) fn answer(self, prompt: u64, asked: Option<u64>) -> Option<u64> {
        let left = self.context.saturating_sub(prompt).saturating_sub(self.context / SLACK_SHARE);
        asked.filter(|asked| *asked > left).map(|_| left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tokens: usize) -> Estimate {
        Estimate::text(&"four".repeat(tokens))
    }

    fn counted(gauge: &mut Gauge, prompt: u64, answer: u64, estimate: usize) -> bool {
        let (prompt_estimate, whole_estimate) = (text(estimate), text(estimate).plus(text(answer as usize)));
        gauge.count(Count { prompt, whole: prompt + answer, prompt_estimate, whole_estimate })
    }

    #[test]
    fn what_was_counted_is_as_large_as_it_was_counted() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.tokens(text(1_000)), 1_000, "nothing is known");
        assert!(!counted(&mut gauge, 1_400, 100, 1_000));
        // 1,400 for 1,000, 100 for the answer, and what was added with the same ratio.
        assert_eq!(gauge.tokens(text(1_200)), 1_680);
        assert_eq!(gauge.tokens(text(500)), 700);
        assert!(!counted(&mut gauge, 600, 0, 1_000));
        assert_eq!(gauge.tokens(text(2_000)), 1_200);
    }

    #[test]
    fn a_count_that_is_not_credible_is_a_lower_bound_only() {
        let mut gauge = Gauge::default();
        assert!(!counted(&mut gauge, 10, 5, 40_000), "no context is so small: a server that does not count");
        assert_eq!(gauge.tokens(text(50_000)), 50_000);
        assert!(!counted(&mut gauge, 9_000, 0, 10), "a fact is one, whatever was estimated");
        assert_eq!(gauge.tokens(text(110)), 9_100);
    }

    #[test]
    fn a_server_that_cuts_prompts_off_is_noticed() {
        let mut gauge = Gauge::default();
        assert!(!counted(&mut gauge, 3_000, 0, 3_000));
        assert!(!counted(&mut gauge, 4_000, 0, 4_100));
        assert!(counted(&mut gauge, 4_096, 0, 20_000));
        assert_eq!(gauge.tokens(text(20_000)), 19_513, "the ratio of before remains");
    }

    #[test]
    fn a_refusal_says_what_the_model_takes() {
        let refused = |known, limit, tokens, times: usize| {
            let mut gauge = Gauge::default();
            let sizes = NamedSizes { limit, tokens };
            let refusal = Refusal { sent: text(100_000), sizes, answer: Some(8_192), known, frame: 2_000 };
            (0..times).for_each(|_| gauge.refuse(refusal));
            (gauge.context(known), gauge.tokens(text(100_000)))
        };
        assert_eq!(refused(Some(200_000), Some(128_000), Some(140_000), 1), (Some(128_000), 140_000));
        assert_eq!(refused(None, Some(128_000), Some(140_000), 1), (Some(128_000), 140_000));
        // What the operator has set is not exceeded.
        assert_eq!(refused(Some(50_000), Some(128_000), Some(140_000), 1).0, Some(50_000));
        // The estimate is too low, or the answer is too long.
        assert_eq!(refused(Some(200_000), Some(200_000), None, 1), (Some(200_000), 210_000));
        assert_eq!(refused(Some(100_000), Some(100_000), None, 1), (Some(100_000), 100_000));
        // Nothing is named: less each time.
        assert_eq!(refused(Some(200_000), None, None, 1).0, Some(80_000));
        assert_eq!(refused(None, None, None, 1).0, Some(80_000));
        assert_eq!(refused(None, None, None, 3).0, Some(51_200));
        assert_eq!(refused(None, None, None, 99).0, Some(3_024), "never so little that nothing fits");
        // Numbers that cannot be.
        assert_eq!(refused(None, Some(3), Some(5), 1).0, Some(80_000));
    }

    #[test]
    fn the_answer_is_reserved_and_a_share_contradicts_nothing() {
        let of = |context, at, answer| {
            let capacity = Capacity::new(context, at, answer);
            (capacity.prompt, capacity.trigger)
        };
        assert_eq!(of(200_000, 0.8, Some(8_192)), (188_683, 160_000));
        assert_eq!(of(200_000, 0.8, Some(64_000)), (132_875, 132_875));
        assert_eq!(of(200_000, 1.0, Some(8_192)), (188_683, 188_683));
        assert_eq!(of(8_000, 0.8, None), (6_875, 6_400));
        // An answer that is as long as the context is not what anybody waits for.
        assert_eq!(of(200_000, 0.8, Some(200_000)), (96_875, 96_875));
        let capacity = Capacity::new(200_000, 0.8, Some(64_000));
        assert_eq!(capacity.answer(100_000, Some(64_000)), None);
        assert_eq!(capacity.answer(150_000, Some(64_000)), Some(46_875));
        assert_eq!(capacity.answer(150_000, None), None);
    }
}
