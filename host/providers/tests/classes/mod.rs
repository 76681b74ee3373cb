//! The classes of errors, as the default table has them.

use std::sync::LazyLock;

use flow::{ErrorClass, ModelError, RetryTable};

/// The default table.
pub(crate) fn table() -> &'static RetryTable {
    static TABLE: LazyLock<RetryTable> =
        LazyLock::new(|| config::errors::of_sources(&[]).unwrap_or_else(|found| panic!("{found}")));
    &TABLE
}

/// The class of an error.
pub(crate) fn class_of(error: &ModelError) -> ErrorClass {
    table().classify(error).class
}
