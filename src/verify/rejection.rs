//! Step 7, rejection (R17): who claims that no agent was eligible says which predicate failed.

use super::drafts::Drafts;
use super::reason::{ClaimPatterns, names_predicate};
use crate::decode::document::quoted;
use crate::decode::reader::{Reader, Type};
use crate::finding::Code;
use crate::pointer::Path;

/// Judges the text of a `reason`: every string in it, and every member name, is a text of its own.
pub(crate) fn judge(reason: &str, patterns: &ClaimPatterns, drafts: &mut Drafts) {
    let mut claim = None;
    let mut named = false;
    for_each_text(reason, &mut |text| {
        named = named || names_predicate(text);
        if claim.is_none() && patterns.claims(text) {
            claim = Some(quoted(text).into_owned());
        }
    });
    let Some(claim) = claim else { return };
    if named {
        return;
    }
    let content = Path::ROOT.name("content");
    let message = format!(
        "the rejection claims that no agent was eligible and names no predicate: {claim:?}"
    );
    let detail = "expected the candidates and the predicate that each of them failed, such as \
                  capability:order.investigate/2"
        .to_owned();
    drafts.add(
        Code::RejectionReason,
        "7.7",
        &content.name("reason"),
        message,
        detail,
    );
}

/// Calls `each` with every string and member name in the JSON text, at any depth.
fn for_each_text(json: &str, each: &mut impl FnMut(&str)) {
    let valid = "the reader has passed this text before";
    let mut reader = Reader::over(json, 0);
    // Whether each open container is an object, and whether nothing of it has been read yet.
    let mut open: Vec<(bool, bool)> = Vec::new();
    loop {
        match reader.peek().expect(valid) {
            Type::String => each(&reader.string().expect(valid).decode()),
            Type::Object => {
                reader.begin_object().expect(valid);
                open.push((true, true));
            }
            Type::List => {
                reader.begin_list().expect(valid);
                open.push((false, true));
            }
            _ => drop(reader.skip().expect(valid)),
        }
        // Goes on to the next value, leaving the containers that end here.
        loop {
            let Some((object, first)) = open.last_mut() else {
                return;
            };
            let first = std::mem::replace(first, false);
            let more = if *object {
                let name = reader.next_name(first).expect(valid);
                name.map(|name| each(&name.decode())).is_some()
            } else {
                reader.next_entry(first).expect(valid)
            };
            if more {
                break;
            }
            open.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_and_name_is_a_text() {
        let mut texts = Vec::new();
        let json = r#"{"a":["b",{"c":null},[],{}],"d":1,"\u0065":"f"}"#;
        for_each_text(json, &mut |text| texts.push(text.to_owned()));
        assert_eq!(texts, ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn a_claim_needs_a_predicate() {
        let judged = |reason: &str| {
            let mut drafts = Drafts::default();
            judge(reason, &ClaimPatterns::default(), &mut drafts);
            drafts.list.len()
        };
        assert_eq!(judged(r#""No agent available""#), 1);
        assert_eq!(judged(r#"{"code":"NO_ELIGIBLE_AGENT"}"#), 1);
        assert_eq!(judged(r#"["No agent available",{"clearance:a.b":[]}]"#), 0);
        assert_eq!(judged(r#""budget exhausted""#), 0);
        assert_eq!(judged("17"), 0);
    }
}
