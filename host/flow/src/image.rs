//! Images in the user's input.

use std::fmt;
use std::sync::Arc;

/// The most bytes of an image. Providers refuse one that has more than 5 MiB in base64.
pub const MAX_IMAGE_BYTES: usize = (5 << 20) / 4 * 3;

/// What an image counts as where the length of a message is estimated: providers count up to about 1,600 tokens for one, whatever
/// the bytes of its file are.
pub(crate) const ESTIMATED_BYTES: usize = 6400;

/// The formats that all providers take.
pub const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The file name extensions of these formats.
const ENDINGS: [(&str, &str); 5] =
    [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")];

/// An image in a format that all providers take. A clone shares its data.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    media_type: &'static str,
    data: Arc<str>,
}

/// Why an image cannot be sent to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Its format is not one that all providers take.
    #[error("an image of the type {media_type:?} cannot be sent; the types are {}", IMAGE_TYPES.join(", "))]
    MediaType {
        /// The type that was given.
        media_type: String,
    },
    /// It has too many bytes.
    #[error("the image has {bytes} bytes, and {MAX_IMAGE_BYTES} are allowed; make it smaller")]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
    },
    /// Its data are not base64 as of RFC 4648 §4, with padding.
    #[error("the data of the image are not base64 with padding (RFC 4648, section 4)")]
    NotBase64,
    /// It does not begin as files of its type do: providers refuse it, and with it every request of the conversation.
    #[error("the data are no image of the type {media_type}")]
    OtherContent {
        /// The type that was given.
        media_type: &'static str,
    },
}

impl Image {
    /// An image of a media type, such as `image/png`, with its file in base64.
    ///
    /// # Errors
    /// No provider would take it.
    pub fn new(media_type: &str, base64: impl Into<Arc<str>>) -> Result<Self, ImageError> {
        let wrong = || ImageError::MediaType { media_type: media_type.to_owned() };
        let media_type = IMAGE_TYPES.into_iter().find(|known| *known == media_type).ok_or_else(wrong)?;
        let data: Arc<str> = base64.into();
        let digits = data.trim_end_matches('=');
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        if digits.is_empty()
            || !data.len().is_multiple_of(4)
            || data.len() - digits.len() > 2
            || !digits.bytes().all(is_digit)
        {
            return Err(ImageError::NotBase64);
        }
        if !begins_as(media_type, &data) {
            return Err(ImageError::OtherContent { media_type });
        }
        let image = Self { media_type, data };
        match image.bytes() {
            bytes if bytes > MAX_IMAGE_BYTES => Err(ImageError::TooLarge { bytes }),
            _ => Ok(image),
        }
    }

    /// Returns the media type of a file by the extension of its name; `None` if not all providers accept such images.
    pub fn media_type_of(name: &str) -> Option<&'static str> {
        let (stem, ending) = name.rsplit_once('.')?;
        let is_name = !stem.is_empty() && !stem.ends_with(['/', '\\']);
        let known = ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
        known.filter(|_| is_name).map(|(_, media_type)| *media_type)
    }

    /// Its media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Its file in base64.
    pub fn base64(&self) -> &str {
        &self.data
    }

    /// Its file in base64, which is not copied.
    pub fn shared_base64(&self) -> Arc<str> {
        Arc::clone(&self.data)
    }

    /// The number of bytes of its file.
    pub fn bytes(&self) -> usize {
        self.data.trim_end_matches('=').len() * 3 / 4
    }
}

/// Whether a file in base64 begins as those of this type do.
fn begins_as(media_type: &str, base64: &str) -> bool {
    match media_type {
        "image/png" => base64.starts_with("iVBORw"),
        "image/jpeg" => base64.starts_with("/9j/"),
        "image/gif" => base64.starts_with("R0lGOD"),
        // `RIFF`, four bytes of length, and `WEBP`, of which whole characters encode all but the `W`.
        _ => base64.starts_with("UklGR") && base64.get(12..16) == Some("RUJQ"),
    }
}

/// Without its data.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({self})")
    }
}

/// Its type and size, in the place of an image where only text is shown.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.media_type, self.bytes())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{ENDINGS, IMAGE_TYPES, Image, ImageError, MAX_IMAGE_BYTES};

    #[test]
    fn only_what_providers_take_is_an_image() {
        let image = Image::new("image/png", "iVBORw==").unwrap();
        assert_eq!((image.to_string().as_str(), image.base64()), ("image/png, 4 bytes", "iVBORw=="));
        for data in ["", "=", "====", "iVBORw", "iVBORw=", "iVBO\nRw==", "iVBORw=_", "a===", "iV=ORw=="] {
            assert_eq!(Image::new("image/png", data), Err(ImageError::NotBase64), "{data}");
        }
        let wrong = ImageError::MediaType { media_type: "image/svg+xml".into() };
        assert_eq!(Image::new("image/svg+xml", "iVBORw=="), Err(wrong));
        let of = |digits: usize| format!("R0lGODlh{}", "A".repeat(digits - 8));
        assert!(Image::new("image/gif", of(5 << 20)).is_ok());
        let larger = Image::new("image/gif", of((5 << 20) + 4));
        assert_eq!(larger, Err(ImageError::TooLarge { bytes: MAX_IMAGE_BYTES + 3 }));
        for (media_type, file) in [("image/jpeg", "/9j/4AAQ"), ("image/webp", "UklGRiQAAABXRUJQVlA4")] {
            assert!(Image::new(media_type, file).is_ok(), "{media_type}");
        }
        for media_type in IMAGE_TYPES {
            // `GARBAGE!` and more of it.
            assert_eq!(
                Image::new(media_type, "R0FSQkFHRSFHQVJCQUdFIUdB"),
                Err(ImageError::OtherContent { media_type })
            );
        }
    }

    #[test]
    fn the_ending_of_a_name_is_the_media_type() {
        let of = Image::media_type_of;
        assert_eq!(
            (of("a/b.PNG"), of("a.b.jpeg"), of("x.webp")),
            (Some("image/png"), Some("image/jpeg"), Some("image/webp"))
        );
        for name in ["png", ".png", "a/.png", "a.pngx", "a.svg", "a.png/b", ""] {
            assert_eq!(of(name), None, "{name}");
        }
        assert!(IMAGE_TYPES.iter().all(|one| ENDINGS.iter().any(|(_, media_type)| media_type == one)));
    }
}
