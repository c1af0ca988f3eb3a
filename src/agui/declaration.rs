//! Checking a declaration that stands by itself.

use std::sync::Arc;

use super::shape;
use crate::decode::Malformed;
use crate::decode::document::{Document, Faults};
use crate::decode::reader::{Reader, Refused};
use crate::documents::NamedText;
use crate::filter::Filter;
use crate::finding::{Code, Finding, Report, Source};
use crate::framing::{Line, without_bom};
use crate::verify::report::{Place, Reporter, no_document};

/// The section of the page that says what a consumer does with a declaration that does not hold.
const RULE: &str = "error-handling";

/// Whatever it is called, it is the same document.
const ORIGIN: u128 = 0xa9_01;

/// Checks one declaration. Empty where it can be used.
///
/// Each described member with a value that the protocol rejects is `E_DECLARATION_MALFORMED`: the
/// consumer layer. Where `strict`, each member that is not described is
/// `E_DECLARATION_UNRECOGNISED` too, except inside the open objects (`identity.metadata`, `custom`,
/// the `metadata` of a tool) and inside a tool's `parameters`. A text that is no JSON object is one
/// malformed finding with the pointer `""`.
///
/// ```
/// use tracecheck::{Code, agui};
/// use tracecheck::documents::NamedText;
///
/// let document = NamedText {
///     name: "agent.json",
///     text: br#"{"tools": {"supported": "yes"}, "multiAgent": {"subAgents": []}}"#,
/// };
/// let findings = agui::check(document, false);
/// assert_eq!(findings.len(), 1);
/// assert_eq!(findings[0].code, Code::DeclarationMalformed);
/// assert_eq!(findings[0].pointer, "/tools/supported");
///
/// let findings = agui::check(document, true);
/// assert_eq!(findings[1].code, Code::DeclarationUnrecognised);
/// assert!(findings[1].sentence().ends_with("did you mean `subagents`?"));
/// ```
#[must_use]
pub fn check(document: NamedText<'_>, strict: bool) -> Vec<Finding> {
    let text = without_bom(document.text);
    let source = Source {
        name: Arc::from(document.name),
        origin: ORIGIN,
        is_resumable: false,
    };
    let place = Place {
        source: &source,
        line: Line {
            number: 1,
            offset: 0,
            bytes: text,
            too_long: false,
        },
    };
    let mut reports = Vec::new();
    let mut reporter = Reporter {
        filter: Filter::default(),
        counts: [],
        reports: &mut reports,
    };
    match faults(text, strict) {
        Ok(faults) => reporter.document(&place, faults),
        Err(malformed) => {
            let broken = no_document(malformed, text, RULE).with_code(Code::DeclarationMalformed);
            reporter.broken(&place, broken, &source.name);
        }
    }
    reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect()
}

/// Whether a document has members of an A3 declaration (`clearances`, `v`) and no member that AG-UI
/// describes. A consumer finds nothing wrong with such a document, and it is probably not what its
/// owner meant to check.
#[must_use]
pub fn looks_like_a3(document: NamedText<'_>) -> bool {
    let Ok(reader) = Reader::new(without_bom(document.text)) else {
        return false;
    };
    let mut document = Document {
        reader,
        faults: Faults::new(false),
        known: None,
    };
    shape::has_members_of_a3_only(&mut document).unwrap_or(false)
}

fn faults(text: &[u8], strict: bool) -> Result<Faults, Malformed> {
    let mut document = Document {
        reader: Reader::new(text)?,
        faults: Faults {
            rule: RULE,
            malformed: Code::DeclarationMalformed,
            unrecognised: Code::DeclarationUnrecognised,
            ..Faults::new(strict)
        },
        known: None,
    };
    shape::read_declaration(&mut document)
        .and_then(|()| document.reader.end())
        .map_err(|Refused| document.reader.malformed())?;
    Ok(document.faults)
}

/// A valid JSON text without the white space between its tokens.
pub(super) fn without_white_space(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if !matches!(c, ' ' | '\t' | '\r' | '\n') {
            out.push(c);
            in_string = c == '"';
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::document::MAX_FAULTS;

    fn named(text: &str) -> NamedText<'_> {
        NamedText {
            name: "d",
            text: text.as_bytes(),
        }
    }

    /// The codes and pointers of what is found.
    fn found(text: &str, strict: bool) -> Vec<(Code, String)> {
        check(named(text), strict)
            .into_iter()
            .map(|finding| (finding.code, finding.pointer))
            .collect()
    }

    fn malformed(pointers: &[&str]) -> Vec<(Code, String)> {
        let pair = |pointer: &&str| (Code::DeclarationMalformed, (*pointer).to_owned());
        pointers.iter().map(pair).collect()
    }

    #[test]
    fn nothing_declared_is_well_formed() {
        for text in ["{}", "\u{feff} {}\n", r#"{"tools":{},"custom":{}}"#] {
            assert_eq!(found(text, true), []);
        }
    }

    #[test]
    fn what_is_no_json_object_is_one_finding_for_the_whole() {
        for text in [
            "",
            " ",
            "null",
            "[]",
            "1",
            "{",
            "{}{}",
            "{\"a\":1,}",
            "tools = 1",
        ] {
            assert_eq!(found(text, true), malformed(&[""]), "{text}");
        }
        let finding = &check(named("nul"), false)[0];
        assert_eq!((finding.rule, finding.line, finding.seq), (RULE, 1, None));
    }

    #[test]
    fn faults_have_the_pointer_of_their_member() {
        let text = r#"{"tools":{"supported":"yes","items":[{},{"name":1,"description":"d"},null,
                {"name":"n","description":"d","parameters":null,"metadata":[]}],"parallelCalls":null},
            "state":[],"custom":null,"identity":{"metadata":"m","name":{}},
            "output":{"supportedMimeTypes":["a",1,null]},"multiAgent":{"subagents":{}},
            "execution":{"maxIterations":-1,"maxExecutionTime":1.5}}"#;
        let expected = malformed(&[
            "/tools/supported",
            "/tools/items/0/name",
            "/tools/items/0/description",
            "/tools/items/1/name",
            "/tools/items/2",
            "/tools/items/3/parameters",
            "/tools/items/3/metadata",
            "/tools/parallelCalls",
            "/state",
            "/custom",
            "/identity/metadata",
            "/identity/name",
            "/output/supportedMimeTypes/1",
            "/output/supportedMimeTypes/2",
            "/multiAgent/subagents",
            "/execution/maxIterations",
            "/execution/maxExecutionTime",
        ]);
        assert_eq!(found(text, false), expected);
        assert_eq!(found(text, true), expected);
    }

    #[test]
    fn a_described_member_that_comes_twice_is_malformed() {
        let text = r#"{"tools":{"supported":true,"\u0073upported":true},"state":{},"state":{},
            "custom":{"x":1,"x":2},"x":1,"x":2}"#;
        assert_eq!(
            found(text, false),
            malformed(&["/tools/supported", "/state"])
        );
    }

    #[test]
    fn open_objects_stay_open_where_the_rest_is_closed() {
        let text = r#"{"custom":{"tools":1,"x":null},"identity":{"metadata":{"name":1},"x":1},
            "tools":{"items":[{"name":"n","description":"d","parameters":{"x":{"y":null}},
                "metadata":{"z":1},"extra":1}]},"multiAgent":{"subAgents":[1],"subAgents":2},"v":"1.0"}"#;
        assert_eq!(found(text, false), []);
        let findings = check(named(text), true);
        let told: Vec<_> = findings
            .iter()
            .map(|f| {
                assert_eq!(f.code, Code::DeclarationUnrecognised);
                (&*f.pointer, f.detail.as_deref().expect("a hint"))
            })
            .collect();
        let ignored = "a consumer ignores it, and the closed schema rejects it";
        assert_eq!(
            told,
            [
                ("/identity/x", ignored),
                ("/tools/items/0/extra", ignored),
                ("/multiAgent/subAgents", "did you mean `subagents`?"),
                (
                    "/v",
                    "A3 declarations have `v`, and `tracecheck check declaration` checks those"
                ),
            ]
        );
    }

    #[test]
    fn a3_declarations_are_known_by_their_members() {
        let a3 = r#"{"v":"1.0","agent":{},"capabilities":[],"clearances":[]}"#;
        for (text, expected) in [
            (a3, true),
            (r#"{"clearances":[]}"#, true),
            (r#"{"v":"1.0","tools":{}}"#, false),
            (r#"{"agent":{}}"#, false),
            ("{}", false),
            ("[]", false),
            ("{", false),
        ] {
            assert_eq!(looks_like_a3(named(text)), expected, "{text}");
        }
    }

    #[test]
    fn thousands_of_faults_are_counted() {
        let text = format!(
            "{{\"output\":{{\"supportedMimeTypes\":[1{}]}}}}",
            ",1".repeat(1999)
        );
        let findings = check(named(&text), false);
        assert_eq!(findings.len(), MAX_FAULTS);
        let last = findings[MAX_FAULTS - 1].sentence();
        assert!(
            last.ends_with("1000 more findings are not listed"),
            "{last}"
        );
    }

    #[test]
    fn only_white_space_between_tokens_goes() {
        let text = "{ \"a b\\\" c\\\\\" :\t[ 1e400 , \"\\u00e9\\\\\" ,\r\n null ] }";
        assert_eq!(
            without_white_space(text),
            "{\"a b\\\" c\\\\\":[1e400,\"\\u00e9\\\\\",null]}"
        );
    }
}
