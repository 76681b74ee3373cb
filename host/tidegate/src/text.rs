//! Text of models, tools and files, made safe to show: characters that cannot be seen are written out, secrets are masked.
//!
//! ```
//! use tidegate::text::exact;
//!
//! let (shown, has_hidden) = exact("rm -rf a\u{202e}b", |_| false);
//! assert!(has_hidden && shown == r"rm -rf a\u{202e}b");
//! ```

pub use flow::text::{nearest, normal_path};
pub use flow::{MAX_MARKS, exact, is_hidden, is_mark};
pub use secrets::without_secrets;
pub use tools::looks_secret;
