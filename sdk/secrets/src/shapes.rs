//! Keys and tokens that tell themselves: how those of a vendor begin, and what follows.

use crate::plausible::{is_filler, is_placeholder};
use crate::text::{LONGEST_RUN, Text};
use crate::{Found, Kind};

/// What may follow the beginning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Letters and digits.
    Alnum,
    /// Upper-case letters and digits.
    Upper,
    /// Hexadecimal digits, of either case.
    Hex,
    /// Letters, digits, `_`, `-`.
    Word,
    /// Those, and `.`, `=`, `~`.
    Dotted,
    /// Base64, with its padding.
    Base64,
    /// Base64, also that of addresses.
    AnyBase64,
}

impl Of {
    fn allows(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'~'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::AnyBase64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-'),
        }
    }
}

/// How long the rest of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// At least so many bytes.
    Least(usize),
    /// The same, with a digit among them: words that are joined by hyphens look alike.
    Digit(usize),
    /// Exactly so many, and then no more of the kind.
    Exactly(usize),
    /// The same, with a digit among them.
    DigitExactly(usize),
}

/// The number of a key of AWS; its secret looks like nothing in particular.
pub(crate) const AWS_KEY: Kind = "AWS key";

/// What is looked at of a key: enough to see that it is one.
const LONGEST_DECIDED: usize = 512;

/// So many bytes behind the beginning of a key, a digit among them, make it one where the text is cut off.
const LEAST_BEGUN: usize = 8;

/// Keys of one kind.
struct Shape(Kind, &'static str, Of, Length);

use Length::{Digit, DigitExactly, Exactly, Least};
use Of::{Alnum, AnyBase64, Base64, Dotted, Hex, Upper, Word};

/// The beginnings, sorted by their first byte; of two that fit, the first counts.
const SHAPES: &[Shape] = &[
    Shape("ClickHouse key", "4b1d", Alnum, Exactly(38)),
    Shape("1Password key", "A3-", Word, Digit(31)),
    Shape("age key", "AGE-SECRET-KEY-1", Upper, Least(58)),
    Shape(AWS_KEY, "A3T", Upper, Exactly(17)),
    Shape(AWS_KEY, "ABIA", Upper, Exactly(16)),
    Shape(AWS_KEY, "ABSK", Base64, Least(100)),
    Shape(AWS_KEY, "ACCA", Upper, Exactly(16)),
    Shape(AWS_KEY, "AKIA", Upper, Exactly(16)),
    Shape("Artifactory key", "AKCp", Alnum, Least(60)),
    Shape("Tencent key", "AKID", Alnum, Exactly(32)),
    Shape("API key", "API-", Upper, Exactly(26)),
    Shape(AWS_KEY, "ASIA", Upper, Exactly(16)),
    Shape("Atlassian token", "ATATT3", Dotted, Least(100)),
    Shape("Atlassian token", "ATBB", Alnum, Exactly(32)),
    Shape("Atlassian token", "ATCTT3", Dotted, Least(100)),
    Shape("Google key", "AIza", Word, Exactly(35)),
    Shape("Yandex key", "AQVN", Word, Least(34)),
    Shape("Clojars token", "CLOJARS_", Alnum, Least(60)),
    Shape("Facebook token", "EAA", Alnum, Least(100)),
    Shape("Square token", "EAAA", Word, Least(22)),
    Shape("EasyPost key", "EZAK", Alnum, Exactly(54)),
    Shape("EasyPost key", "EZTK", Alnum, Exactly(54)),
    Shape("Flutterwave key", "FLWPUBK", Word, Least(12)),
    Shape("Flutterwave key", "FLWSECK", Word, Least(12)),
    Shape("GitLab token", "GR1348941", Word, Least(20)),
    Shape("Google token", "GOCSPX-", Word, Least(24)),
    Shape("Heroku key", "HRKU-", Word, Least(50)),
    Shape("Alibaba key", "LTAI", Alnum, Least(12)),
    Shape("New Relic key", "NRAK-", Alnum, Least(20)),
    Shape("New Relic key", "NRII-", Word, Least(20)),
    Shape("New Relic key", "NRJS-", Hex, Least(16)),
    Shape("Postman key", "PMAK-", Word, Least(40)),
    Shape("SendGrid key", "SG.", Dotted, Least(40)),
    Shape("Twilio key", "SK", Hex, Exactly(32)),
    Shape("Yandex key", "YC", Word, DigitExactly(38)),
    Shape("web token", "ZXlK", AnyBase64, Digit(48)),
    Shape("GitLab session", "_gitlab_session=", Alnum, Least(32)),
    Shape("Hugging Face token", "api_org_", Alnum, Least(30)),
    Shape(AWS_KEY, "bedrock-api-key-", Base64, Least(20)),
    Shape("Artifactory token", "cmVmd", Alnum, Exactly(59)),
    Shape("Clojars token", "clojars_", Alnum, Least(60)),
    Shape("Cerebras key", "csk-", Alnum, Digit(40)),
    Shape("Databricks token", "dapi", Word, Digit(32)),
    Shape("Docker token", "dckr_oat_", Word, Least(20)),
    Shape("Docker token", "dckr_pat_", Word, Least(20)),
    Shape("Defined Networking key", "dnkey-", Word, Least(40)),
    Shape("DigitalOcean token", "doo_v1_", Hex, Least(64)),
    Shape("DigitalOcean token", "dop_v1_", Hex, Least(64)),
    Shape("DigitalOcean token", "dor_v1_", Hex, Least(64)),
    Shape("Doppler token", "dp.audit.", Alnum, Least(40)),
    Shape("Doppler token", "dp.ct.", Alnum, Least(40)),
    Shape("Doppler token", "dp.pt.", Alnum, Least(40)),
    Shape("Doppler token", "dp.sa.", Alnum, Least(40)),
    Shape("Doppler token", "dp.scim.", Alnum, Least(40)),
    Shape("Doppler token", "dp.st.", Dotted, Least(40)),
    Shape("Dynatrace token", "dt0c01.", Dotted, Least(64)),
    Shape("Duffel token", "duffel_live_", Dotted, Least(40)),
    Shape("Duffel token", "duffel_test_", Dotted, Least(40)),
    Shape("Grafana key", "eyJrIjoi", Base64, Least(70)),
    Shape("Figma token", "figd_", Word, Least(30)),
    Shape("Frame.io token", "fio-u-", Dotted, Least(60)),
    Shape("Fly.io token", "fm1a_", Base64, Least(80)),
    Shape("Fly.io token", "fm1r_", Base64, Least(80)),
    Shape("Fly.io token", "fm2_", Base64, Least(80)),
    Shape("Fly.io token", "fo1_", Word, Least(40)),
    Shape("Fireworks key", "fw_", Alnum, Digit(20)),
    Shape("GitHub token", "gho_", Alnum, Least(36)),
    Shape("GitHub token", "ghp_", Alnum, Least(36)),
    Shape("GitHub token", "ghr_", Alnum, Least(36)),
    Shape("GitHub token", "ghs_", Alnum, Least(36)),
    Shape("GitHub token", "ghu_", Alnum, Least(36)),
    Shape("GitHub token", "github_pat_", Word, Least(22)),
    Shape("GitLab token", "glagent-", Word, Least(40)),
    Shape("GitLab token", "glcbt-", Word, Least(20)),
    Shape("GitLab token", "gldt-", Word, Least(20)),
    Shape("GitLab token", "glffct-", Word, Least(20)),
    Shape("GitLab token", "glft-", Word, Least(20)),
    Shape("GitLab token", "glimt-", Word, Least(20)),
    Shape("GitLab token", "gloas-", Word, Least(40)),
    Shape("GitLab token", "glpat-", Dotted, Least(20)),
    Shape("GitLab token", "glptt-", Hex, Least(40)),
    Shape("GitLab token", "glrt-", Dotted, Least(20)),
    Shape("GitLab token", "glsoat-", Word, Least(20)),
    Shape("Grafana token", "glc_", Base64, Digit(32)),
    Shape("Grafana token", "glsa_", Word, Least(32)),
    Shape("Groq key", "gsk_", Alnum, Least(40)),
    Shape("Hugging Face token", "hf_", Alnum, Least(30)),
    Shape("Vault token", "hvb.", Dotted, Least(80)),
    Shape("Vault token", "hvr.", Dotted, Least(80)),
    Shape("Vault token", "hvs.", Dotted, Least(24)),
    Shape("Infracost key", "ico-", Alnum, Exactly(32)),
    Shape("Mailgun key", "key-", Hex, Exactly(32)),
    Shape("Linear key", "lin_api_", Alnum, Least(36)),
    Shape("LangSmith key", "lsv2_", Word, Least(30)),
    Shape("npm token", "npm_", Alnum, Exactly(36)),
    Shape("Notion token", "ntn_", Alnum, Least(40)),
    Shape("NVIDIA key", "nvapi-", Word, Least(40)),
    Shape("1Password token", "ops_eyJ", Base64, Least(100)),
    Shape("NuGet key", "oy2", Alnum, Exactly(43)),
    Shape("Adobe secret", "p8e-", Alnum, Exactly(32)),
    Shape("Harness key", "pat.", Dotted, Digit(60)),
    Shape("Airtable token", "pat", Dotted, Digit(78)),
    Shape("Mapbox token", "pk.", Dotted, Least(70)),
    Shape("Prefect key", "pnu_", Alnum, Exactly(36)),
    Shape("Perplexity key", "pplx-", Alnum, Least(40)),
    Shape("PlanetScale token", "pscale_oauth_", Dotted, Least(32)),
    Shape("PlanetScale password", "pscale_pw_", Dotted, Least(32)),
    Shape("PlanetScale token", "pscale_tkn_", Dotted, Least(32)),
    Shape("Mailgun key", "pubkey-", Hex, Exactly(32)),
    Shape("Pulumi token", "pul-", Hex, Exactly(40)),
    Shape("PyPI token", "pypi-", Word, Least(50)),
    Shape("Replicate token", "r8_", Alnum, Exactly(37)),
    Shape("ReadMe key", "rdme_", Alnum, Least(60)),
    Shape("Stripe key", "rk_live_", Alnum, Least(10)),
    Shape("Stripe key", "rk_prod_", Alnum, Least(10)),
    Shape("Stripe key", "rk_test_", Alnum, Least(10)),
    Shape("RubyGems key", "rubygems_", Hex, Least(48)),
    Shape("Vault token", "s.", Alnum, DigitExactly(24)),
    Shape("42 secret", "s-s4t2", Word, Least(60)),
    Shape("Harness key", "sat.", Dotted, Digit(60)),
    Shape("Supabase key", "sb_secret_", Word, Least(20)),
    Shape("Supabase key", "sbp_", Hex, Least(40)),
    Shape("Notion token", "secret_", Alnum, Exactly(43)),
    Shape("Sourcegraph token", "sgp_", Word, Digit(40)),
    Shape("OpenShift token", "sha256~", Word, Exactly(43)),
    Shape("Shippo token", "shippo_live_", Hex, Least(40)),
    Shape("Shippo token", "shippo_test_", Hex, Least(40)),
    Shape("Shopify token", "shpat_", Hex, Least(32)),
    Shape("Shopify token", "shpca_", Hex, Least(32)),
    Shape("Shopify token", "shppa_", Hex, Least(32)),
    Shape("Shopify token", "shpss_", Hex, Least(32)),
    Shape("Anthropic key", "sk-ant-", Word, Least(20)),
    Shape("OpenAI key", "sk-admin-", Word, Least(20)),
    Shape("OpenRouter key", "sk-or-", Word, Digit(20)),
    Shape("OpenAI key", "sk-proj-", Word, Least(20)),
    Shape("OpenAI key", "sk-svcacct-", Word, Least(20)),
    Shape("API key", "sk-", Word, Digit(20)),
    Shape("Stripe key", "sk_live_", Alnum, Least(10)),
    Shape("Stripe key", "sk_prod_", Alnum, Least(10)),
    Shape("Stripe key", "sk_test_", Alnum, Least(10)),
    Shape("Dropbox token", "sl.", Dotted, Digit(100)),
    Shape("SettleMint token", "sm_aat_", Alnum, Least(16)),
    Shape("SettleMint token", "sm_pat_", Alnum, Least(16)),
    Shape("SettleMint token", "sm_sat_", Alnum, Least(16)),
    Shape("Sentry token", "sntrys_", AnyBase64, Least(60)),
    Shape("Sentry token", "sntryu_", Hex, Least(64)),
    Shape("Square token", "sq0atp-", Word, Least(22)),
    Shape("Square secret", "sq0csp-", Word, Least(40)),
    Shape("Sonar token", "sqa_", Alnum, Digit(36)),
    Shape("Sonar token", "sqp_", Alnum, Digit(36)),
    Shape("Sonar token", "squ_", Alnum, Digit(36)),
    Shape("Yandex token", "t1.", Dotted, Digit(80)),
    Shape("Typeform token", "tfp_", Dotted, Digit(40)),
    Shape("Together key", "tgp_v1_", Word, Least(40)),
    Shape("Scalingo token", "tk-us-", Word, Least(48)),
    Shape("Cloudflare key", "v1.0-", Word, Digit(120)),
    Shape("Stripe secret", "whsec_", Base64, Least(24)),
    Shape("xAI key", "xai-", Alnum, Least(60)),
    Shape("Slack token", "xapp-", Word, Digit(20)),
    Shape("Brevo key", "xkeysib-", Word, Least(64)),
    Shape("Slack token", "xoxa-", Word, Digit(8)),
    Shape("Slack token", "xoxb-", Word, Digit(8)),
    Shape("Slack token", "xoxe-", Word, Digit(8)),
    Shape("Slack token", "xoxe.", Word, Digit(8)),
    Shape("Slack token", "xoxo-", Word, Digit(8)),
    Shape("Slack token", "xoxp-", Word, Digit(8)),
    Shape("Slack token", "xoxr-", Word, Digit(8)),
    Shape("Slack token", "xoxs-", Word, Digit(8)),
    Shape("Google token", "ya29.", Word, Least(20)),
];

/// Which shapes begin with a byte: the first of them, and the first behind them.
const BY_FIRST: [(u8, u8); 128] = by_first();

const fn by_first() -> [(u8, u8); 128] {
    let mut table = [(0, 0); 128];
    let mut at = 0;
    while at < SHAPES.len() {
        let first = SHAPES[at].1.as_bytes()[0] as usize;
        if table[first].1 == 0 {
            table[first].0 = at as u8;
        }
        table[first].1 = at as u8 + 1;
        at += 1;
    }
    table
}

/// A key that begins here as its maker's keys do.
pub(crate) fn prefixed(text: &Text<'_>, at: usize) -> Option<Found> {
    let first = text.at(at)?;
    let (from, to) = *BY_FIRST.get(usize::from(first))?;
    let shapes = &SHAPES[usize::from(from)..usize::from(to)];
    let mut may_be_another = false;
    for shape in shapes {
        if let Some(found) = shape.find(text, at) {
            // Of a longer beginning more can follow: then that is what it is.
            return Some(if may_be_another { found.behind(found.start) } else { found });
        }
        may_be_another |= shape.reaches_end(text, at);
    }
    None
}

/// A key that begins here and is cut off by the end of the text: all of it that is there, once that is more than its beginning.
pub(crate) fn begun(text: &Text<'_>, at: usize) -> Option<Found> {
    let (from, to) = *BY_FIRST.get(usize::from(text.at(at)?))?;
    let shapes = &SHAPES[usize::from(from)..usize::from(to)];
    shapes.iter().find_map(|Shape(kind, prefix, of, _)| {
        let body = at + prefix.len();
        let is_begun =
            prefix.len() >= 4 && text.starts(at, prefix.as_bytes()) && body + LEAST_BEGUN <= text.bytes.len();
        let end = if is_begun { text.run(body, usize::MAX, |byte| of.allows(byte)) } else { 0 };
        let has_digit = is_begun && text.bytes[body..].iter().any(u8::is_ascii_digit);
        (has_digit && end == text.bytes.len()).then(|| Found::new(kind, at, end).behind(body))
    })
}

impl Shape {
    /// Whether the text ends within what may become a key of this shape.
    fn reaches_end(&self, text: &Text<'_>, at: usize) -> bool {
        let Self(_, prefix, of, _) = self;
        let rest = &text.bytes[at..];
        let begins = rest.len() <= LONGEST_DECIDED && rest.starts_with(prefix.as_bytes());
        begins && text.bytes[at + prefix.len()..].iter().all(|byte| of.allows(*byte))
    }

    fn find(&self, text: &Text<'_>, at: usize) -> Option<Found> {
        let Self(kind, prefix, of, length) = self;
        if !text.starts(at, prefix.as_bytes()) {
            return None;
        }
        let body = at + prefix.len();
        let mut end = text.run(body, LONGEST_DECIDED, |byte| of.allows(byte));
        text.note_begun(body);
        // The end of a sentence is none of a key.
        while end > body && text.bytes[end - 1] == b'.' {
            end -= 1;
        }
        let rest = &text.bytes[body..end];
        let fits = match *length {
            Least(least) => rest.len() >= least,
            Digit(least) => rest.len() >= least && rest.iter().any(u8::is_ascii_digit),
            Exactly(exactly) => rest.len() == exactly,
            DigitExactly(exactly) => rest.len() == exactly && rest.iter().any(u8::is_ascii_digit),
        };
        let stands_in = || is_filler(rest) || is_placeholder(rest) || is_placeholder(&text.bytes[at..end]);
        if !fits || rest.is_empty() || stands_in() {
            return None;
        }
        let is_cut = rest.len() == LONGEST_DECIDED;
        let end = if is_cut { text.run(end, LONGEST_RUN, |byte| of.allows(byte)) } else { end };
        Some(Found::new(kind, at, end).behind(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_looked_up() {
        assert!(SHAPES.len() < 255);
        for (first, (from, to)) in BY_FIRST.into_iter().enumerate() {
            let range = &SHAPES[usize::from(from)..usize::from(to)];
            assert!(
                range.iter().all(|shape| usize::from(shape.1.as_bytes()[0]) == first),
                "shapes with {first} are apart"
            );
        }
    }
}
