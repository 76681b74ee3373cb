//! Secrets in addresses: the password of a user, a token in the place of one, and web-hooks, whose address is the secret.

use crate::plausible::{is_filler, is_known_word, is_mixed, is_placeholder, looks_random};
use crate::text::{LONGEST_RUN, Text, is_blank};
use crate::{Found, Kind};

/// Hosts of web-hooks, the beginning of their path, and what their address is called.
const HOOKS: &[(&str, &str, Kind)] = &[
    ("hooks.slack.com", "/services/", "Slack web-hook"),
    ("hooks.slack.com", "/workflows/", "Slack web-hook"),
    ("hooks.slack.com", "/triggers/", "Slack web-hook"),
    ("discord.com", "/api/webhooks/", "Discord web-hook"),
    ("discordapp.com", "/api/webhooks/", "Discord web-hook"),
    ("webhook.office.com", "/webhookb2/", "Teams web-hook"),
    ("outlook.office.com", "/webhook/", "Teams web-hook"),
    ("logic.azure.com", "/workflows/", "Azure web-hook"),
    ("hooks.zapier.com", "/hooks/catch/", "Zapier web-hook"),
    ("maker.ifttt.com", "/trigger/", "IFTTT web-hook"),
    ("open.feishu.cn", "/open-apis/bot/", "Feishu web-hook"),
    ("open.larksuite.com", "/open-apis/bot/", "Lark web-hook"),
    ("api.telegram.org", "/bot", "Telegram token"),
    ("chat.googleapis.com", "/v1/spaces/", "Google web-hook"),
    ("qyapi.weixin.qq.com", "/cgi-bin/webhook/send", "WeCom web-hook"),
    ("oapi.dingtalk.com", "/robot/send", "DingTalk web-hook"),
    ("make.com", "/", "Make web-hook"),
    ("webhook.site", "/", "web-hook"),
    ("pipedream.net", "/", "web-hook"),
    // Of servers that somebody runs: Mattermost, Rocket.Chat.
    ("", "/hooks/", "web-hook"),
    ("", "/webhook/", "web-hook"),
    ("", "/webhooks/", "web-hook"),
];

/// The shortest path of a web-hook.
const SHORTEST_HOOK: usize = 16;

/// What is looked at of a password with signs that end an authority.
const LONGEST_PASSWORD: usize = 64;

/// What an address hides whose `://` is here.
pub(crate) fn address(text: &Text<'_>, at: usize) -> Option<Found> {
    if !text.starts(at, b"://") {
        return None;
    }
    let start = at + 3;
    user(text, start).or_else(|| hook(text, start))
}

/// The part of an address that has the user and the host: up to a sign that ends it, or up to the host where that sign is in the password,
/// since nobody has escaped it.
fn authority<'a>(text: &Text<'a>, start: usize) -> &'a [u8] {
    let in_address = |byte: u8| byte > b' ' && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let end = text.run(start, LONGEST_RUN, |byte| in_address(byte) && !matches!(byte, b'/' | b'?' | b'#'));
    let authority = &text.bytes[start..end];
    let Some(colon) = authority.iter().position(|byte| *byte == b':') else { return authority };
    let is_port = authority[colon + 1..].iter().all(u8::is_ascii_digit);
    if is_port || authority.contains(&b'@') || authority.starts_with(b"[") {
        return authority;
    }
    let address = &text.bytes[start..text.run(end, LONGEST_PASSWORD, in_address)];
    let Some(host) = address.iter().position(|byte| *byte == b'@') else { return authority };
    let password = &address[colon + 1..host];
    let is_mixed = !password.contains(&b'/') && password.len() >= 6 && is_mixed(password);
    if is_mixed || looks_random(password) { &address[..=host] } else { authority }
}

/// The password of `user:password@host`, or a token in the user's place.
fn user(text: &Text<'_>, start: usize) -> Option<Found> {
    let authority = authority(text, start);
    let begun = authority.iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
    text.note_begun(start + begun);
    let host = authority.iter().rposition(|byte| *byte == b'@')?;
    let user = &authority[..host];
    let Some(colon) = user.iter().position(|byte| *byte == b':') else {
        let is_token = user.len() >= 16 && looks_random(user) && !is_placeholder(user);
        return is_token.then(|| Found::new("token", start, start + host));
    };
    let password = &user[colon + 1..];
    let stands_in = password.is_empty() || is_placeholder(password) || is_known_word(password);
    // Of a name that nobody has chosen, both are the secret.
    let from = if colon >= 8 && looks_random(&user[..colon]) { 0 } else { colon + 1 };
    (!stands_in).then(|| Found::new("password", start + from, start + host))
}

/// The path of a web-hook, of which the host begins here.
pub(crate) fn hook(text: &Text<'_>, start: usize) -> Option<Found> {
    let host_end = text.run(start, 253, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'));
    let host = &text.bytes[start..host_end];
    let of_host = |name: &str| {
        let host = host.split(|byte| *byte == b':').next().unwrap_or_default();
        host.strip_suffix(name.as_bytes())
            .is_some_and(|before| before.is_empty() || before.ends_with(b".") || name.is_empty())
    };
    HOOKS.iter().filter(|(name, ..)| host.contains(&b'.') && of_host(name)).find_map(|(name, path, kind)| {
        if !text.starts(host_end, path.as_bytes()) {
            return None;
        }
        let from = host_end + path.len();
        let end = text.run(from, LONGEST_RUN, |byte| {
            byte > b' '
                && byte.is_ascii()
                && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b')' | b'|' | b'\\' | b',')
        });
        text.note_begun(from);
        let secret = &text.bytes[from..end];
        let parts = secret.split(|byte| matches!(byte, b'/' | b'?' | b'&' | b'='));
        // At a host that has nothing else, a part of letters alone is one too.
        let is_token = |part: &[u8]| {
            part.len() >= 12 && looks_random(part) || part.len() >= 20 && !name.is_empty() && !is_filler(part)
        };
        let is_hook = secret.len() >= SHORTEST_HOOK && parts.into_iter().any(is_token);
        (is_hook && !is_placeholder(secret)).then(|| Found::new(kind, from, end))
    })
}

/// What begins with a word: the scheme of a header, or the host of a web-hook without a scheme.
pub(crate) fn bare(text: &Text<'_>, at: usize) -> Option<Found> {
    match text.at(at)? {
        b'b' | b'B' | b'n' | b'N' => scheme(text, at),
        b'h' | b'd' | b'a' => {
            let known =
                [&b"hooks.slack.com"[..], b"discord.com", b"discordapp.com", b"hooks.zapier.com", b"api.telegram.org"];
            known.iter().any(|host| text.starts(at, host)).then(|| hook(text, at))?
        }
        _ => None,
    }
}

/// What follows `Bearer` or `Basic`, where that begins here.
pub(crate) fn scheme(text: &Text<'_>, at: usize) -> Option<Found> {
    let word = [&b"bearer"[..], b"basic", b"negotiate"].into_iter().find(|word| text.starts_any_case(at, word))?;
    let from = text.run(at + word.len(), 8, is_blank);
    if from == at + word.len() {
        return None;
    }
    let end = text.run(from, LONGEST_RUN, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~')
    });
    text.note_begun(from);
    let end = from + trimmed(&text.bytes[from..end]);
    let value = &text.bytes[from..end];
    let is_key = value.len() >= 16 && looks_random(value) || word == b"basic" && is_pair(value);
    (is_key && !is_placeholder(value)).then(|| Found::new("token", from, end))
}

/// The length without the end of a sentence.
fn trimmed(value: &[u8]) -> usize {
    value.iter().rposition(|byte| *byte != b'.').map_or(0, |at| at + 1)
}

/// Base64 of `user:password`.
pub(crate) fn is_pair(value: &[u8]) -> bool {
    let digit = |byte: u8| -> Option<u32> {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        }))
    };
    let digits: Option<Vec<u32>> = value.iter().take_while(|byte| **byte != b'=').map(|byte| digit(*byte)).collect();
    let Some(digits) = digits.filter(|digits| digits.len() >= 8) else { return false };
    let (mut bits, mut count, mut colon) = (0_u32, 0, false);
    for digit in digits {
        bits = (bits << 6 | digit) & 0x3fff;
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = (bits >> count) as u8;
            if !(b' '..0x7f).contains(&byte) {
                return false;
            }
            colon |= byte == b':';
        }
    }
    colon
}
