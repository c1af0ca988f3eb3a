//! Step 6, explanation (R15): the lists that explain a placement agree with it.

use super::drafts::Drafts;
use super::placement::scheduling_path;
use crate::decode::JsonStr;
use crate::decode::document::{List, Reading, quoted};
use crate::finding::Code;
use crate::schema::Predicate;
use crate::schema::declaration::listed;
use crate::schema::predicate_set::Matched;
use crate::schema::scheduling::Scheduling;

/// Runs the three checks, each on what could be read.
pub(crate) fn judge(
    scheduling: &Scheduling<'_>,
    matched: Option<&Matched<'_, '_>>,
    chosen: Option<JsonStr<'_>>,
    drafts: &mut Drafts,
) {
    if let (Reading::Value(passed), Some(matched)) = (&scheduling.filters_passed, matched)
        && passed.whole
        && matched.complete
    {
        judge_passed(passed, matched, drafts);
    }
    let Some(chosen) = chosen else { return };
    if let Reading::Value(failed) = &scheduling.filters_failed {
        for (index, entry) in &failed.entries {
            if entry.candidate.is_some_and(|candidate| candidate == chosen) {
                add_failed(*index, chosen, entry.predicate, drafts);
            }
        }
    }
    if let Reading::Value(scores) = &scheduling.scores
        && !scores.contains(&chosen)
    {
        add_unscored(chosen, scores, drafts);
    }
}

/// `filters_passed` equals P as a set; order and repeats do not matter.
fn judge_passed(passed: &List<JsonStr<'_>>, matched: &Matched<'_, '_>, drafts: &mut Drafts) {
    // As written by most runtimes: one for one, in the order of the requirements.
    let in_order = passed.entries.len() == matched.asked.len()
        && passed
            .values()
            .zip(matched.asked)
            .all(|(text, asked)| asked.predicate.is_spelt(&text.decode()));
    if in_order {
        return;
    }
    let texts: Vec<_> = passed.values().map(|text| text.decode()).collect();
    let mut parsed: Vec<_> = texts
        .iter()
        .filter_map(|text| Predicate::parse(text))
        .collect();
    parsed.sort_unstable();
    parsed.dedup();
    let not_passed: Vec<String> = matched
        .iter()
        .filter(|predicate| parsed.binary_search(predicate).is_err())
        .map(ToString::to_string)
        .collect();
    let mut not_matched: Vec<&str> = texts
        .iter()
        .filter(|text| !Predicate::parse(text).is_some_and(|predicate| matched.holds(&predicate)))
        .map(|text| &**text)
        .collect();
    not_matched.sort_unstable();
    not_matched.dedup();
    if not_passed.is_empty() && not_matched.is_empty() {
        return;
    }
    let mut parts = Vec::new();
    if !not_passed.is_empty() {
        parts.push(format!("missing: {}", listed(&not_passed)));
    }
    if !not_matched.is_empty() {
        parts.push(format!(
            "not among the requirements: {}",
            listed(&not_matched)
        ));
    }
    let message = "`filters_passed` is not the predicate set of the requirements".to_owned();
    scheduling_path(|at| {
        let at = at.name("filters_passed");
        drafts.add(Code::Explanation, "7.6", &at, message, parts.join("; "));
    });
}

fn add_failed(
    index: usize,
    chosen: JsonStr<'_>,
    predicate: Option<JsonStr<'_>>,
    drafts: &mut Drafts,
) {
    let name = chosen.decode();
    let message = format!(
        "the chosen agent `{}` is listed in `filters_failed`",
        quoted(&name)
    );
    let detail = match predicate {
        Some(predicate) => format!(
            "it is said to have failed {}",
            listed(&[predicate.decode()])
        ),
        None => String::new(),
    };
    scheduling_path(|at| {
        let at = at.name("filters_failed");
        drafts.add(Code::Explanation, "7.6", &at.index(index), message, detail);
    });
}

fn add_unscored(chosen: JsonStr<'_>, scores: &[JsonStr<'_>], drafts: &mut Drafts) {
    let name = chosen.decode();
    let message = format!(
        "`scores` has no member for the chosen agent `{}`",
        quoted(&name)
    );
    let scored: Vec<_> = scores.iter().map(|name| name.decode()).collect();
    let detail = format!("scored: {}", listed(&scored));
    scheduling_path(|at| {
        drafts.add(
            Code::Explanation,
            "7.6",
            &at.name("scores"),
            message,
            detail,
        )
    });
}
