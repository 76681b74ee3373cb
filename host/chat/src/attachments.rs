//! What the user attaches to the next message.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Changed;
use crate::text::Str;

/// A file or an address that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Attachment {
    /// The name that the user sees.
    pub name: Str,
    /// Its media type, as `image/png`.
    pub media_type: Str,
    /// Where the content is: an address (`https:`, `data:`), or base64.
    pub source: Str,
}

impl Attachment {
    /// An attachment of the content at `source`: an address, or base64.
    pub fn new(name: &str, media_type: &str, source: &str) -> Self {
        Self { name: name.into(), media_type: media_type.into(), source: source.into() }
    }

    /// Whether `source` is an address, and not the content in base64.
    pub fn is_address(&self) -> bool {
        ["http:", "https:", "data:", "blob:"].iter().any(|scheme| self.source.starts_with(scheme))
    }
}

/// Why an attachment was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachmentError {
    /// There are as many as are allowed.
    #[error("cannot attach `{name}`: a message has at most {most} attachments; send it or remove one")]
    TooMany {
        /// The attachment that was refused.
        name: Str,
        /// The most attachments that a message can have.
        most: usize,
    },
    /// Its media type is not one of those that are allowed.
    #[error("cannot attach `{name}`: its type `{media_type}` is none of {allowed}")]
    Type {
        /// The attachment that was refused.
        name: Str,
        /// Its media type.
        media_type: Str,
        /// Those that are allowed, separated by commas.
        allowed: String,
    },
}

/// The attachments of the next message.
#[derive(Clone, Debug)]
pub struct Attachments {
    list: Arc<Vec<Attachment>>,
    most: usize,
    types: Vec<Str>,
}

impl Default for Attachments {
    /// At most 10, of PNG, JPEG, GIF, WebP and PDF.
    fn default() -> Self {
        let types: Vec<&str> = flow::IMAGE_TYPES.into_iter().chain(["application/pdf"]).collect();
        Self::new(10, &types)
    }
}

impl Attachments {
    /// At most `most` attachments, of these media types.
    pub fn new(most: usize, types: &[&str]) -> Self {
        Self { list: Arc::default(), most, types: types.iter().map(|one| Str::from(*one)).collect() }
    }

    /// The attachments in order.
    pub fn list(&self) -> &Arc<Vec<Attachment>> {
        &self.list
    }

    /// Adds one at the end.
    ///
    /// # Errors
    /// There are too many already, or its type is not allowed.
    pub fn add(&mut self, attachment: Attachment) -> Result<(), AttachmentError> {
        let Attachment { name, media_type, .. } = &attachment;
        if !self.types.contains(media_type) {
            let types: Vec<&str> = self.types.iter().map(Str::as_str).collect();
            let (name, media_type) = (name.clone(), media_type.clone());
            return Err(AttachmentError::Type { name, media_type, allowed: types.join(", ") });
        }
        if self.list.len() >= self.most {
            return Err(AttachmentError::TooMany { name: name.clone(), most: self.most });
        }
        Arc::make_mut(&mut self.list).push(attachment);
        Ok(())
    }

    /// Removes the one at `index`, from 0.
    pub fn remove(&mut self, index: usize) -> Changed {
        let known = index < self.list.len();
        if known {
            Arc::make_mut(&mut self.list).remove(index);
        }
        known.into()
    }

    /// Removes all of them.
    pub fn clear(&mut self) -> Changed {
        Changed::from(!self.take().is_empty())
    }

    /// Takes all of them, for a message that is sent.
    pub fn take(&mut self) -> Vec<Attachment> {
        std::mem::take(Arc::make_mut(&mut self.list))
    }
}
