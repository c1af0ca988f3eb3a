//! Documents by themselves: checking requirements (section 4) or a declaration (section 3) that
//! stands in no trace, and matching one against the other (section 5).
//!
//! A document is read as a record's members are: R5 to R9 hold, the limits of R4 too, and one BOM
//! at its very start is skipped. What is found is a [`Finding`] whose `pointer` begins at the
//! document itself: `""` is the whole of it. Its `line` is 1 and its `offset` 0, `seq` and `kind`
//! are not known, and its `rule` is the section that describes the document, `3` or `4`.

use std::sync::Arc;

use crate::decode::Malformed;
use crate::decode::document::{Document, Faults, Reading};
use crate::decode::reader::{Read, Reader, Refused};
use crate::filter::Filter;
use crate::finding::{Finding, Report, Severity, Source};
use crate::framing::{Line, without_bom};
use crate::pointer::Path;
use crate::schema::Predicate;
use crate::schema::declaration::{Declaration, Verdict};
use crate::schema::requirements::Requirements;
use crate::verify::report::{Place, Reporter, no_document};
use crate::verify::satisfaction;

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// What a task requires (section 4).
    Requirements,
    /// What an agent declares about itself (section 3).
    Declaration,
}

impl DocumentKind {
    /// The section that describes it.
    const fn section(self) -> &'static str {
        match self {
            DocumentKind::Requirements => "4",
            DocumentKind::Declaration => "3",
        }
    }
}

/// The text of a document, and the name that its findings carry as `source`.
#[derive(Clone, Copy, Debug)]
pub struct NamedText<'a> {
    /// Such as a file's path.
    pub name: &'a str,
    /// The whole document.
    pub text: &'a [u8],
}

impl NamedText<'_> {
    /// The document without what may stand around it: one BOM at its start, and white space.
    #[must_use]
    pub fn trimmed(&self) -> &[u8] {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let text = without_bom(self.text);
        let start = text.iter().position(|byte| !is_space(byte));
        let end = text.iter().rposition(|byte| !is_space(byte));
        match (start, end) {
            (Some(start), Some(end)) => &text[start..=end],
            _ => &[],
        }
    }
}

/// Checks one document. It is usable if none of the findings is an error.
///
/// A text that is no JSON object gives one finding, at the pointer `""`. Unknown members are
/// ignored unless `strict`, which makes them `E_STRUCTURE`; what is inside the members that the
/// schema leaves open (`inputs`, `outputs` and `evaluation` of a capability) is never looked at.
///
/// ```
/// use tracecheck::documents::{DocumentKind, NamedText, check};
///
/// let requirements = NamedText {
///     name: "order.json",
///     text: br#"{"clearances": ["orders.read", "Refunds"], "residence": "eu"}"#,
/// };
/// let findings = check(DocumentKind::Requirements, requirements, false);
/// assert_eq!(findings.len(), 1);
/// assert_eq!(findings[0].pointer, "/clearances/1");
///
/// let findings = check(DocumentKind::Requirements, requirements, true);
/// assert_eq!(findings[1].pointer, "/residence");
/// ```
#[must_use]
pub fn check(kind: DocumentKind, document: NamedText<'_>, strict: bool) -> Vec<Finding> {
    match kind {
        DocumentKind::Requirements => read(kind, document, strict, Requirements::read).1,
        DocumentKind::Declaration => read_declaration(document, strict).1,
    }
}

/// How requirements and a declaration go together.
#[derive(Clone, Debug)]
pub struct Matching {
    /// What is wrong with the requirements.
    pub requirements_findings: Vec<Finding>,
    /// What is wrong with the declaration.
    pub declaration_findings: Vec<Finding>,
    /// Each distinct predicate of the requirements that could be read, in the order of section 4
    /// and, within a list, of its entries.
    pub matches: Vec<Match>,
}

/// A predicate held against the declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// What is asked for.
    pub predicate: Predicate<'static>,
    /// JSON Pointer of the first entry of the requirements that asks for it.
    pub pointer: String,
    /// Whether the declaration satisfies it.
    pub outcome: Outcome,
}

/// Whether a declaration satisfies a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Satisfied,
    /// It does not.
    Unmet {
        /// What is not satisfied, in one sentence without a full stop.
        message: String,
        /// What the declaration holds instead.
        holdings: String,
    },
    /// It may or may not: what it declares there could not be read whole, and a finding says why.
    Undecided,
}

impl Matching {
    /// Whether the requirements are well formed and empty, which any agent satisfies.
    #[must_use]
    pub fn asks_nothing(&self) -> bool {
        self.matches.is_empty() && is_usable(&self.requirements_findings)
    }

    /// Whether both documents are free of errors and every predicate is satisfied.
    #[must_use]
    pub fn holds(&self) -> bool {
        let satisfied = |found: &Match| found.outcome == Outcome::Satisfied;
        is_usable(&self.requirements_findings)
            && is_usable(&self.declaration_findings)
            && self.matches.iter().all(satisfied)
    }
}

/// Whether no finding is an error.
#[must_use]
pub fn is_usable(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity() != Severity::Error)
}

/// Matches requirements against a declaration, predicate by predicate (section 5, R14).
///
/// Where a document is malformed, what could be read of it is matched all the same (R6).
///
/// ```
/// use tracecheck::documents::{NamedText, Outcome, match_documents};
///
/// let requirements = NamedText {
///     name: "order.json",
///     text: br#"{"clearances": ["orders.read"], "tools": ["orders.lookup"]}"#,
/// };
/// let declaration = NamedText {
///     name: "agent.json",
///     text: br#"{
///         "v": "1.0",
///         "agent": {"name": "order-analyst", "namespace": "support"},
///         "capabilities": [],
///         "clearances": ["orders.read"]
///     }"#,
/// };
/// let matching = match_documents(requirements, declaration);
/// assert!(!matching.holds());
/// assert_eq!(matching.matches[0].outcome, Outcome::Satisfied);
/// assert_eq!(matching.matches[1].predicate.to_string(), "tool:orders.lookup");
/// assert!(matches!(&matching.matches[1].outcome, Outcome::Unmet { .. }));
/// ```
#[must_use]
pub fn match_documents(requirements: NamedText<'_>, declaration: NamedText<'_>) -> Matching {
    let kind = DocumentKind::Requirements;
    let (required, requirements_findings) = read(kind, requirements, false, Requirements::read);
    let (declared, declaration_findings) = read_declaration(declaration, false);
    let matches = required.map_or_else(Vec::new, |required| match_each(&required, declared));
    Matching {
        requirements_findings,
        declaration_findings,
        matches,
    }
}

fn match_each(required: &Requirements<'_>, declared: Option<Declaration<'_>>) -> Vec<Match> {
    let mut seen = std::collections::HashSet::new();
    required
        .asked
        .iter()
        .filter(|asked| seen.insert(&asked.predicate))
        .map(|asked| Match {
            predicate: asked.predicate.clone().into_owned(),
            pointer: asked.pointer(&Path::ROOT),
            outcome: outcome(&asked.predicate, declared.as_ref()),
        })
        .collect()
}

fn outcome(predicate: &Predicate<'_>, declared: Option<&Declaration<'_>>) -> Outcome {
    let Some(declared) = declared else {
        return Outcome::Undecided;
    };
    match declared.judge(predicate) {
        Verdict::Satisfied => Outcome::Satisfied,
        Verdict::Undecided => Outcome::Undecided,
        Verdict::Unmet => Outcome::Unmet {
            message: satisfaction::message(predicate),
            holdings: satisfaction::detail(predicate, declared),
        },
    }
}

fn read_declaration(
    document: NamedText<'_>,
    strict: bool,
) -> (Option<Declaration<'_>>, Vec<Finding>) {
    read(
        DocumentKind::Declaration,
        document,
        strict,
        Declaration::read,
    )
}

/// A reader of one kind of document.
type ReadFn<'a, T> = fn(&mut Document<'a>, &Path) -> Read<Reading<T>>;

/// What could be read of a document, and what is wrong with it.
fn read<'a, T>(
    kind: DocumentKind,
    document: NamedText<'a>,
    strict: bool,
    read: ReadFn<'a, T>,
) -> (Option<T>, Vec<Finding>) {
    let text = without_bom(document.text);
    let (value, read) = match read_text(kind, text, strict, read) {
        Ok((value, faults)) => (value, Ok(faults)),
        Err(malformed) => (None, Err(no_document(malformed, text, kind.section()))),
    };
    let source = Source {
        name: Arc::from(document.name),
        // Whatever it is called, it is the same document.
        origin: kind as u128,
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
    match read {
        Ok(faults) => reporter.document(&place, faults),
        Err(broken) => reporter.broken(&place, broken, &place.source.name),
    }
    let findings = reports.into_iter().filter_map(Report::into_finding);
    (value, findings.collect())
}

fn read_text<'a, T>(
    kind: DocumentKind,
    text: &'a [u8],
    strict: bool,
    read: ReadFn<'a, T>,
) -> Result<(Option<T>, Faults), Malformed> {
    let mut document = Document {
        reader: Reader::new(text)?,
        faults: Faults::new(strict),
        known: None,
    };
    document.faults.rule = kind.section();
    let reading = read(&mut document, &Path::ROOT)
        .and_then(|reading| document.reader.end().map(|()| reading))
        .map_err(|Refused| document.reader.malformed())?;
    let value = match reading {
        Reading::Value(value) => Some(value),
        _ => None,
    };
    Ok((value, document.faults))
}

#[cfg(test)]
mod tests {
    use super::DocumentKind::{Declaration, Requirements};
    use super::*;
    use crate::decode::MAX_DEPTH;
    use crate::finding::Code;

    fn named(text: &[u8]) -> NamedText<'_> {
        NamedText { name: "d", text }
    }

    /// The codes and pointers of what is found.
    fn found(kind: DocumentKind, text: &[u8], strict: bool) -> Vec<(Code, String)> {
        check(kind, named(text), strict)
            .into_iter()
            .map(|finding| (finding.code, finding.pointer))
            .collect()
    }

    fn structure(pointers: &[&str]) -> Vec<(Code, String)> {
        let pair = |pointer: &&str| (Code::Structure, (*pointer).to_owned());
        pointers.iter().map(pair).collect()
    }

    /// A declaration that is all there but for `more`.
    fn declaration(more: &str) -> String {
        format!(
            r#"{{"v":"1.0","agent":{{"name":"a","namespace":"n"}},"capabilities":[],"clearances":[]{more}}}"#
        )
    }

    #[test]
    fn well_formed_documents_have_no_findings() {
        for text in ["{}", " \t\r\n{ }\n\n", "\u{feff}{}", "\u{feff}\n{}"] {
            assert_eq!(found(Requirements, text.as_bytes(), true), []);
        }
        assert_eq!(found(Declaration, declaration("").as_bytes(), true), []);
    }

    #[test]
    fn what_is_no_object_gives_one_finding_for_the_whole() {
        let deep = [b"{\"a\":".repeat(MAX_DEPTH + 1), b"1".to_vec()].concat();
        let texts: [&[u8]; 16] = [
            b"",
            b" \n",
            b"\xEF\xBB\xBF",
            b"\xEF\xBB\xBF\xEF\xBB\xBF{}",
            b"null",
            b"17",
            b"\"requirements\"",
            b"[{}]",
            b"{\"tools\":[1,\"\"],}",
            b"{\"tools\":[1]} {}",
            b"{} x",
            b"{}\0",
            b"{\"a\":\"\\ud800\"}",
            b"{\"a\":\"\xff\"}",
            b"v = \"1.0\"",
            &deep,
        ];
        for text in texts {
            for kind in [Requirements, Declaration] {
                let shown = String::from_utf8_lossy(&text[..text.len().min(40)]);
                assert_eq!(found(kind, text, true), structure(&[""]), "{shown}");
            }
        }
    }

    #[test]
    fn the_document_itself_is_the_first_level() {
        let nested = |levels: usize| {
            let inner = [b"[".repeat(levels - 1), b"]".repeat(levels - 1)].concat();
            [b"{\"x\":", &inner[..], b"}"].concat()
        };
        assert_eq!(found(Requirements, &nested(MAX_DEPTH), false), []);
        let deeper = nested(MAX_DEPTH + 1);
        assert_eq!(found(Requirements, &deeper, false), structure(&[""]));
    }

    #[test]
    fn members_are_read_as_in_a_record() {
        let text = br#"{"v":"2.0","clearances":["a.b",7],"tools":["",null],"tools":[],
            "residency":null,"session":1,"exclude":[{}]}"#;
        let mut expected = structure(&["/v", "/clearances/1", "/tools/0", "/tools/1", "/tools"]);
        expected.push((Code::Null, "/residency".to_owned()));
        expected.extend(structure(&["/session", "/exclude/0/name"]));
        assert_eq!(found(Requirements, text, false), expected);
        let expected = ["/v", "/agent", "/capabilities", "/clearances"];
        assert_eq!(found(Declaration, b"{}", false), structure(&expected));
    }

    #[test]
    fn unknown_members_count_only_where_strict_and_only_once() {
        let text = br#"{"tool":[],"tool":[],"a/b":{"c":1},"model":{"class":1},
            "agentRef":{"name":"x","namespace":"n","id":1},"capabilities":[{"name":"a.b","version":1,"inputs":{}}]}"#;
        assert_eq!(found(Requirements, text, false), []);
        let expected = [
            "/tool",
            "/a~1b",
            "/model/class",
            "/agentRef/id",
            "/capabilities/0/inputs",
        ];
        assert_eq!(found(Requirements, text, true), structure(&expected));
        let more = r#","agent":{"id":1},"x":1"#;
        let expected = ["/agent", "/x"];
        let text = declaration(more);
        assert_eq!(
            found(Declaration, text.as_bytes(), true),
            structure(&expected)
        );
    }

    #[test]
    fn open_members_are_never_looked_into() {
        let text = declaration("").replace(
            r#""capabilities":[]"#,
            r#""capabilities":[{"name":"a.b","version":1,"description":"d",
            "inputs":{"type":"object","x":1,"x":null},"outputs":[{"y":{}}],"evaluation":"z"}]"#,
        );
        assert_eq!(found(Declaration, text.as_bytes(), true), []);
        let text = text.replace(r#""evaluation""#, r#""evaluations""#);
        let expected = structure(&["/capabilities/0/evaluations"]);
        assert_eq!(found(Declaration, text.as_bytes(), true), expected);
    }

    #[test]
    fn a_finding_tells_the_document_and_its_section() {
        let text = b"\xEF\xBB\xBF\n{\"v\":2,\n \"agent\": {}";
        for (kind, rule) in [(Requirements, "4"), (Declaration, "3")] {
            let findings = check(kind, named(text), false);
            let finding = &findings[0];
            assert_eq!((finding.line, finding.offset, finding.rule), (1, 0, rule));
            assert_eq!((finding.seq, &finding.kind), (None, &None));
            assert_eq!((&*finding.source, &*finding.trace), ("d", "d"));
            assert!(
                finding.message.contains("line 3, column 13"),
                "{}",
                finding.message
            );
        }
        let finding = &check(Requirements, named(b"{\"v\":2}"), false)[0];
        assert_eq!((finding.rule, finding.value.as_deref()), ("4", Some("2")));
    }

    #[test]
    fn each_predicate_is_matched_once_in_order() {
        let required = br#"{"exclude":["a","b"],"clearances":["c.c","c.c","c.d"],"residency":"eu",
            "capabilities":[{"name":"a.b","version":1},{"name":"a.b","version":2}],"tools":["t"]}"#;
        let declared = declaration(r#","tools":["t",1]"#)
            .replace(
                r#""capabilities":[]"#,
                r#""capabilities":[{"name":"a.b","version":2}]"#,
            )
            .replace(r#""clearances":[]"#, r#""clearances":["c.d",5]"#);
        let matching = match_documents(named(required), named(declared.as_bytes()));
        let word = |outcome: &Outcome| match outcome {
            Outcome::Satisfied => "satisfied",
            Outcome::Unmet { .. } => "unmet",
            Outcome::Undecided => "undecided",
        };
        let lines: Vec<_> = matching
            .matches
            .iter()
            .map(|found| {
                format!(
                    "{} {} {}",
                    word(&found.outcome),
                    found.predicate,
                    found.pointer
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                "unmet capability:a.b/1 /capabilities/0",
                "satisfied capability:a.b/2 /capabilities/1",
                "undecided clearance:c.c /clearances/0",
                "satisfied clearance:c.d /clearances/2",
                "satisfied tool:t /tools/0",
                "unmet residency:eu /residency",
                "unmet anti-affinity:a /exclude/0",
                "satisfied anti-affinity:b /exclude/1",
            ]
        );
        assert_eq!(matching.requirements_findings, []);
        assert_eq!(matching.declaration_findings.len(), 2);
        assert!(!matching.holds());
    }

    #[test]
    fn a_matching_holds_only_between_documents_without_errors() {
        let declared = declaration("");
        let holds = |required: &str, declared: &str| {
            match_documents(named(required.as_bytes()), named(declared.as_bytes())).holds()
        };
        assert!(holds("{}", &declared));
        assert!(holds(r#"{"tools":null}"#, &declared));
        let asks_nothing = |required: &str| {
            match_documents(named(required.as_bytes()), named(b"1")).asks_nothing()
        };
        assert!(asks_nothing(r#"{"session":"s"}"#));
        assert!(!asks_nothing(r#"{"tools":["t"]}"#) && !asks_nothing("["));
        assert!(!holds(r#"{"v":"2"}"#, &declared));
        assert!(!holds("[]", &declared));
        assert!(!holds("{}", "{}"));
        let undecided = match_documents(named(br#"{"tools":["t"]}"#), named(b"1"));
        assert_eq!(undecided.matches[0].outcome, Outcome::Undecided);
    }
}
