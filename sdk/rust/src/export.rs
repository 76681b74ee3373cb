//! What [`export!`](crate::export) makes of a type: its registration, and the place where its instance lives.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::{
    Extension, OnFailure, OnInputMessages, OnLlmOutput, OnPlainText, OnTag, OutputMode, Result, Settings, TextUnit,
    TtsrTriggered,
};

/// One callback as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callback {
    /// `on_input_messages`
    InputMessages,
    /// `on_plain_text`, with this unit
    PlainText(TextUnit),
    /// `on_tag`, for these patterns
    Tag(Vec<String>),
    /// `on_llm_output`, in this mode
    LlmOutput(OutputMode),
    /// `ttsr_triggered`
    TtsrTriggered,
}

/// A callback and its priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Which.
    pub callback: Callback,
    /// 0 to 100, higher first.
    pub priority: u8,
    /// What happens when it did not do its work.
    pub on_failure: OnFailure,
}

/// A type that [`export!`](crate::export) was called for. Not to be implemented by hand.
pub trait Exported: Extension {
    /// What this instance registers.
    #[doc(hidden)]
    fn registered(&self) -> Vec<Registered>;

    /// The session's instance.
    #[doc(hidden)]
    fn slot() -> &'static LocalKey<RefCell<Option<Self>>>;
}

/// What an extension with these settings registers.
///
/// # Errors
/// It refuses the settings.
pub fn registration<E: Exported>(settings: &Settings) -> Result<Vec<Registered>> {
    Ok(E::new(settings)?.registered())
}

#[doc(hidden)]
pub mod entry {
    use super::*;

    pub fn on_input_messages<E: OnInputMessages>(extension: &E) -> Registered {
        let (priority, on_failure) = (extension.priority(), extension.on_failure());
        Registered { callback: Callback::InputMessages, priority, on_failure }
    }

    pub fn on_plain_text<E: OnPlainText>(extension: &E) -> Registered {
        let (priority, on_failure) = (extension.priority(), extension.on_failure());
        Registered { callback: Callback::PlainText(extension.unit()), priority, on_failure }
    }

    pub fn on_tag<E: OnTag>(extension: &E) -> Registered {
        let (priority, on_failure) = (extension.priority(), extension.on_failure());
        Registered { callback: Callback::Tag(extension.tags()), priority, on_failure }
    }

    pub fn on_llm_output<E: OnLlmOutput>(extension: &E) -> Registered {
        let (priority, on_failure) = (extension.priority(), extension.on_failure());
        Registered { callback: Callback::LlmOutput(extension.mode()), priority, on_failure }
    }

    pub fn ttsr_triggered<E: TtsrTriggered>(extension: &E) -> Registered {
        let (priority, on_failure) = (extension.priority(), OnFailure::Unspecified);
        Registered { callback: Callback::TtsrTriggered, priority, on_failure }
    }
}

/// Makes a type the extension of this crate, with the callbacks named: exactly these are exported and registered.
///
/// Once per crate, at the top level of a `cdylib`. Each name is one of the callback traits, which the type implements:
/// `OnInputMessages`, `OnPlainText`, `OnTag`, `OnLlmOutput`, `TtsrTriggered`.
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
                fn registered(&self) -> ::std::vec::Vec<$crate::Registered> {
                    ::std::vec![$($crate::__entry!($callback, self)),+]
                }

                fn slot() -> &'static ::std::thread::LocalKey<
                    ::std::cell::RefCell<::core::option::Option<Self>>,
                > {
                    &INSTANCE
                }
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
            let _: fn(&$crate::Settings) -> $crate::Result<::std::vec::Vec<$crate::Registered>> =
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
    ($other:ident, $extension:expr) => {
        ::core::compile_error!(::core::concat!(
            "`",
            ::core::stringify!($other),
            "` is no callback; there are OnInputMessages, OnPlainText, OnTag, OnLlmOutput, TtsrTriggered"
        ))
    };
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
    // `__entry!` has already said what is wrong.
    ($other:ident, $guest:ident) => {};
}
