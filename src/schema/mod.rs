//! The documents of the schema: identifiers, predicates, requirements, declarations, and the
//! `scheduling` object that records a placement.
//!
//! A document is read once, from left to right, straight from the record's bytes; what is
//! malformed is noted and the rest is read all the same (R5, R6).

pub(crate) mod agent;
pub(crate) mod declaration;
pub mod identifier;
pub(crate) mod known;
mod plain;
pub mod predicate;
pub(crate) mod predicate_set;
pub(crate) mod requirements;
pub(crate) mod scheduling;

pub use predicate::{Predicate, PredicateKind};

use crate::decode::document::{Document, Reading};
use crate::decode::reader::{JsonStr, Read};
use crate::pointer::Path;

/// What `v` is, for messages.
const VERSION: &str = "a string with a schema version 1.x, such as \"1.0\"";
const NON_EMPTY: &str = "a non-empty string";

/// Reads `v`: `1(\.[0-9]+)*`, the whole string (R7).
fn schema_version(document: &mut Document<'_>, at: &Path) -> Read<Reading<()>> {
    let reading = document.string(at, VERSION)?;
    let Reading::Value(version) = reading else {
        return Ok(Reading::Unreadable);
    };
    let version = version.decode();
    let mut parts = version.split('.');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if parts.next() == Some("1") && parts.all(digits) {
        return Ok(Reading::Value(()));
    }
    document.faults.wrong_string(at, &version, VERSION);
    Ok(Reading::Unreadable)
}

const CLEARANCE: &str = "a clearance such as orders.read, matching [a-z0-9]+(\\.[a-z0-9-]+)+";

/// Reads a clearance. One that breaks only the grammar is a fault and still counts (R7).
fn clearance<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<JsonStr<'a>>> {
    identifier(document, at, CLEARANCE)
}

/// Reads an identifier. One that breaks only the grammar is a fault and still counts (R7).
fn identifier<'a>(
    document: &mut Document<'a>,
    at: &Path,
    expected: &str,
) -> Read<Reading<JsonStr<'a>>> {
    let reading = document.string(at, expected)?;
    if let Some(string) = reading.value() {
        let text = string.decode();
        if !identifier::is_identifier(&text) {
            document.faults.wrong_string(at, &text, expected);
        }
    }
    Ok(reading)
}

/// Reads a latency class. A string that is none of the two is a fault and still counts (R8).
fn latency_class<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<JsonStr<'a>>> {
    const CLASS: &str = "\"interactive\" or \"batch\"";
    let reading = document.string(at, CLASS)?;
    if let Some(class) = reading.value()
        && *class != *"interactive"
        && *class != *"batch"
    {
        document.faults.wrong_string(at, &class.decode(), CLASS);
    }
    Ok(reading)
}
