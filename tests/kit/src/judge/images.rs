//! Images: their number, types and sizes.

use serde_json::Value;

use super::Found;

/// An image of a body: its path, its media type, and its file in base64.
pub(super) struct Shown<'v> {
    pub(super) path: String,
    pub(super) media_type: &'v str,
    pub(super) base64: &'v str,
}

impl<'v> Shown<'v> {
    /// An image in a `data:` URL.
    pub(super) fn of_url(path: String, url: &'v str) -> Self {
        let (media_type, base64) =
            url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).unwrap_or(("", url));
        Self { path, media_type, base64 }
    }
}

pub(super) fn judge(images: &[Shown<'_>], found: &mut Found<'_>) {
    found.count("images", "images", images.len());
    let many = found.most("many_images").is_some_and(|many| images.len() > many);
    let most_pixels = found.most(if many { "many_image_pixels" } else { "image_pixels" });
    for image in images {
        let types = found.limit("media_types")["values"].as_array().unwrap();
        if !types.contains(&Value::from(image.media_type)) {
            found.add(&image.path, format!("media type {:?}", image.media_type));
        }
        if let Some(most) = found.most("image_base64_bytes").filter(|most| image.base64.len() > *most) {
            let bytes = image.base64.len();
            found.add(&image.path, format!("image exceeds 5 MB maximum: {bytes} bytes > {most} bytes"));
        }
        if let Some(most) = most_pixels.filter(|most| pixels(image.base64).is_some_and(|pixels| pixels > *most)) {
            found.add(
                &image.path,
                format!("At least one of the image dimensions exceed max allowed size: {most} pixels"),
            );
        }
    }
}

/// The longer side of a PNG.
fn pixels(base64: &str) -> Option<usize> {
    let mut bits = 0_u64;
    let mut head = Vec::new();
    for (at, digit) in base64.bytes().take(32).enumerate() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u64::from(value);
        if at % 4 == 3 {
            head.extend(&bits.to_be_bytes()[5..]);
            bits = 0;
        }
    }
    let side = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
    head.starts_with(b"\x89PNG").then(|| Some(side(16)?.max(side(20)?)))?
}
