//! Which codes are reported and counted: `--no-advisories`, `--only` and `--ignore`.

use std::fmt;

use glob::Pattern;

use crate::finding::{Code, Severity};

/// The set of codes that are reported and counted. The default is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Bit `n` is the code whose discriminant is `n`.
    allowed: u32,
}

const _: () = assert!(Code::ALL.len() <= u32::BITS as usize);

impl Filter {
    /// Allows the codes that a pattern of `only` matches (all, where there is none), without those
    /// that a pattern of `ignore` matches, and without advisories unless they are wanted.
    ///
    /// Patterns are globs over names such as `E_*_UNMET`; letter case matters.
    ///
    /// # Errors
    ///
    /// Every pattern that is malformed or matches no code at all, for it would never do anything.
    pub fn new(
        advisories: bool,
        only: &[String],
        ignore: &[String],
    ) -> Result<Filter, FilterError> {
        let mut faults = Vec::new();
        let chosen = matched(FilterList::Only, only, &mut faults);
        let ignored = matched(FilterList::Ignore, ignore, &mut faults);
        if !faults.is_empty() {
            return Err(FilterError { faults });
        }
        let chosen = if only.is_empty() { ALL } else { chosen };
        let unwanted = if advisories { 0 } else { ADVISORIES };
        Ok(Filter {
            allowed: chosen & !ignored & !unwanted,
        })
    }

    /// Whether findings of this code are reported and counted.
    #[must_use]
    pub const fn allows(self, code: Code) -> bool {
        self.allowed & bit(code) != 0
    }
}

impl Default for Filter {
    fn default() -> Self {
        Filter { allowed: ALL }
    }
}

/// The patterns that do not make a [`Filter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// One for each pattern at fault; never empty.
    pub faults: Vec<FilterFault>,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FilterError {}

/// A pattern at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterFault {
    /// The list that it stands in.
    pub list: FilterList,
    /// The pattern as given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: FilterReason,
}

impl fmt::Display for FilterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.pattern, self.reason)
    }
}

/// Which list of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterList {
    /// Codes to report, and no others.
    Only,
    /// Codes not to report.
    Ignore,
}

/// Why a pattern is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterReason {
    /// It is no glob; the text says why.
    Syntax(&'static str),
    /// It matches no code. The codes most like it come first; there may be none.
    NoSuchCode {
        /// At most three.
        nearest: Vec<Code>,
    },
}

impl fmt::Display for FilterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterReason::Syntax(why) => write!(f, "is no glob: {why}"),
            FilterReason::NoSuchCode { nearest } => {
                f.write_str("matches no code")?;
                for (index, code) in nearest.iter().enumerate() {
                    let separator = if index == 0 { "; the nearest: " } else { ", " };
                    write!(f, "{separator}{code}")?;
                }
                Ok(())
            }
        }
    }
}

const ALL: u32 = bits(None);
const ADVISORIES: u32 = bits(Some(Severity::Warning));

const fn bit(code: Code) -> u32 {
    1 << code as u32
}

/// The bits of every code, or of those of one severity.
const fn bits(severity: Option<Severity>) -> u32 {
    let mut bits = 0;
    let mut index = 0;
    while index < Code::ALL.len() {
        let code = Code::ALL[index];
        let wanted = match severity {
            Some(severity) => code.severity() as u8 == severity as u8,
            None => true,
        };
        if wanted {
            bits |= bit(code);
        }
        index += 1;
    }
    bits
}

/// The bits of the codes that one of the patterns matches.
fn matched(list: FilterList, patterns: &[String], faults: &mut Vec<FilterFault>) -> u32 {
    let mut all = 0;
    for pattern in patterns {
        match codes_of(pattern) {
            Ok(bits) => all |= bits,
            Err(reason) => faults.push(FilterFault {
                list,
                pattern: pattern.clone(),
                reason,
            }),
        }
    }
    all
}

fn codes_of(pattern: &str) -> Result<u32, FilterReason> {
    let glob = Pattern::new(pattern).map_err(|error| FilterReason::Syntax(error.msg))?;
    let bits = Code::ALL
        .iter()
        .filter(|code| glob.matches(code.as_str()))
        .fold(0, |bits, &code| bits | bit(code));
    if bits == 0 {
        return Err(FilterReason::NoSuchCode {
            nearest: nearest(pattern),
        });
    }
    Ok(bits)
}

/// Below this, two names have no more in common than any two codes do.
const LEAST_LIKENESS: f64 = 0.8;

/// The codes most like a pattern in spelling, whatever its letter case and its wildcards.
fn nearest(pattern: &str) -> Vec<Code> {
    let text: String = pattern
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let text = text.to_uppercase();
    let mut likely: Vec<(f64, Code)> = Code::ALL
        .iter()
        .map(|&code| (likeness(&text, code), code))
        .filter(|&(likeness, _)| likeness >= LEAST_LIKENESS)
        .collect();
    likely.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    likely.into_iter().take(3).map(|(_, code)| code).collect()
}

/// How alike a text and a code's name are, with and without its `E_`, from 0 to 1.
fn likeness(text: &str, code: Code) -> f64 {
    let name = code.as_str();
    let bare = &name["E_".len()..];
    strsim::jaro_winkler(text, name).max(strsim::jaro_winkler(text, bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(advisories: bool, only: &[&str], ignore: &[&str]) -> Result<Filter, FilterError> {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Filter::new(advisories, &owned(only), &owned(ignore))
    }

    fn allowed(filter: Filter) -> Vec<&'static str> {
        Code::ALL
            .iter()
            .filter(|&&code| filter.allows(code))
            .map(|code| code.as_str())
            .collect()
    }

    fn nearest_to(pattern: &str) -> Vec<Code> {
        let error = filter(true, &[pattern], &[]).expect_err(pattern);
        match &error.faults[..] {
            [
                FilterFault {
                    reason: FilterReason::NoSuchCode { nearest },
                    ..
                },
            ] => nearest.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_is_allowed_unless_said() {
        assert_eq!(allowed(Filter::default()).len(), Code::ALL.len());
        assert_eq!(filter(true, &[], &[]), Ok(Filter::default()));
    }

    #[test]
    fn advisories_can_be_left_out() {
        let errors = filter(false, &[], &[]).expect("valid");
        for &code in Code::ALL {
            assert_eq!(errors.allows(code), code.severity() == Severity::Error);
        }
    }

    #[test]
    fn only_adds_up_and_ignore_takes_away() {
        let some = filter(true, &["E_STRUCTURE", "*_UNMET"], &["E_TOOL*", "W_NULL"]);
        assert_eq!(
            allowed(some.expect("valid")),
            [
                "E_STRUCTURE",
                "E_CAPABILITY_UNMET",
                "E_CLEARANCE_UNMET",
                "E_RESIDENCY_UNMET",
                "E_MODEL_UNMET",
                "E_AGENTREF_UNMET",
                "E_ANTIAFFINITY_UNMET",
            ]
        );
        let none = filter(false, &["W_*"], &[]).expect("valid");
        assert!(allowed(none).is_empty());
    }

    #[test]
    fn a_pattern_for_no_code_names_the_nearest() {
        assert_eq!(nearest_to("E_STRUCTRE")[0], Code::Structure);
        assert_eq!(nearest_to("e_structure")[0], Code::Structure);
        assert_eq!(nearest_to("CLEARANCE*")[0], Code::ClearanceUnmet);
        assert_eq!(nearest_to("W_SEQGAP")[0], Code::SeqGap);
        assert_eq!(nearest_to("E_AGENT_REF_UNMET")[0], Code::AgentRefUnmet);
        assert!(nearest_to("42").is_empty());
        assert!(nearest_to("").is_empty());
    }

    #[test]
    fn every_bad_pattern_is_reported() {
        let error = filter(true, &["E_***", "E_*"], &["E_NOTHING", "e_*"]).expect_err("bad");
        let lists: Vec<_> = error.faults.iter().map(|fault| fault.list).collect();
        assert_eq!(
            lists,
            [FilterList::Only, FilterList::Ignore, FilterList::Ignore]
        );
        assert!(error.to_string().starts_with("`E_***` is no glob: "));
        assert!(error.to_string().contains("; `e_*` matches no code"));
    }
}
