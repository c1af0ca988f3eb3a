//! `explain [CODE]...`: the texts of [`tracecheck::explain`], laid out for a terminal.

use std::io::{self, Write};

use tracecheck::explain::ExampleKind;
use tracecheck::{Code, Explanation, explanation};

/// Writes what there is to say of these codes, or a line for each that there is.
pub(super) fn write(out: &mut dyn Write, codes: &[Code]) -> io::Result<()> {
    if codes.is_empty() {
        return write_all(out);
    }
    for (index, &code) in codes.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_one(out, explanation(code))?;
    }
    Ok(())
}

/// Wide enough to read, narrow enough for half a screen.
const WIDTH: usize = 80;

fn write_all(out: &mut dyn Write) -> io::Result<()> {
    let width = Code::ALL.iter().map(|code| code.as_str().len()).max();
    let width = width.unwrap_or_default();
    for &code in Code::ALL {
        writeln!(
            out,
            "{:width$}  {}",
            code.as_str(),
            explanation(code).summary
        )?;
    }
    Ok(())
}

fn write_one(out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
    let code = explanation.code;
    writeln!(out, "{code} ({})", code.severity())?;
    writeln!(out, "{}", explanation.summary)?;
    write_part(out, "Meaning", explanation.meaning)?;
    write_part(out, "What to do", explanation.action)?;
    write_part(out, "Where the schema says so", &[explanation.section])?;
    write_example(out, explanation)
}

fn write_part(out: &mut dyn Write, title: &str, paragraphs: &[&str]) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    for (index, paragraph) in paragraphs.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        for line in wrap(paragraph, WIDTH - 2) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// The records begin their lines, so that they can be cut out and tried.
fn write_example(out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
    let code = explanation.code;
    let what = match explanation.example_kind {
        ExampleKind::Trace => "A trace that gives",
        ExampleKind::Declaration => "A declaration that gives",
        ExampleKind::Events { .. } => "A stream that, held against the declaration below, gives",
    };
    let intro = format!("{what} {code} and nothing else. To try it:");
    write_part(out, "Example", &[&intro])?;
    let source = format!("  tracecheck explain {code} | grep '^{{' |");
    let command = example_command(explanation);
    let first_line = command.lines().next().unwrap_or_default();
    let fits = source.len() + 1 + first_line.len() <= WIDTH;
    let separator = if fits { " " } else { "\n    " };
    writeln!(out, "{source}{separator}{command}")?;
    writeln!(out)?;
    out.write_all(explanation.example.as_bytes())
}

/// The command that reads the example.
fn example_command(explanation: &Explanation) -> String {
    let (command, declaration) = match explanation.example_kind {
        ExampleKind::Trace => ("tracecheck", None),
        ExampleKind::Declaration => ("tracecheck check capabilities", None),
        ExampleKind::Events { declaration } => ("tracecheck --protocol ag-ui", Some(declaration)),
    };
    let mut command = [&[command], explanation.example_options].concat().join(" ");
    if let Some(declaration) = declaration {
        command = format!("{command} \\\n    --declaration <(echo '{declaration}')");
    }
    command
}

/// Lines of at most `width` characters, unless a word is longer.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(codes: &[Code]) -> String {
        let mut out = Vec::new();
        write(&mut out, codes).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn the_list_has_a_line_for_each_code() {
        let list = written(&[]);
        assert_eq!(list.lines().count(), Code::ALL.len());
        for (line, code) in list.lines().zip(Code::ALL) {
            assert!(line.starts_with(code.as_str()), "{line}");
            assert!(line.len() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn prose_fits_and_the_example_is_whole() {
        for &code in Code::ALL {
            let text = written(&[code]);
            let (records, prose): (Vec<_>, Vec<_>) =
                text.lines().partition(|line| line.starts_with('{'));
            assert_eq!(records.join("\n"), explanation(code).example.trim_end());
            for line in prose {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
    }

    #[test]
    fn an_option_that_the_example_needs_is_named() {
        assert!(written(&[Code::PartialTrace]).contains("| tracecheck --follow\n"));
        assert!(written(&[Code::Null]).contains("| tracecheck\n"));
        let unrecognised = written(&[Code::DeclarationUnrecognised]);
        assert!(unrecognised.contains("|\n    tracecheck check capabilities --strict\n"));
        assert!(written(&[Code::Capability]).contains(" --declaration <(echo '{"));
    }

    #[test]
    fn codes_are_explained_in_the_order_given() {
        let (null, gap) = (written(&[Code::Null]), written(&[Code::SeqGap]));
        assert_eq!(
            written(&[Code::Null, Code::SeqGap]),
            format!("{null}\n{gap}")
        );
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("overlong w", 4), ["overlong", "w"]);
        assert_eq!(wrap("", 4), [""; 0]);
    }
}
