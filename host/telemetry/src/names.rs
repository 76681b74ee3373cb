//! The vocabulary of what is measured: the names that several modules write. The metrics of the catalogue have labels of one word, as the
//! text formats want them; spans and the metrics of the conventions have attributes with dots.

/// Labels whose values come from files, guests and models.
pub(crate) const EXTENSION: &str = "extension_id";
pub(crate) const RULE: &str = "rule";
pub(crate) const TOOL: &str = "tool";
pub(crate) const MODEL: &str = "model";
pub(crate) const ROUTE: &str = "route";
pub(crate) const EVENT: &str = "event_type";

/// Attributes that both spans and metrics of the conventions for generative AI have.
#[cfg(feature = "otel")]
pub(crate) mod attribute {
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    /// The value of [`OPERATION`] of a request to a model.
    pub(crate) const CHAT: &str = "chat";
    pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
    pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
    pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
    pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
    pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
    pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
    pub(crate) const ERROR_TYPE: &str = "error.type";
}
