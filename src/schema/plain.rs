//! Entries of lists as most runtimes write them: complete, without escapes, their members in the
//! order of the schema. Such an entry is read here at a fraction of the cost of the general way;
//! anything else, and above all anything that there is something to say of, gives `None` and is
//! read by it. Tests hold both against each other.

use super::identifier::is_identifier;
use super::requirements::Capability;
use super::scheduling::Failed;
use crate::decode::reader::{JsonStr, Reader};

/// Any string.
pub(super) fn string<'a>(reader: &mut Reader<'a>) -> Option<JsonStr<'a>> {
    reader.plain_string()
}

/// A name or label.
pub(super) fn name<'a>(reader: &mut Reader<'a>) -> Option<JsonStr<'a>> {
    reader.plain_string().filter(|name| !name.is_empty())
}

/// A capability's name or a clearance.
pub(super) fn identifier<'a>(reader: &mut Reader<'a>) -> Option<JsonStr<'a>> {
    reader
        .plain_string()
        .filter(|text| text.plain().is_some_and(is_identifier))
}

/// `{"name":…,"version":…}`
pub(super) fn capability<'a>(reader: &mut Reader<'a>) -> Option<Capability<'a>> {
    reader.mark(b'{')?;
    reader.name("name")?;
    let name = identifier(reader)?;
    reader.mark(b',')?;
    reader.name("version")?;
    let version = reader.plain_integer()?;
    reader.mark(b'}')?;
    Some((name, version))
}

/// `{"candidate":…,"predicate":…}`
pub(super) fn failed<'a>(reader: &mut Reader<'a>) -> Option<Failed<'a>> {
    reader.mark(b'{')?;
    reader.name("candidate")?;
    let candidate = Some(name(reader)?);
    reader.mark(b',')?;
    reader.name("predicate")?;
    let predicate = Some(name(reader)?);
    reader.mark(b'}')?;
    Some(Failed {
        candidate,
        predicate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, read: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Option<bool> {
        // Room behind the text, as in a record; short reads need it.
        let padded = format!("{text}]                                ");
        let mut reader = Reader::over(&padded, 1);
        let found = reader.attempt(read).is_some();
        let at_end = reader.next_entry(false) == Ok(false);
        found.then_some(at_end)
    }

    #[test]
    fn plain_entries_are_read_to_their_end() {
        for text in [
            r#"{"name":"a.b","version":1}"#,
            r#" { "name" : "a.b" , "version" : 10 } "#,
        ] {
            assert_eq!(
                read(text, |r| capability(r).map(drop)),
                Some(true),
                "{text}"
            );
        }
        let text = r#"{"candidate":"order-analyst-0000","predicate":"tool:x"}"#;
        assert_eq!(read(text, |r| failed(r).map(drop)), Some(true));
        assert_eq!(
            read(r#""orders.read""#, |r| identifier(r).map(drop)),
            Some(true)
        );
    }

    #[test]
    fn anything_else_is_left_to_the_general_way() {
        for text in [
            r#"{"name":"a.b","version":01}"#,
            r#"{"name":"a.b","version":-0}"#,
            r#"{"name":"a.b","version":1.0}"#,
            r#"{"name":"a.b","version":1e3}"#,
            r#"{"name":"a.b","version":"1"}"#,
            r#"{"name":"a.b","version":18446744073709551615}"#,
            r#"{"name":"a.b","version":1,"description":""}"#,
            r#"{"name":"a.b","version":1,"version":1}"#,
            r#"{"version":1,"name":"a.b"}"#,
            r#"{"name":"A.b","version":1}"#,
            r#"{"name":"a\u002eb","version":1}"#,
            r#"{"n\u0061me":"a.b","version":1}"#,
            r#"{"names":"a.b","version":1}"#,
            r#"{"name":"a.b"}"#,
            r#"{"name":null,"version":1}"#,
            r#"{}"#,
            r#"null"#,
            "{\"name\":\"a\t.b\",\"version\":1}",
        ] {
            assert_eq!(read(text, |r| capability(r).map(drop)), None, "{text}");
        }
        assert_eq!(
            read(r#"{"candidate":"","predicate":"x"}"#, |r| failed(r)
                .map(drop)),
            None
        );
        assert_eq!(read(r#""""#, |r| name(r).map(drop)), None);
        assert_eq!(read(r#""Orders.read""#, |r| identifier(r).map(drop)), None);
        assert_eq!(read(r#"7"#, |r| string(r).map(drop)), None);
    }

    #[test]
    fn what_is_not_read_is_not_passed() {
        let mut reader = Reader::over(r#"{"name":"a.b","version":1.0}"#, 1);
        assert!(reader.attempt(capability).is_none());
        assert_eq!(reader.skip(), Ok(r#"{"name":"a.b","version":1.0}"#));
    }
}
