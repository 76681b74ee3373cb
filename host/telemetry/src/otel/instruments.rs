//! The metrics of the conventions for generative AI, counted when a span ends.

use std::collections::BTreeMap;

use crate::names::attribute::{
    CHAT, ERROR_TYPE, OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, TOKEN_TYPE, TOOL_NAME,
};
use crate::otel::fields::Fields;
use crate::otel::genai::{self, Kind};
use crate::otel::layer::Counts;

/// One histogram, as it is described to receivers.
#[derive(Debug)]
pub(crate) struct Instrument {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) description: &'static str,
    pub(crate) bounds: &'static [f64],
}

/// Seconds of a request or a tool, as the conventions have them.
const CALL_S: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Seconds of a turn.
const TURN_S: &[f64] = &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const CALLS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// Each histogram has at most this many combinations of attributes; what is beyond is counted together.
const MOST_SERIES: usize = 1000;

macro_rules! instruments {
    ($($id:ident = $name:literal, $unit:literal, $bounds:expr, $description:literal;)+) => {
        /// The place of an instrument in [`INSTRUMENTS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Id {
            $($id,)+
        }

        pub(crate) const INSTRUMENTS: &[Instrument] =
            &[$(Instrument { name: $name, unit: $unit, description: $description, bounds: $bounds },)+];
    };
}

instruments! {
    RequestTime = "gen_ai.client.operation.duration", "s", CALL_S, "Seconds of requests to the model, up to the end of the answer.";
    FirstChunk = "gen_ai.client.operation.time_to_first_chunk", "s", CALL_S, "Seconds until the first chunk of an answer.";
    TokenUsage = "gen_ai.client.token.usage", "{token}", TOKENS, "Tokens of requests to the model.";
    TurnTime = "gen_ai.invoke_agent.duration", "s", TURN_S, "Seconds of turns.";
    TurnRequests = "gen_ai.invoke_agent.inference_calls", "{inference_call}", CALLS, "Requests to the model in a turn.";
    TurnTools = "gen_ai.invoke_agent.tool_calls", "{tool_call}", CALLS, "Tool calls in a turn.";
    ToolTime = "gen_ai.execute_tool.duration", "s", CALL_S, "Seconds of tool calls, waiting for a person who is asked included.";
}

/// The attributes of one series.
pub(crate) type Attributes = Vec<(&'static str, String)>;

/// The series of an instrument.
pub(crate) type Series = BTreeMap<Attributes, Observed>;

/// What one series has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observed {
    /// The number of observations in each bucket alone, the last without an upper bound.
    pub(crate) buckets: Vec<u64>,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// What all series have counted, by instrument.
#[derive(Debug, Default)]
pub(crate) struct Instruments(BTreeMap<Id, Series>);

impl Instruments {
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static Instrument, &Series)> {
        self.0.iter().map(|(id, series)| (&INSTRUMENTS[*id as usize], series))
    }

    /// Counts a span that has ended. `turn`: the fields that its turn had at its start.
    pub(crate) fn count(&mut self, kind: Kind, fields: &Fields, turn: &Fields, seconds: f64, counts: Counts) {
        match kind {
            Kind::Attempt => self.count_request(fields, turn, seconds),
            Kind::Tool => {
                let all = with_error(vec![(TOOL_NAME, fields.text("tool").to_owned())], fields);
                self.observe(Id::ToolTime, all, seconds);
            }
            Kind::Turn => {
                let model = vec![(REQUEST_MODEL, turn.text("model").to_owned())];
                self.observe(Id::TurnTime, with_error(model.clone(), fields), seconds);
                self.observe(Id::TurnRequests, model.clone(), f64::from(counts.requests));
                self.observe(Id::TurnTools, model, f64::from(counts.tools));
            }
            // The metrics of callbacks are in the catalogue; those of steps are those of their requests and tools.
            Kind::Step | Kind::Callback => {}
        }
    }

    fn count_request(&mut self, fields: &Fields, turn: &Fields, seconds: f64) {
        let mut all = vec![
            (OPERATION, CHAT.to_owned()),
            (PROVIDER, genai::provider(turn).to_owned()),
            (REQUEST_MODEL, turn.text("model").to_owned()),
        ];
        if fields.has("response_model") {
            all.push((RESPONSE_MODEL, fields.text("response_model").to_owned()));
        }
        self.observe(Id::RequestTime, with_error(all.clone(), fields), seconds);
        if let Some(seconds) = fields.decimal("first_chunk_s") {
            self.observe(Id::FirstChunk, all.clone(), seconds);
        }
        for (word, tokens) in [("input", genai::input_tokens(fields, turn)), ("output", fields.number("output_tokens"))]
        {
            if let Some(tokens) = tokens {
                let mut all = all.clone();
                all.push((TOKEN_TYPE, word.to_owned()));
                self.observe(Id::TokenUsage, all, tokens as f64);
            }
        }
    }

    fn observe(&mut self, id: Id, attributes: Attributes, value: f64) {
        let series = self.0.entry(id).or_default();
        let attributes = if series.len() < MOST_SERIES || series.contains_key(&attributes) {
            attributes
        } else {
            // As the specification of the SDK names it.
            vec![("otel.metric.overflow", "true".to_owned())]
        };
        let bounds = INSTRUMENTS[id as usize].bounds;
        let observed = series.entry(attributes).or_insert_with(|| Observed {
            buckets: vec![0; bounds.len() + 1],
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        });
        observed.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
        observed.sum += value;
        observed.min = observed.min.min(value);
        observed.max = observed.max.max(value);
    }
}

fn with_error(mut attributes: Attributes, fields: &Fields) -> Attributes {
    if fields.has("error") {
        attributes.push((ERROR_TYPE, fields.text("error").to_owned()));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_names_make_no_series_without_end() {
        let mut instruments = Instruments::default();
        for number in 0..2 * MOST_SERIES {
            let mut fields = Fields::default();
            fields.set("tool", format!("invented-{number}").into());
            instruments.count(Kind::Tool, &fields, &Fields::default(), 0.02, Counts::default());
        }
        let (_, series) = instruments.all().next().expect("there is one");
        assert_eq!(series.len(), MOST_SERIES + 1);
        let rest = &series[&vec![("otel.metric.overflow", "true".to_owned())]];
        assert_eq!((rest.buckets[1], rest.min, rest.max), (MOST_SERIES as u64, 0.02, 0.02));
    }

    #[test]
    fn bounds_rise_and_names_differ() {
        let names: std::collections::BTreeSet<_> = INSTRUMENTS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), INSTRUMENTS.len());
        assert!(INSTRUMENTS.iter().all(|one| one.bounds.is_sorted() && one.description.ends_with('.')));
    }
}
