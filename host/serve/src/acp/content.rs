//! The content blocks of a prompt, as the message that the model gets.

use tidegate::Message;
use tidegate::message::{Image, Origin, Part, Role};

use super::sdk::v1::{self, ContentBlock, EmbeddedResourceResource};

/// The most images of one prompt: with more, providers refuse also smaller ones.
const MAX_IMAGES: usize = 20;

/// Makes the message of a prompt.
///
/// # Errors
/// It has no content, or a block cannot be sent to a model: the reason.
pub(super) fn message(blocks: Vec<ContentBlock>) -> Result<Message, String> {
    let parts: Vec<Part> = blocks.into_iter().map(part).collect::<Result<_, _>>()?;
    let images = parts.iter().filter(|part| matches!(part, Part::Image(_))).count();
    if images > MAX_IMAGES {
        return Err(format!("the prompt contains {images} images, and {MAX_IMAGES} are allowed"));
    }
    let is_empty = parts.iter().all(|part| matches!(part, Part::Text(text) if chat::is_blank(text)));
    if is_empty {
        return Err("the prompt has no content".to_owned());
    }
    Ok(Message { role: Role::User, origin: Origin::User, parts: joined(parts), hidden: false })
}

fn part(block: ContentBlock) -> Result<Part, String> {
    Ok(match block {
        ContentBlock::Text(text) => Part::Text(text.text),
        ContentBlock::ResourceLink(link) => Part::Text(format!("[{}]({})", link.name, link.uri)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => Part::Text(resource_text(&resource)),
            EmbeddedResourceResource::BlobResourceContents(resource) => {
                let media_type = resource.mime_type.as_deref().unwrap_or_default();
                let image = Image::new(media_type, resource.blob);
                Part::Image(image.map_err(|error| format!("the resource {}: {error}", resource.uri))?)
            }
            _ => return Err("the prompt contains a resource of an unknown kind".to_owned()),
        },
        ContentBlock::Image(image) => {
            Part::Image(Image::new(&image.mime_type, image.data).map_err(|error| error.to_string())?)
        }
        ContentBlock::Audio(_) => return Err("the prompt contains audio, which no model of this host takes".to_owned()),
        _ => return Err("the prompt contains a block of an unknown kind".to_owned()),
    })
}

/// Text that the user has attached, between lines that name its source.
fn resource_text(resource: &v1::TextResourceContents) -> String {
    let end = if resource.text.ends_with('\n') { "" } else { "\n" };
    let uri = resource.uri.replace(['"', '\n'], " ");
    format!("\n<attached-resource uri=\"{uri}\">\n{}{end}</attached-resource>\n", resource.text)
}

/// Adjacent text as one part: clients split a sentence at each file that it mentions.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
            (_, part) => all.push(part),
        }
    }
    all
}
