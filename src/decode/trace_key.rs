//! The member that names the trace a record belongs to (`--trace-key`).

use std::borrow::Cow;

use super::document::{Draft, Faults};
use super::lookup::child;
use super::reader::{Reader, Type};
use crate::pointer::{JsonPointer, Path};

const NAME: &str = "the trace's name, a non-empty string or an integer";

/// The trace's name. `first` is the text of the record's member that the pointer's first token
/// names, `occurrences` how often it came. An integer names the same trace as its decimal digits
/// do as a string. `None` where there is no name; then a fault says why.
pub(super) fn trace_name<'a>(
    pointer: &JsonPointer,
    first: Option<&'a str>,
    occurrences: u32,
    faults: &mut Faults,
) -> Option<Cow<'a, str>> {
    let (name, rest) = pointer
        .tokens()
        .split_first()
        .expect("a pointer is never empty");
    let at = Path::ROOT.name(name);
    let known = faults.drafts.len();
    let found = find(first, occurrences, rest, &at, faults);
    drop_repeated(known, faults);
    found
}

/// Where the record is malformed at the same member anyway, that is said once.
fn drop_repeated(known: usize, faults: &mut Faults) {
    let (known, new) = faults.drafts.split_at(known);
    let is_same = |a: &Draft, b: &Draft| (a.code, &a.pointer) == (b.code, &b.pointer);
    if let [new] = new
        && known.iter().any(|draft| is_same(draft, new))
    {
        faults.drafts.pop();
    }
}

/// Goes down to the member that `rest` names below `at`.
fn find<'a>(
    found: Option<&'a str>,
    occurrences: u32,
    rest: &[String],
    at: &Path,
    faults: &mut Faults,
) -> Option<Cow<'a, str>> {
    let Some(text) = found else {
        faults.missing(at, NAME);
        return None;
    };
    if occurrences > 1 {
        let message = format!("{} occurs twice in its object", at.label());
        faults.structure(at, message, NAME);
        return None;
    }
    match rest.split_first() {
        None => name(text, at, faults),
        Some((token, rest)) => {
            let (found, occurrences) = child(text, token);
            find(found, occurrences, rest, &at.name(token), faults)
        }
    }
}

/// Reads the name itself.
fn name<'a>(text: &'a str, at: &Path, faults: &mut Faults) -> Option<Cow<'a, str>> {
    let mut reader = Reader::over(text, 0);
    let valid = "the reader has passed this text before";
    match reader.peek().expect(valid) {
        Type::String => {
            let name = reader.string().expect(valid);
            if !name.is_empty() {
                return Some(name.decode());
            }
            faults.structure(at, format_args!("{} is the empty string", at.label()), NAME);
        }
        Type::Number => {
            let text = reader.skip().expect(valid);
            if text == "-0" {
                return Some(Cow::Borrowed("0"));
            }
            if !text.contains(['.', 'e', 'E']) {
                return Some(Cow::Borrowed(text));
            }
            let found = super::document::quoted(text);
            faults.structure(at, format_args!("{} is {found}", at.label()), NAME);
        }
        other => {
            faults.structure(
                at,
                format_args!("{} is {}", at.label(), other.described()),
                NAME,
            );
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(pointer: &str, text: &str) -> Result<String, String> {
        let record =
            crate::decode::record(text.as_bytes(), Some(&pointer.parse().unwrap()), None).unwrap();
        record
            .key
            .map(Cow::into_owned)
            .ok_or_else(|| record.faults[0].pointer.clone())
    }

    #[test]
    fn names() {
        let record = |member: &str| format!(r#"{{"seq":1,"kind":"note",{member}}}"#);
        for (pointer, member, name) in [
            ("/trace", r#""trace":"t""#, "t"),
            ("/trace", r#""\u0074race":"\u0074""#, "t"),
            ("/trace", r#""trace":7"#, "7"),
            ("/trace", r#""trace":-0"#, "0"),
            (
                "/trace",
                r#""trace":123456789012345678901234567890"#,
                "123456789012345678901234567890",
            ),
            ("/content/task/id", r#""content":{"task":{"id":"x"}}"#, "x"),
            ("/content/1", r#""content":[1,"b"]"#, "b"),
            ("/a~1b/", r#""a/b":{"":"z"}"#, "z"),
        ] {
            assert_eq!(
                resolve(pointer, &record(member)),
                Ok(name.to_owned()),
                "{member}"
            );
        }
        assert_eq!(resolve("/seq", &record(r#""x":1"#)), Ok("1".to_owned()));
    }

    #[test]
    fn a_member_that_is_malformed_anyway_is_reported_once() {
        let bound = r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"declaration":{"v":"1","agent":{"namespace":"n"},"capabilities":[],"clearances":[]}}}}"#;
        for (pointer, text) in [
            ("/seq", r#"{"kind":"note"}"#),
            ("/seq", r#"{"seq":1.0,"kind":"note"}"#),
            ("/kind", r#"{"seq":1,"kind":""}"#),
            ("/kind", r#"{"seq":1,"kind":"a","kind":"b"}"#),
            ("/content/task", r#"{"seq":1,"kind":"task.bound"}"#),
            ("/content/scheduling/declaration/agent/name", bound),
        ] {
            let pointer = pointer.parse().unwrap();
            let record = crate::decode::record(text.as_bytes(), Some(&pointer), None).unwrap();
            assert_eq!(record.key, None, "{text}");
            let mut pointers: Vec<_> = record.faults.iter().map(|f| &f.pointer).collect();
            pointers.sort();
            pointers.dedup();
            assert_eq!(pointers.len(), record.faults.len(), "{text}");
        }
    }

    #[test]
    fn no_names() {
        let record = |member: &str| format!(r#"{{"seq":1,"kind":"note",{member}}}"#);
        for (pointer, member, at) in [
            ("/trace", r#""x":"t""#, "/trace"),
            ("/trace", r#""trace":"""#, "/trace"),
            ("/trace", r#""trace":null"#, "/trace"),
            ("/trace", r#""trace":1.0"#, "/trace"),
            ("/trace", r#""trace":1e3"#, "/trace"),
            ("/trace", r#""trace":{}"#, "/trace"),
            ("/trace", r#""trace":"a","trace":"a""#, "/trace"),
            (
                "/content/task/id",
                r#""content":{"task":7}"#,
                "/content/task/id",
            ),
            ("/content/task/id", r#""content":{}"#, "/content/task"),
            ("/content/1", r#""content":["a"]"#, "/content/1"),
        ] {
            assert_eq!(
                resolve(pointer, &record(member)),
                Err(at.to_owned()),
                "{member}"
            );
        }
    }
}
