//! The baseline of detect-secrets: which detectors are in use, and what is excluded.
//!
//! Its detectors are code, which is not in the file. For those that look for secrets of a known form there is a condition of our own
//! for the same secrets; the others are skipped.

use std::sync::Arc;

use flow::{Diagnostic, DiagnosticCode as Code, SourceFile};
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::json::place_of;
use crate::set::{AllowList, Detector, Expression, Format, Part, Set, Skipped, Target};
use crate::{Feature, LeftOut};

/// A detector, the secret that it finds, and conditions for it. The first group is the secret.
const KNOWN: &[(&str, &str, &[&str])] = &[
    ("ArtifactoryDetector", "Artifactory key", &[r"\b(AKC[0-9A-Za-z]{10,})\b"]),
    (
        "AWSKeyDetector",
        "AWS access key",
        &[
            r"\b((?:A3T[0-9A-Z]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16})\b",
            r#"(?i)\baws.{0,20}(?:key|pwd|pw|password|pass|token).{0,20}['"]([0-9A-Za-z/+]{40})['"]"#,
        ],
    ),
    ("AzureStorageKeyDetector", "Azure storage account key", &[r"AccountKey=([0-9A-Za-z+/=]{88})"]),
    ("BasicAuthDetector", "password in an address", &[r"://[^\s:/@?#\[\]{}<>$]+:([^\s:/@?#\[\]{}<>$]+)@"]),
    ("CloudantDetector", "Cloudant credentials", &[r"https?://[\w-]+:([0-9a-f]{64}|[a-z]{24})@[\w-]+\.cloudant\.com"]),
    (
        "DiscordBotTokenDetector",
        "Discord bot token",
        &[r"\b([MNO][0-9A-Za-z_-]{23,25}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27})"],
    ),
    ("GitHubTokenDetector", "GitHub token", &[r"\b(gh[oprsu]_[0-9A-Za-z_]{36})"]),
    (
        "GitLabTokenDetector",
        "GitLab token",
        &[r"\b(gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-[0-9A-Za-z_-]{20})", r"\b(GR1348941[0-9A-Za-z_-]{20})"],
    ),
    (
        "IbmCloudIamDetector",
        "IBM Cloud IAM key",
        &[
            r#"(?i)\b(?:ibm|cloud|iam)(?:[_-]?(?:cloud|iam))?[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)['"]?\s{0,3}(?::=|=>|::|=|:)\s{0,3}['"]?([0-9a-z_-]{44})(?:[^0-9A-Za-z_-]|$)"#,
        ],
    ),
    (
        "IbmCosHmacDetector",
        "IBM COS HMAC credentials",
        &[
            r#"(?i)\bsecret[_-]?(?:access)?[_-]?key['"]?\s{0,3}(?::=|=>|::|=|:)\s{0,3}['"]?([0-9a-f]{48})(?:[^0-9A-Fa-f]|$)"#,
        ],
    ),
    ("JwtTokenDetector", "JSON Web Token", &[r"\b(eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.?[0-9A-Za-z_-]*)"]),
    ("MailchimpDetector", "Mailchimp key", &[r"\b([0-9a-z]{32}-us[0-9]{1,2})\b"]),
    ("NpmDetector", "npm token", &[r"/:_authToken=\s{0,3}(npm_[0-9A-Za-z]{36}|[0-9A-Fa-f-]{36})"]),
    ("OpenAIDetector", "OpenAI key", &[r"\b(sk-[0-9A-Za-z_-]*[0-9A-Za-z]{20}T3BlbkFJ[0-9A-Za-z]{20})"]),
    (
        "PrivateKeyDetector",
        "private key",
        &[
            r"BEGIN (?:[0-9A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\r|\\n){0,4}([0-9A-Za-z+/=]{40})",
            r"PuTTY-User-Key-File-[23]:",
        ],
    ),
    ("PypiTokenDetector", "PyPI token", &[r"\b(pypi-[0-9A-Za-z_-]{85})"]),
    ("SendGridDetector", "SendGrid key", &[r"\b(SG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43})"]),
    (
        "SlackDetector",
        "Slack token",
        &[
            r"(?i)\b(xox[abeoprs]-(?:[0-9]+-)+[0-9a-z]+)",
            r"(?i)https://hooks\.slack\.com/services/(T[0-9a-z_]+/B[0-9a-z_]+/[0-9a-z_]+)",
        ],
    ),
    (
        "SoftlayerDetector",
        "SoftLayer credentials",
        &[
            r#"(?i)\b(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)['"]?\s{0,3}(?::=|=>|::|=|:)\s{0,3}['"]?([0-9a-z]{64})\b"#,
            r"(?i)https?://api\.softlayer\.com/soap/v3(?:\.1)?/([0-9a-z]{64})\b",
        ],
    ),
    ("SquareOAuthDetector", "Square OAuth secret", &[r"\b(sq0csp-[0-9A-Za-z_-]{43})"]),
    ("StripeDetector", "Stripe key", &[r"\b([rs]k_live_[0-9A-Za-z]{24})"]),
    ("TelegramBotTokenDetector", "Telegram bot token", &[r"\b([0-9]{8,10}:[0-9A-Za-z_-]{35})(?:[^0-9A-Za-z_-]|$)"]),
    ("TwilioKeyDetector", "Twilio key", &[r"\b((?:AC|SK)[0-9a-f]{32})\b"]),
];

/// Filters with expressions, by the end of their paths.
const EXCLUDED: &[(&str, Target)] =
    &[("regex.should_exclude_secret", Target::Secret), ("regex.should_exclude_line", Target::Line)];
const EXCLUDED_FILES: &str = "regex.should_exclude_file";

/// Filters that are about files of a scan, and not about what is in them.
const OF_SCANS: &[&str] =
    &["common.is_baseline_file", "common.is_invalid_file", "common.is_ignored_due_to_verification_policies"];

/// Reads a baseline. Its results are hashes of secrets that were found, which nothing can be made of.
pub(crate) fn read(source: &Arc<SourceFile>, root: &Map<String, Value>) -> Set {
    let mut set = Set::new(Format::DetectSecrets);
    let list = |key: &str| root.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for plugin in list("plugins_used") {
        let name = text(plugin, "name");
        match detector(source, &name, plugin.get("path").is_some()) {
            Ok(one) => set.detectors.push(one),
            Err(why) => set.skipped.push(Skipped { id: name, why: *why }),
        }
    }
    for filter in list("filters_used") {
        let path = text(filter, "path");
        let is = |end: &str| path.ends_with(end);
        let patterns = strings(filter.get("pattern"));
        if let Some((_, target)) = EXCLUDED.iter().find(|(end, _)| is(end)) {
            set.allowed.push(AllowList {
                target: *target,
                expressions: patterns.iter().map(|one| Engine::Python.spell(one)).collect(),
                ..AllowList::default()
            });
        } else if is(EXCLUDED_FILES) {
            set.allowed.push(AllowList { paths: patterns, ..AllowList::default() });
        } else if !OF_SCANS.iter().any(|end| is(end)) {
            let name = path.trim_start_matches("detect_secrets.filters.").to_owned();
            set.left_out.push(LeftOut::new(Feature::Filter, name));
        }
    }
    set
}

fn detector(source: &Arc<SourceFile>, name: &str, is_custom: bool) -> Result<Detector, Box<Diagnostic>> {
    let place = place_of(source, name);
    let refuse = |message: &str| {
        let why = Diagnostic::warning(Code::RuleNoCondition, message).at(place.clone(), "");
        Err(Box::new(why))
    };
    if is_custom {
        return refuse("a plugin of your own: what it looks for is Python code, so write a rule for it");
    }
    let Some((_, about, conditions)) = KNOWN.iter().find(|(known, ..)| *known == name) else {
        return refuse(match name {
            "Base64HighEntropyString" | "HexHighEntropyString" => {
                "it looks for random strings, and a condition cannot say how random a string is"
            }
            "KeywordDetector" => "it looks for values by the names of variables, with code for each language",
            "IPPublicDetector" => "a public address is no secret",
            "" => "the plugin has no `name`",
            _ => "no detector of detect-secrets that is known here: what it looks for is Python code",
        });
    };
    let expression = |text: &&str| Expression { text: (*text).to_owned(), place: place.clone() };
    Ok(Detector {
        id: name.trim_end_matches("Detector").to_owned(),
        description: (*about).to_owned(),
        expressions: conditions.iter().map(expression).collect(),
        place: place.clone(),
        also: Vec::new(),
        keywords: Vec::new(),
        path: None,
        part: Part::FirstGroup,
        allowed: Vec::new(),
        left_out: vec![LeftOut::new(Feature::Detector, "")],
    })
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
