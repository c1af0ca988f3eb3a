//! Finding a member again in a text that the reader has passed before.

use std::ops::ControlFlow;

use super::document::cut;
use super::reader::{Reader, Type};
use crate::pointer::JsonPointer;

const VALID: &str = "the reader has passed this text before";

/// The text of the member or entry of `text` that `token` names (the first, where there are
/// several), and how often it is there.
pub(crate) fn child<'a>(text: &'a str, token: &str) -> (Option<&'a str>, u32) {
    let (mut found, mut occurrences) = (None, 0);
    each_child(text, token, |value| {
        found = found.or(Some(value));
        occurrences += 1;
        ControlFlow::Continue(())
    });
    (found, occurrences)
}

/// The first of [`child`], without looking for others.
fn first_child<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    let mut found = None;
    each_child(text, token, |value| {
        found = Some(value);
        ControlFlow::Break(())
    });
    found
}

/// Shows `see` every member or entry of `text` that `token` names, until it has seen enough.
fn each_child<'a>(text: &'a str, token: &str, mut see: impl FnMut(&'a str) -> ControlFlow<()>) {
    let mut reader = Reader::over(text, 0);
    match reader.peek().expect(VALID) {
        Type::Object => {
            reader.begin_object().expect(VALID);
            let mut first = true;
            while let Some(name) = reader.next_name(first).expect(VALID) {
                let value = reader.skip().expect(VALID);
                if name == *token && see(value).is_break() {
                    return;
                }
                first = false;
            }
        }
        Type::List => {
            let Some(wanted) = index(token) else { return };
            reader.begin_list().expect(VALID);
            let mut index = 0;
            while reader.next_entry(index == 0).expect(VALID) {
                let value = reader.skip().expect(VALID);
                if index == wanted {
                    // No other entry has this index.
                    let _ = see(value);
                    return;
                }
                index += 1;
            }
        }
        _ => {}
    }
}

/// An index as RFC 6901 has it: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let index = token.parse::<usize>().ok()?;
    (index.to_string() == token).then_some(index)
}

/// The member of a valid line at `pointer` as it stands there, cut to `max_bytes`; `None` where it
/// is missing, or is the whole line.
pub(crate) fn excerpt(line: &[u8], pointer: &str, max_bytes: usize) -> Option<String> {
    let pointer: JsonPointer = pointer.parse().ok()?;
    let mut text = std::str::from_utf8(line).ok()?;
    for token in pointer.tokens() {
        text = first_child(text, token)?;
    }
    Some(cut(text, max_bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts() {
        let line = br#" {"a":[1,{"b":"x"}],"a":2,"c/d": {"e":"0123456789"}} "#;
        let excerpt = |pointer| excerpt(line, pointer, 8);
        assert_eq!(excerpt("/a/0").as_deref(), Some("1"));
        assert_eq!(excerpt("/a/1/b").as_deref(), Some("\"x\""));
        assert_eq!(excerpt("/c~1d/e").as_deref(), Some("\"0123456…"));
        assert_eq!(excerpt("/a/2"), None);
        assert_eq!(excerpt("/missing"), None);
        assert_eq!(excerpt(""), None);
    }
}
