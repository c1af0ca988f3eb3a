//! What each code means: for the person whom an alert has woken up.
//!
//! [`explanation`] matches every [`Code`], so a code without a text does not compile. Each example
//! is a whole trace, declaration or stream that gives findings of its own code and of no other.

mod advisories;
mod ag_ui;
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
    /// What the example is.
    pub example_kind: ExampleKind,
    /// A small trace, a record a line, that gives this code and no other; or what
    /// [`Explanation::example_kind`] says.
    pub example: &'static str,
    /// The options without which the example gives something else; mostly none.
    pub example_options: &'static [&'static str],
    /// What the people who run the runtime should do, a paragraph each.
    pub action: &'static [&'static str],
}

/// What an example is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleKind {
    /// A trace, a record a line.
    Trace,
    /// An AG-UI declaration, on one line.
    Declaration,
    /// A stream of AG-UI events, one a line.
    Events {
        /// The declaration that is held against it.
        declaration: &'static str,
    },
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
        Code::DeclarationMalformed => &ag_ui::DECLARATION_MALFORMED,
        Code::DeclarationUnrecognised => &ag_ui::DECLARATION_UNRECOGNISED,
        Code::SeqGap => &advisories::SEQ_GAP,
        Code::Null => &advisories::NULL,
        Code::ReferencePending => &advisories::REFERENCE_PENDING,
        Code::Candidates => &advisories::CANDIDATES,
        Code::FailedPredicate => &advisories::FAILED_PREDICATE,
        Code::ResumedRequirements => &advisories::RESUMED_REQUIREMENTS,
        Code::Resubmitted => &advisories::RESUBMITTED,
        Code::PartialTrace => &advisories::PARTIAL_TRACE,
        Code::Capability => &ag_ui::CAPABILITY,
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
            assert!((10..=52).contains(&summary.len()), "{code}: {summary}");
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
            let section = explanation(code).section;
            let names_its_rule = match explanation(code).example_kind {
                ExampleKind::Trace => section.contains("Rule"),
                _ => section.contains("the page"),
            };
            assert!(names_its_rule, "{code}: {section}");
        }
    }

    #[test]
    fn examples_are_short() {
        for &code in Code::ALL {
            let Explanation {
                example,
                example_kind,
                ..
            } = explanation(code);
            let (lines, start) = match example_kind {
                ExampleKind::Trace => (2..=5, r#"{"seq":"#),
                ExampleKind::Declaration => (1..=1, "{"),
                ExampleKind::Events { .. } => (2..=5, r#"{"type":"#),
            };
            assert!(example.ends_with('\n'), "{code}");
            assert!(lines.contains(&example.lines().count()), "{code}");
            for line in example.lines() {
                assert!(
                    line.starts_with(start) && line.ends_with('}'),
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
