//! What [`export!`](crate::export) makes of a type: its registration, and the place where its instance lives.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::{
    CallOptions, InputOptions, LlmOutput, OutputAnswer, OutputOptions, Result, ResultOptions, Settings, Tag, TagAnswer,
    TagOptions, TagPlace, TextAnswer, TextOptions, TextPlace, TtsrOptions, host,
};

/// One callback as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Callback {
    /// `on_input_messages`: rewrites or rejects the messages of one input.
    InputMessages(InputOptions),
    /// `on_plain_text`: rewrites units of shown text.
    PlainText(TextOptions),
    /// `on_tag`: handles sections between registered tags.
    Tag(TagOptions),
    /// `on_llm_output`: observes or rewrites the whole accepted answer.
    LlmOutput(OutputOptions),
    /// `ttsr_triggered`: is notified of matches of stream rules.
    TtsrTriggered(TtsrOptions),
    /// `on_tool_call`: replaces the arguments of calls, or denies them.
    ToolCall(CallOptions),
    /// `on_tool_result`: replaces results of tools.
    ToolResult(ResultOptions),
}

/// A type that [`export!`](crate::export) was called for. Do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not exported as an extension",
    note = "call `tidegate_sdk::export!({Self}: …)` with the callbacks that it implements"
)]
pub trait Exported: Sized + 'static {
    /// Makes an instance: by `Extension::new`, else by `Default`.
    #[doc(hidden)]
    fn make(settings: &Settings) -> Result<Self>;

    /// The callbacks that this instance registers.
    #[doc(hidden)]
    fn registered(&self) -> Vec<Callback>;

    /// The session's instance.
    #[doc(hidden)]
    fn slot() -> &'static LocalKey<RefCell<Option<Self>>>;

    /// Calls `on_plain_text`; `None` where it is not exported.
    #[doc(hidden)]
    fn call_plain_text(&mut self, _text: &str, _place: &TextPlace) -> Option<Result<TextAnswer>> {
        None
    }

    /// Calls `on_tag`; `None` where it is not exported.
    #[doc(hidden)]
    fn call_tag(&mut self, _tag: &Tag, _place: &TagPlace) -> Option<Result<TagAnswer>> {
        None
    }

    /// Calls `on_llm_output`; `None` where it is not exported.
    #[doc(hidden)]
    fn call_llm_output(&mut self, _output: &LlmOutput) -> Option<Result<OutputAnswer>> {
        None
    }
}

/// Returns the callbacks that an extension with these settings registers.
///
/// # Errors
/// It rejects the settings.
pub fn registration<E: Exported>(settings: &Settings) -> Result<Vec<Callback>> {
    host::registering(|| Ok(E::make(settings)?.registered()))
}

/// How `export!` finds the constructor of a type: of two traits with the same method, the one whose receiver needs no extra
/// reference is preferred, so that a type with `Default` and an own `Extension::new` does not conflict.
#[doc(hidden)]
pub mod make {
    use std::marker::PhantomData;

    use crate::{Extension, Result, Settings};

    #[derive(Debug)]
    pub struct Maker<E>(PhantomData<E>);

    impl<E> Maker<E> {
        #[allow(clippy::new_without_default, reason = "only `export!` calls it")]
        pub fn new() -> Self {
            Self(PhantomData)
        }
    }

    pub trait FromSettings<E> {
        fn make(&self, settings: &Settings) -> Result<E>;
    }

    impl<E: Extension> FromSettings<E> for Maker<E> {
        fn make(&self, settings: &Settings) -> Result<E> {
            E::new(settings)
        }
    }

    pub trait FromDefault<E> {
        fn make(&self, settings: &Settings) -> Result<E>;
    }

    impl<E: Default> FromDefault<E> for &Maker<E> {
        fn make(&self, _settings: &Settings) -> Result<E> {
            Ok(E::default())
        }
    }
}

#[doc(hidden)]
pub mod entry {
    use super::Callback;
    use crate::{
        Migrate, OnInputMessages, OnLlmOutput, OnPlainText, OnTag, OnToolCall, OnToolResult, ToolProvider,
        TtsrTriggered,
    };

    pub fn on_input_messages<E: OnInputMessages>(extension: &E) -> Option<Callback> {
        Some(Callback::InputMessages(extension.input_options()))
    }

    pub fn on_plain_text<E: OnPlainText>(extension: &E) -> Option<Callback> {
        Some(Callback::PlainText(extension.text_options()))
    }

    pub fn on_tag<E: OnTag>(extension: &E) -> Option<Callback> {
        Some(Callback::Tag(extension.tag_options()))
    }

    pub fn on_llm_output<E: OnLlmOutput>(extension: &E) -> Option<Callback> {
        Some(Callback::LlmOutput(extension.output_options()))
    }

    pub fn ttsr_triggered<E: TtsrTriggered>(extension: &E) -> Option<Callback> {
        Some(Callback::TtsrTriggered(extension.ttsr_options()))
    }

    pub fn on_tool_call<E: OnToolCall>(extension: &E) -> Option<Callback> {
        Some(Callback::ToolCall(extension.call_options()))
    }

    pub fn on_tool_result<E: OnToolResult>(extension: &E) -> Option<Callback> {
        Some(Callback::ToolResult(extension.result_options()))
    }

    /// Called before any callback, not registered.
    pub fn migrate<E: Migrate>(_extension: &E) -> Option<Callback> {
        None
    }

    /// Tools are listed by an interface of their own, not by `register`.
    pub fn tool_provider<E: ToolProvider>(_extension: &E) -> Option<Callback> {
        None
    }
}

/// Makes a type the extension of this crate, with the callbacks named: exactly these are exported and registered.
///
/// Once per crate, at the top level of a `cdylib`. Each name is one of the callback traits, which the type implements:
/// `OnInputMessages`, `OnPlainText`, `OnTag`, `OnLlmOutput`, `TtsrTriggered`, `OnToolCall`, `OnToolResult`; or `ToolProvider`, `Migrate`.
///
/// ```
/// use tidegate_sdk::prelude::*;
///
/// #[derive(Default)]
/// struct Shout;
///
/// impl OnPlainText for Shout {
///     fn on_plain_text(&mut self, text: &str, _place: &TextPlace) -> Result<TextAnswer> {
///         Ok(TextAnswer::replace(text.to_uppercase()))
///     }
/// }
///
/// tidegate_sdk::export!(Shout: OnPlainText);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($extension:ty : $($callback:ident),+ $(,)?) => {
        const _: () = {
            ::std::thread_local! {
                static INSTANCE: ::std::cell::RefCell<::core::option::Option<$extension>> =
                    const { ::std::cell::RefCell::new(::core::option::Option::None) };
            }

            impl $crate::Exported for $extension {
                fn make(settings: &$crate::Settings) -> $crate::Result<Self> {
                    #[allow(unused_imports)]
                    use $crate::__make::{FromDefault as _, FromSettings as _};
                    (&$crate::__make::Maker::<$extension>::new()).make(settings)
                }

                fn registered(&self) -> ::std::vec::Vec<$crate::Callback> {
                    let all: ::std::vec::Vec<::core::option::Option<$crate::Callback>> =
                        ::std::vec![$($crate::__entry!($callback, self)),+];
                    all.into_iter().flatten().collect()
                }

                fn slot() -> &'static ::std::thread::LocalKey<
                    ::std::cell::RefCell<::core::option::Option<Self>>,
                > {
                    &INSTANCE
                }

                $($crate::__call!($callback);)+
            }

            #[cfg(target_arch = "wasm32")]
            type Guest = $crate::__guest::Guest<$extension>;
            #[cfg(target_arch = "wasm32")]
            $crate::__guest::base::export_registration!(Guest);
            $(
                #[cfg(target_arch = "wasm32")]
                $crate::__export_callback!($callback, Guest);
            )+

            // A use of the type in every build: to the compiler of a native library nothing else calls its code.
            let _: fn(&$crate::Settings) -> $crate::Result<::std::vec::Vec<$crate::Callback>> =
                $crate::registration::<$extension>;
        };
    };
    ($extension:ty $(:)? $(,)?) => {
        ::core::compile_error!("name the callbacks to export: tidegate_sdk::export!(MyExtension: OnPlainText, OnTag)");
    };
}

/// The registration of one callback, by the name of its trait.
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    (OnInputMessages, $extension:expr) => {
        $crate::entry::on_input_messages($extension)
    };
    (OnPlainText, $extension:expr) => {
        $crate::entry::on_plain_text($extension)
    };
    (OnTag, $extension:expr) => {
        $crate::entry::on_tag($extension)
    };
    (OnLlmOutput, $extension:expr) => {
        $crate::entry::on_llm_output($extension)
    };
    (TtsrTriggered, $extension:expr) => {
        $crate::entry::ttsr_triggered($extension)
    };
    (OnToolCall, $extension:expr) => {
        $crate::entry::on_tool_call($extension)
    };
    (OnToolResult, $extension:expr) => {
        $crate::entry::on_tool_result($extension)
    };
    (Migrate, $extension:expr) => {
        $crate::entry::migrate($extension)
    };
    (ToolProvider, $extension:expr) => {
        $crate::entry::tool_provider($extension)
    };
    ($other:ident, $extension:expr) => {
        ::core::compile_error!(::core::concat!(
            "`",
            ::core::stringify!($other),
            "` is not a callback; the callbacks are OnInputMessages, OnPlainText, OnTag, OnLlmOutput, TtsrTriggered, OnToolCall, \
             OnToolResult; tools are provided by ToolProvider, and state of older versions is migrated by Migrate"
        ))
    };
}

/// The method by which tests of a whole answer call one callback, by the name of its trait.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    (OnPlainText) => {
        fn call_plain_text(
            &mut self,
            text: &str,
            place: &$crate::TextPlace,
        ) -> ::core::option::Option<$crate::Result<$crate::TextAnswer>> {
            ::core::option::Option::Some($crate::OnPlainText::on_plain_text(self, text, place))
        }
    };
    (OnTag) => {
        fn call_tag(
            &mut self,
            tag: &$crate::Tag,
            place: &$crate::TagPlace,
        ) -> ::core::option::Option<$crate::Result<$crate::TagAnswer>> {
            ::core::option::Option::Some($crate::OnTag::on_tag(self, tag, place))
        }
    };
    (OnLlmOutput) => {
        fn call_llm_output(
            &mut self,
            output: &$crate::LlmOutput,
        ) -> ::core::option::Option<$crate::Result<$crate::OutputAnswer>> {
            ::core::option::Option::Some($crate::OnLlmOutput::on_llm_output(self, output))
        }
    };
    // The others get no part of an answer; of an unknown name `__entry!` says what is wrong.
    ($other:ident) => {};
}

/// The component's export of one callback, by the name of its trait.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_callback {
    (OnInputMessages, $guest:ident) => {
        $crate::__guest::on_input_messages::export_on_input_messages!($guest);
    };
    (OnPlainText, $guest:ident) => {
        $crate::__guest::on_plain_text::export_on_plain_text!($guest);
    };
    (OnTag, $guest:ident) => {
        $crate::__guest::on_tag::export_on_tag!($guest);
    };
    (OnLlmOutput, $guest:ident) => {
        $crate::__guest::on_llm_output::export_on_llm_output!($guest);
    };
    (TtsrTriggered, $guest:ident) => {
        $crate::__guest::ttsr_triggered::export_ttsr_triggered!($guest);
    };
    (OnToolCall, $guest:ident) => {
        $crate::__guest::on_tool_call::export_on_tool_call!($guest);
    };
    (OnToolResult, $guest:ident) => {
        $crate::__guest::on_tool_result::export_on_tool_result!($guest);
    };
    (Migrate, $guest:ident) => {
        $crate::__guest::migration::export_migration!($guest);
    };
    (ToolProvider, $guest:ident) => {
        $crate::__guest::tool_provider::export_tool_provider!($guest);
    };
    // `__entry!` has already reported the error.
    ($other:ident, $guest:ident) => {};
}
