//! Commands of which the text says what they write: `echo rm`, `printf rm`, `which rm`.

use crate::walk::Simple;
use crate::word::Word;

/// What a command writes, without the line feed at its end; `None`: it is not known.
pub(crate) fn output(simple: &Simple) -> Option<String> {
    let (name, arguments) = simple.words.split_first()?;
    let arguments: Vec<String> = arguments.iter().map(Word::exact).collect::<Option<_>>()?;
    let (options, rest): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    match (name.without_folder().exact()?.as_str(), rest.as_slice()) {
        ("echo", _) => {
            let start =
                arguments.iter().take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en")).count();
            let text = arguments.get(start..)?.join(" ");
            (!text.contains('\\')).then_some(text)
        }
        ("printf", [format, more @ ..]) if options.iter().all(|option| *option == "--") => {
            let format = format.trim_end_matches("\\n");
            match more {
                [] => (!format.contains(['%', '\\'])).then(|| format.to_owned()),
                more => {
                    matches!(format, "%s" | "%s " | "%b").then(|| more.join(if format == "%s " { " " } else { "" }))
                }
            }
        }
        ("which", [program]) => Some((*program).to_owned()),
        ("command" | "type", [program]) if matches!(options.as_slice(), ["-v" | "-p" | "-P"]) => {
            Some((*program).to_owned())
        }
        ("basename", [path]) if options.is_empty() => Some(path.rsplit('/').next()?.to_owned()),
        ("realpath" | "readlink", [path]) if path.starts_with('/') => Some((*path).to_owned()),
        (":" | "true", []) => Some(String::new()),
        _ => None,
    }
}
