//! The servers that a guarded command's requests go to, under the policy of the machine.

use std::env;

use serve::gateway::UpstreamUrls;
use tidegate::config::Policy;
use tidegate::diagnostic::Diagnostics;

use crate::args::Guard;
use crate::exit::Failure;
use crate::say;

/// An address and the flag or variable that sets it; `None`: neither does.
type Given = Option<(&'static str, String)>;

/// Returns where requests go: as the flags say, else where they would go without a gateway. The policy can leave out the address of a
/// vendor, whose requests are refused then.
///
/// # Errors
/// The policy does not permit an address that a flag or a variable sets, or permits none of the vendors' own.
pub(super) fn of(args: &Guard, policy: Option<&Policy>) -> Result<UpstreamUrls, Failure> {
    let anthropic = given(args.anthropic_url.as_ref(), "--anthropic-url", "ANTHROPIC_BASE_URL")?;
    let openai = given(args.openai_url.as_ref(), "--openai-url", "OPENAI_BASE_URL")?;
    let (vendors, mut refused) = (UpstreamUrls::default(), Vec::new());
    let urls = UpstreamUrls {
        anthropic: permitted(anthropic, vendors.anthropic, policy, &mut refused)?,
        openai: permitted(openai, vendors.openai, policy, &mut refused)?,
    };
    if urls.anthropic.is_none() && urls.openai.is_none() {
        return Err(Diagnostics(refused.into_iter().flat_map(|refused| refused.0).collect()).into());
    }
    for refused in refused {
        say::note(format_args!("guard: {}; its requests are refused", refused.in_one_line()));
    }
    Ok(urls)
}

/// Returns the address that a flag sets, else that of a variable.
fn given(flag: Option<&String>, name: &'static str, variable: &'static str) -> Result<Given, Failure> {
    match (flag, env::var(variable)) {
        (Some(url), _) => Ok(Some((name, url.clone()))),
        (None, Ok(url)) if !url.is_empty() => Ok(Some((variable, url))),
        (None, Err(env::VarError::NotUnicode(_))) => Err(Failure::setup(format_args!("{variable} is not UTF-8"))),
        (None, _) => Ok(None),
    }
}

/// Returns the given address, else the vendor's, unless the policy does not permit that.
fn permitted(
    given: Given,
    vendor: Option<String>,
    policy: Option<&Policy>,
    refused: &mut Vec<Diagnostics>,
) -> Result<Option<String>, Failure> {
    let check = |by: &str, url: &str| policy.map_or(Ok(()), |policy| policy.check_address(by, url));
    match (given, vendor) {
        (Some((by, url)), _) => {
            check(&format!("`{by}`"), &url)?;
            Ok(Some(url))
        }
        (None, Some(url)) => match check("`tidegate guard`", &url) {
            Ok(()) => Ok(Some(url)),
            Err(error) => {
                refused.push(error);
                Ok(None)
            }
        },
        (None, None) => Ok(None),
    }
}
