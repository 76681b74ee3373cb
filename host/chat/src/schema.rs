//! The JSON Schema of what a chat shows, for front ends in other languages.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use crate::list::List;
use crate::text::{Str, Text};
use crate::{
    ChatMessage, ChatMode, ChildThread, FlushMode, PendingLimit, PlanItem, Question, Receipt, RenderMode, Sent,
    SteeringMode, TurnError, Waiting,
};

/// Returns the schema as JSON text, with a line end. `definitions` has the types of a state, each under its name; no value is `null`.
pub fn chat_schema() -> String {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    let _added = generator.subschema_for::<(ChatMessage, ChatMode, ChildThread, PlanItem, Question, TurnError)>();
    let _added =
        generator.subschema_for::<(FlushMode, PendingLimit, Receipt, RenderMode, Sent, SteeringMode, Waiting)>();
    let definitions = generator.take_definitions(true);
    let mut schema = schemars::json_schema!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Chat",
        "description": "What the chat primitives show.",
        "definitions": json!(definitions),
    });
    RecursiveTransform(flow::schema::without_null).transform(&mut schema);
    format!("{:#}\n", schema.as_value())
}

/// Gives a type the schema of the one that it is serialized as.
macro_rules! serialized_as {
    ($($type:ty as $plain:ty $(where $parameter:ident)?;)+) => {$(
        impl $(<$parameter: JsonSchema>)? JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                <$plain>::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$plain>::json_schema(generator)
            }
        }
    )+};
}

serialized_as! {
    Str as String;
    Text as String;
    List<T> as Vec<T> where T;
}
