//! Whether what every request has leaves room for a conversation in the context of the model.

use flow::ports::Tools;
use flow::{Prompt, grouped};

use crate::doctor::{Check, Health};
use crate::host::assemble;
use crate::host::loaded::Loaded;

/// The share of the context that the system prompt and the tools may have at most, in percent.
const MOST: u64 = 75;

/// The check; `None`: no model is chosen.
pub(crate) fn context_check(loaded: &Loaded) -> Option<Check> {
    let operator = &loaded.shared.operator;
    let model = operator.provider.model.as_deref()?;
    let frame = grouped(frame_tokens(loaded));
    let good = |detail: String| Check::good("context", detail);
    let Some(context) = assemble::context_tokens(operator, model) else {
        let detail = format!(
            "how many tokens {model} takes is not known, so a conversation becomes smaller when a request is refused; set `context_tokens` under \
             `[compaction]`. The system prompt and the tools have about {frame} tokens"
        );
        return Some(good(detail));
    };
    let size = grouped(context);
    let detail = format!("{model} takes {size} tokens; the system prompt and the tools have about {frame}");
    if frame_tokens(loaded) > context / 100 * MOST {
        let help = "no conversation fits. Switch off plugins or tools, shorten the system prompt and the rules that always apply, or choose another model";
        return Some(Check { health: Health::Bad, ..good(format!("{detail}: {help}")) });
    }
    let answer = operator.provider.max_tokens.map(u64::from).filter(|answer| *answer > context / 2);
    Some(match answer {
        Some(answer) => {
            let help = format!(
                "`max_tokens` ({}) is more than half of that: answers are shorter where a conversation needs the space",
                grouped(answer)
            );
            Check { health: Health::Warning, ..good(format!("{detail}; {help}")) }
        }
        None => good(detail),
    })
}

/// Tokens of the system prompt and the tools of a session, estimated.
fn frame_tokens(loaded: &Loaded) -> u64 {
    let rules = loaded.rules_in_force();
    let system = loaded.settings.system.iter().cloned().chain(rules.set.system_blocks(config::agents::MAIN));
    let builtin = loaded.builtin.as_ref().map(|tools| tools.specs()).unwrap_or_default();
    let tools = builtin.into_iter().chain(loaded.provided.specs()).collect();
    turn::estimated_tokens(&Prompt { system: system.collect(), tools, ..Prompt::default() })
}
