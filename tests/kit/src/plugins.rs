//! Extensions made of closures.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{BoxFuture, EventSink, ExtensionHost, Extensions, SessionView, StateError, TtsrEvent};
use flow::{
    AskedCall, CallAnswer, CallFailure, Callback, CallbackKind, FailureCause, GivenResult, InputAnswer, Message,
    ModelOutput, NoAnswer, OutputAnswer, PluginId, Registered, Registration, ResultAnswer, SessionId, Tag, TagAnswer,
    TagPlace, TextAnswer, TextPlace,
};

/// The state of an extension, which a test can change while a turn runs.
pub type KeptState = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

type Answer<A, R> = Box<dyn Fn(A) -> Result<R, String> + Send + Sync>;

/// One extension made of closures; what is not set passes.
#[derive(Default)]
pub struct Plugin {
    pub id: &'static str,
    pub callbacks: Vec<(Callback, u8)>,
    pub required: bool,
    /// Callbacks that can fail closed do.
    pub closed: bool,
    /// What the user saw is kept of what callbacks change.
    pub keeps_shown: bool,
    pub input: Option<Answer<Vec<Message>, InputAnswer>>,
    pub text: Option<Answer<(String, TextPlace), TextAnswer>>,
    pub tag: Option<Answer<(Tag, TagPlace), TagAnswer>>,
    pub output: Option<Answer<ModelOutput, OutputAnswer>>,
    pub ttsr: Option<Answer<TtsrEvent, ()>>,
    pub call: Option<Answer<AskedCall, CallAnswer>>,
    pub result: Option<Answer<GivenResult, ResultAnswer>>,
    /// This callback never answers.
    pub hangs: Option<CallbackKind>,
    /// Calls are not made, for this reason.
    pub skipped: Option<&'static str>,
    /// Every call is waited for.
    pub yields: bool,
    /// The state that conditions read, by key; `None`: it cannot be read.
    pub state: Option<KeptState>,
    /// Its state cannot be saved at the end of the session, for this reason.
    pub unsaved: Option<&'static str>,
}

#[derive(Clone, Default)]
pub struct Plugins(Arc<Vec<Plugin>>);

impl Plugins {
    pub fn new(plugins: Vec<Plugin>) -> Arc<Self> {
        Arc::new(Self(Arc::new(plugins)))
    }

    fn call<A, R: Send + 'static>(
        &self,
        plugin: usize,
        callback: CallbackKind,
        answer: Option<&Answer<A, R>>,
        value: A,
        pass: R,
    ) -> BoxFuture<'static, Result<R, NoAnswer>> {
        if let Some(why) = self.0[plugin].skipped {
            return Box::pin(std::future::ready(Err(NoAnswer::NotPermitted(why.to_owned()))));
        }
        if self.0[plugin].hangs == Some(callback) {
            return Box::pin(std::future::pending());
        }
        let result = answer.map_or(Ok(pass), |answer| answer(value)).map_err(|message| {
            let (cause, frames) = (FailureCause::Returned, Vec::new());
            CallFailure { plugin: self.0[plugin].id.parse().unwrap(), called: callback.into(), cause, message, frames }
                .into()
        });
        let yields = self.0[plugin].yields;
        Box::pin(async move {
            if yields {
                tokio::task::yield_now().await;
            }
            result
        })
    }
}

impl ExtensionHost for Plugins {
    fn registrations(&self) -> Arc<[Registration]> {
        let one = |plugin: &Plugin| Registration {
            plugin: plugin.id.parse().unwrap(),
            version: "1.0.0".into(),
            callbacks: plugin
                .callbacks
                .iter()
                .cloned()
                .map(Registered::from)
                .map(|one| if plugin.closed { one.closed() } else { one })
                .map(|one| if plugin.keeps_shown { one.keeping_shown() } else { one })
                .collect(),
            tools: Vec::new(),
            required: plugin.required,
        };
        self.0.iter().map(one).collect()
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionId,
        _: Arc<dyn SessionView>,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn Extensions>) })
    }

    fn adopt(&self, _: &Arc<dyn Extensions>, _: &[PluginId]) -> Result<Arc<dyn Extensions>, String> {
        Ok(Arc::new(self.clone()))
    }
}

impl Extensions for Plugins {
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        self.call(
            plugin,
            CallbackKind::InputMessages,
            self.0[plugin].input.as_ref(),
            messages.to_vec(),
            InputAnswer::Pass,
        )
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        let value = (text.to_owned(), place.clone());
        self.call(plugin, CallbackKind::PlainText, self.0[plugin].text.as_ref(), value, TextAnswer::Pass)
    }

    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        let value = (tag.clone(), place.clone());
        self.call(plugin, CallbackKind::Tag, self.0[plugin].tag.as_ref(), value, TagAnswer::Keep)
    }

    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        let answer = self.0[plugin].output.as_ref();
        self.call(plugin, CallbackKind::LlmOutput, answer, output.clone(), OutputAnswer::default())
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        self.call(plugin, CallbackKind::TtsrTriggered, self.0[plugin].ttsr.as_ref(), event.clone(), ())
    }

    fn tool_call<'a>(&'a self, plugin: usize, call: &'a AskedCall) -> BoxFuture<'a, Result<CallAnswer, NoAnswer>> {
        self.call(plugin, CallbackKind::ToolCall, self.0[plugin].call.as_ref(), call.clone(), CallAnswer::Pass)
    }

    fn tool_result<'a>(
        &'a self,
        plugin: usize,
        result: &'a GivenResult,
    ) -> BoxFuture<'a, Result<ResultAnswer, NoAnswer>> {
        let answer = self.0[plugin].result.as_ref();
        self.call(plugin, CallbackKind::ToolResult, answer, result.clone(), ResultAnswer::default())
    }

    fn close(&self, _: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        let unsaved = self.0.iter().find_map(|plugin| plugin.unsaved);
        let away = |why: &str| StateError::Unavailable {
            place: "the store of the test".to_owned(),
            cause: Arc::new(std::io::Error::other(why.to_owned())),
        };
        Box::pin(std::future::ready(unsaved.map_or(Ok(()), |why| Err(away(why)))))
    }

    fn state_value(&self, plugin: usize, key: &str) -> Result<Option<Vec<u8>>, String> {
        let state = self.0[plugin].state.as_ref().ok_or("the test gives it no state")?;
        Ok(state.lock().unwrap().get(key).cloned())
    }
}
