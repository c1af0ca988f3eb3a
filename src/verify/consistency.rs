//! Step 4, consistency (R13): what was matched is what was asked for, and a route may only add.

use super::drafts::Drafts;
use super::placement::scheduling_path;
use super::state::Submission;
use crate::decode::JsonStr;
use crate::decode::document::Reading;
use crate::finding::Code;
use crate::schema::Predicate;
use crate::schema::declaration::listed;
use crate::schema::predicate_set::Matched;

/// Compares S, what the task asked for, with P, what was matched. Only for a complete P.
pub(crate) fn judge(
    submission: &Submission,
    matched: &Matched<'_, '_>,
    route: &Reading<JsonStr<'_>>,
    drafts: &mut Drafts,
) {
    let asked: Vec<Predicate<'_>> = match submission {
        Submission::Unknown => return,
        Submission::None => Vec::new(),
        Submission::Set(set) if set.as_bytes() == matched.packed() => return,
        Submission::Set(set) => set.iter().collect(),
    };
    let missing = difference(asked.iter(), matched.iter());
    // A route that could not be read may or may not be on record as having added something.
    let may_add = match route {
        Reading::Absent => false,
        Reading::Unreadable => true,
        Reading::Value(route) => !route.is_empty(),
    };
    let added = match may_add {
        true => Vec::new(),
        false => difference(matched.iter(), asked.iter()),
    };
    if missing.is_empty() && added.is_empty() {
        return;
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("missing here: {}", listed(&missing)));
    }
    if !added.is_empty() {
        parts.push(format!(
            "added here, with no `route` on record: {}",
            listed(&added)
        ));
    }
    let message = match submission {
        Submission::None => "requirements were matched, but no task.submitted came before",
        _ => "the requirements matched are not those of task.submitted",
    }
    .to_owned();
    scheduling_path(|at| {
        let at = at.name("requirements");
        drafts.add(
            Code::RequirementsMismatch,
            "7.4",
            &at,
            message,
            parts.join("; "),
        );
    });
}

/// What `left` has and `right` has not; both sorted and without repeats.
pub(super) fn difference<'a, 'b>(
    left: impl Iterator<Item = &'a Predicate<'a>>,
    right: impl Iterator<Item = &'b Predicate<'b>>,
) -> Vec<String> {
    let mut right = right.peekable();
    left.filter(|predicate| {
        while right.next_if(|other| other < predicate).is_some() {}
        right.peek().is_none_or(|other| other != predicate)
    })
    .map(ToString::to_string)
    .collect()
}
