//! State that an older version of the extension wrote.

use crate::Result;

/// Brings what an older version of the extension keeps in [`state`](crate::state) up to date.
///
/// Raise `state_version` in `plugin.toml`, which is 1 where it is left out, and export this, when the format of what you keep
/// changes. A host that finds older state in a session calls it once there, before the first callback.
///
/// ```
/// use tidegate_sdk::prelude::*;
/// use tidegate_sdk::testing::Harness;
///
/// /// Version 1 kept one name, version 2 keeps a list of them.
/// #[derive(Default)]
/// struct Names;
///
/// impl Migrate for Names {
///     fn migrate(&mut self, _from: u32) -> Result<()> {
///         if let Some(name) = state::get::<String>("name")? {
///             state::set("names", &vec![name])?;
///             state::delete("name")?;
///         }
///         Ok(())
///     }
/// }
/// # impl OnPlainText for Names {
/// #     fn on_plain_text(&mut self, _text: &str, _place: &TextPlace) -> Result<TextAnswer> {
/// #         Ok(TextAnswer::Pass)
/// #     }
/// # }
/// tidegate_sdk::export!(Names: OnPlainText, Migrate);
///
/// let mut harness = Harness::<Names>::new();
/// harness.set_state("name", &"Ann");
/// harness.migrate(1).unwrap();
/// assert_eq!(harness.state::<Vec<String>>("names"), Some(vec!["Ann".to_owned()]));
/// ```
pub trait Migrate: Sized + 'static {
    /// Migrates from the version `from`, which is at least 1 and older than the extension's own. It is a transaction, as a callback
    /// is, and has as much time as all callbacks of a turn together.
    ///
    /// # Errors
    /// The state cannot be migrated. It stays as it was, and the session does without the extension: the operator sees the error at
    /// each call.
    fn migrate(&mut self, from: u32) -> Result<()>;
}
