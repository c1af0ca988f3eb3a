//! What each code means: for the person whom an alert has woken up.
//!
//! [`explanation`] matches every [`Code`], so a code without a text does not compile. Each example
//! is a whole trace that gives findings of its own code and of no other.

mod advisories;
mod errors;

use crate::finding::Code;

/// What there is to say of one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code that is explained.
    pub code: Code,
    /// What is wrong, in one short line without a full stop.
    pub summary: &'static str,
    /// What that means, a paragraph each.
    pub meaning: &'static [&'static str],
    /// Where the schema asks for it, in its own words where they matter, and the rule's number.
    pub section: &'static str,
    /// A small trace, a record a line, that gives this code and no other.
    pub example: &'static str,
    /// The options without which the example gives something else; mostly none.
    pub example_options: &'static [&'static str],
    /// What the people who run the runtime should do, a paragraph each.
    pub action: &'static [&'static str],
}

/// What `code` means.
#[must_use]
pub const fn explanation(code: Code) -> &'static Explanation {
    match code {
        Code::Structure => &errors::STRUCTURE,
        Code::DeclarationScope => &errors::DECLARATION_SCOPE,
        Code::RequirementsMismatch => &errors::REQUIREMENTS_MISMATCH,
        Code::CapabilityUnmet => &errors::CAPABILITY_UNMET,
        Code::ClearanceUnmet => &errors::CLEARANCE_UNMET,
        Code::ToolUnmet => &errors::TOOL_UNMET,
        Code::ResidencyUnmet => &errors::RESIDENCY_UNMET,
        Code::ModelUnmet => &errors::MODEL_UNMET,
        Code::AgentRefUnmet => &errors::AGENTREF_UNMET,
        Code::AntiAffinityUnmet => &errors::ANTIAFFINITY_UNMET,
        Code::Explanation => &errors::EXPLANATION,
        Code::RejectionReason => &errors::REJECTION_REASON,
        Code::SeqGap => &advisories::SEQ_GAP,
        Code::Null => &advisories::NULL,
        Code::ReferencePending => &advisories::REFERENCE_PENDING,
        Code::Candidates => &advisories::CANDIDATES,
        Code::FailedPredicate => &advisories::FAILED_PREDICATE,
        Code::ResumedRequirements => &advisories::RESUMED_REQUIREMENTS,
        Code::Resubmitted => &advisories::RESUBMITTED,
        Code::PartialTrace => &advisories::PARTIAL_TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraphs(explanation: &Explanation) -> impl Iterator<Item = &'static str> {
        [explanation.meaning, explanation.action]
            .concat()
            .into_iter()
    }

    #[test]
    fn each_code_has_its_own_text() {
        for &code in Code::ALL {
            assert_eq!(explanation(code).code, code);
        }
        for field in [
            |e: &Explanation| e.summary,
            |e: &Explanation| e.meaning[0],
            |e: &Explanation| e.example,
            |e: &Explanation| e.action[0],
        ] {
            let mut texts: Vec<_> = Code::ALL
                .iter()
                .map(|&code| field(explanation(code)))
                .collect();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), Code::ALL.len());
        }
    }

    #[test]
    fn a_summary_fits_beside_its_code() {
        for &code in Code::ALL {
            let summary = explanation(code).summary;
            assert!((10..=56).contains(&summary.len()), "{code}: {summary}");
            assert!(!summary.ends_with('.'), "{code}: {summary}");
            assert!(!summary.contains('\n'), "{code}: {summary}");
        }
    }

    #[test]
    fn paragraphs_are_whole_sentences_on_one_line() {
        for &code in Code::ALL {
            for text in paragraphs(explanation(code)).chain([explanation(code).section]) {
                assert!(text.ends_with('.'), "{code}: {text}");
                assert!(
                    !text.contains("  ") && !text.contains('\n'),
                    "{code}: {text}"
                );
            }
            assert!(explanation(code).section.contains("Rule"), "{code}");
        }
    }

    #[test]
    fn examples_are_short_traces() {
        for &code in Code::ALL {
            let example = explanation(code).example;
            assert!(example.ends_with('\n'), "{code}");
            assert!((2..=5).contains(&example.lines().count()), "{code}");
            for line in example.lines() {
                assert!(
                    line.starts_with(r#"{"seq":"#) && line.ends_with('}'),
                    "{code}: {line}"
                );
            }
        }
    }

    #[test]
    fn residency_quotes_both_sections() {
        let text = explanation(Code::ResidencyUnmet);
        let text = format!("{} {}", text.meaning.concat(), text.section);
        assert!(text.contains("\"Absent means unconstrained\""));
        assert!(text.contains("\"The declaration's residency contains <label>\""));
    }
}
