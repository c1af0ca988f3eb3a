//! What is wrong: codes, severities and findings.
//!
//! A [`Code`] is an API: alert rules, `--only` and `--ignore` name it. There is one enum, and
//! [`crate::explain`] describes every member of it.

use std::fmt;
use std::sync::Arc;

use crate::schema::PredicateKind;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An advisory (`W_*`): worth knowing, and no violation of section 7.
    Warning,
    /// A violation (`E_*`).
    Error,
}

impl Severity {
    /// The word that events carry: `error` or `warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The code of a finding: `E_*` is an error, `W_*` an advisory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code: the errors in the order of the steps of section 7, those of AG-UI
            /// declarations behind them, advisories last.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The name that users see, such as `E_CLEARANCE_UNMET`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// A record, or a member of it, is malformed (section 7, step 2; R1 to R5, R11).
    Structure = "E_STRUCTURE",
    /// The declaration is that of another agent than the one admitted (step 3; R12).
    DeclarationScope = "E_DECLARATION_SCOPE",
    /// What was matched is not what was asked for (step 4; R13).
    RequirementsMismatch = "E_REQUIREMENTS_MISMATCH",
    /// A required capability is not declared at that version (step 5; R14).
    CapabilityUnmet = "E_CAPABILITY_UNMET",
    /// A required clearance is not held (step 5; R14).
    ClearanceUnmet = "E_CLEARANCE_UNMET",
    /// A required tool is not bound (step 5; R14).
    ToolUnmet = "E_TOOL_UNMET",
    /// The required residency is not among the agent's (step 5; R14).
    ResidencyUnmet = "E_RESIDENCY_UNMET",
    /// The required latency class is not the agent's (step 5; R14).
    ModelUnmet = "E_MODEL_UNMET",
    /// The task named another agent (step 5; R14).
    AgentRefUnmet = "E_AGENTREF_UNMET",
    /// The task excludes this agent (step 5; R14).
    AntiAffinityUnmet = "E_ANTIAFFINITY_UNMET",
    /// The explanation contradicts the placement, or refers to none (step 6; R15, R16).
    Explanation = "E_EXPLANATION",
    /// A rejection claims that no agent was eligible and names no predicate (step 7; R17).
    RejectionReason = "E_REJECTION_REASON",
    /// A described member of an AG-UI declaration has a value that the protocol rejects.
    DeclarationMalformed = "E_DECLARATION_MALFORMED",
    /// A member of an AG-UI declaration is none that the protocol describes; only where strict.
    DeclarationUnrecognised = "E_DECLARATION_UNRECOGNISED",
    /// A gap in the `seq`s of a trace, reported once.
    SeqGap = "W_SEQ_GAP",
    /// An optional member is `null` and was read as absent (R5).
    Null = "W_NULL",
    /// A resumed placement waits for the placement that explains it (R16).
    ReferencePending = "W_REFERENCE_PENDING",
    /// The candidates do not fit the failed and the scored ones.
    Candidates = "W_CANDIDATES",
    /// A candidate failed a predicate that was not asked for.
    FailedPredicate = "W_FAILED_PREDICATE",
    /// A resumed placement is held to other requirements than the one that it names.
    ResumedRequirements = "W_RESUMED_REQUIREMENTS",
    /// A later submission or admission differs from the one before.
    Resubmitted = "W_RESUBMITTED",
    /// The beginning of a trace was not seen; what needs it is passed over.
    PartialTrace = "W_PARTIAL_TRACE",
    /// An AG-UI run does what the agent's declaration says that it does not.
    Capability = "W_CAPABILITY",
}

impl Code {
    /// Error for `E_*`, warning for `W_*`.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self.as_str().as_bytes()[0] {
            b'E' => Severity::Error,
            _ => Severity::Warning,
        }
    }

    /// The code of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// The code of step 5 that says a predicate of this kind is not satisfied.
    #[must_use]
    pub const fn unmet(kind: PredicateKind) -> Code {
        match kind {
            PredicateKind::Capability => Code::CapabilityUnmet,
            PredicateKind::Clearance => Code::ClearanceUnmet,
            PredicateKind::Tool => Code::ToolUnmet,
            PredicateKind::Residency => Code::ResidencyUnmet,
            PredicateKind::LatencyClass => Code::ModelUnmet,
            PredicateKind::AgentRef => Code::AgentRefUnmet,
            PredicateKind::AntiAffinity => Code::AntiAffinityUnmet,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many findings of each code, indexed by [`Code`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Code::ALL.len()]);

impl Counts {
    /// Counts one more of `code`.
    pub fn add(&mut self, code: Code) {
        self.0[code as usize] += 1;
    }

    /// Counts all that others have counted.
    pub fn add_all(&mut self, others: &Counts) {
        for (count, more) in self.0.iter_mut().zip(others.0) {
            *count += more;
        }
    }

    /// How many of `code`.
    #[must_use]
    pub fn get(&self, code: Code) -> u64 {
        self.0[code as usize]
    }

    /// The codes that occurred with their counts, in the order of [`Code::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Code, u64)> {
        Code::ALL
            .iter()
            .map(|&code| (code, self.get(code)))
            .filter(|&(_, count)| count > 0)
    }

    /// How many of this severity.
    #[must_use]
    pub fn total(&self, severity: Severity) -> u64 {
        self.iter()
            .filter(|(code, _)| code.severity() == severity)
            .map(|(_, count)| count)
            .sum()
    }
}

/// As a list of names and counts, so that what was saved can be read when there are more codes.
#[cfg(feature = "serde")]
impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts: Vec<_> = self
            .iter()
            .map(|(code, count)| (code.as_str(), count))
            .collect();
        counts.serialize(serializer)
    }
}

/// Counts of codes that there are no more are passed over.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Counts::default();
        for (name, count) in Vec::<(String, u64)>::deserialize(deserializer)? {
            if let Some(code) = Code::from_name(&name) {
                counts.0[code as usize] = count;
            }
        }
        Ok(counts)
    }
}

/// Identifies a finding for good: the same finding has the same id in every run, and two findings
/// differ. A hash of where the record came from (see [`Source::origin`]), its offset and bytes,
/// and the finding's code, pointer and predicate. Shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FindingId(pub u128);

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The pair that identifies an agent (section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AgentId {
    /// Identifies the agent within its namespace.
    pub name: String,
    /// The scope in which the name is unique.
    pub namespace: String,
}

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Source {
    /// A file's path as given or matched, `stdin`, or the name of a connection.
    pub name: Arc<str>,
    /// Identity of the file's generation or of the connection. It survives a rename and does not
    /// contain the path, so that ids of findings do not change when a file is rotated.
    pub origin: u128,
    /// Whether it can be read again from where it was left, so that what is open there survives a
    /// restart: true of a file, false of a connection and of standard input.
    pub is_resumable: bool,
}

/// One thing that is wrong with one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of fault it is.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop. May contain text from the trace.
    pub message: String,
    /// What was expected, or what is there instead; goes on where `message` ends.
    pub detail: Option<String>,
    /// The member at fault as it stands in the record, cut to [`Finding::MAX_VALUE_BYTES`].
    pub value: Option<String>,
    /// The trace's name: its key, or the source's name.
    pub trace: Arc<str>,
    /// The source's name.
    pub source: Arc<str>,
    /// 1-based number of the line in the source.
    pub line: u64,
    /// Offset of the line's first byte in the source.
    pub offset: u64,
    /// The record's `seq`, where it could be read.
    pub seq: Option<u64>,
    /// The record's `kind`, where it could be read.
    pub kind: Option<Arc<str>>,
    /// JSON Pointer (RFC 6901) of the member at fault; empty for a whole line. Of `W_CAPABILITY`:
    /// of the declared field that is contradicted, in the declaration.
    pub pointer: String,
    /// The predicate in question, in its canonical form (section 5).
    pub predicate: Option<String>,
    /// The agent of the declaration, where known.
    pub agent: Option<Arc<AgentId>>,
    /// The step of section 7: `7.2` to `7.7`; `7` for what it takes for granted; `6` for what
    /// section 6 asks a runtime to record and no step checks; `3` or `4`, the section that describes
    /// it, for a document that stands in no trace. Of AG-UI: `declaring` or `error-handling`, a
    /// section of the page on capabilities; `events` for what is no event.
    pub rule: &'static str,
    /// Identifies the finding for good.
    pub id: FindingId,
}

impl Finding {
    /// Longest excerpt in [`Finding::value`]: enough to recognise the member, little enough for a
    /// terminal.
    pub const MAX_VALUE_BYTES: usize = 240;

    /// Error or warning, by the code.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// `message` and `detail` as one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}; {detail}", self.message),
            None => self.message.clone(),
        }
    }
}

/// What a verifier has to say: findings, and the ends of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Something is wrong.
    Finding(Box<Finding>),
    /// A trace ended in good order: its source ended, a record of an end kind came, it was idle.
    Closed(TraceEnd),
    /// A trace was given up because too many were open.
    Evicted(TraceEnd),
}

impl Report {
    /// The finding, if it is one.
    #[must_use]
    pub fn into_finding(self) -> Option<Finding> {
        match self {
            Report::Finding(finding) => Some(*finding),
            Report::Closed(_) | Report::Evicted(_) => None,
        }
    }
}

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEnd {
    /// The trace's name.
    pub trace: Arc<str>,
    /// How many records it had.
    pub records: u64,
    /// How many of them were `task.bound`.
    pub placements: u64,
    /// Its errors by code; warnings are in the same counts.
    pub counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for &code in Code::ALL {
            assert_eq!(Code::from_name(code.as_str()), Some(code));
        }
        assert_eq!(Code::from_name("E_NONE"), None);
    }

    #[test]
    fn severity_follows_the_name() {
        assert_eq!(Code::Structure.severity(), Severity::Error);
        assert_eq!(Code::Null.severity(), Severity::Warning);
    }

    #[test]
    fn counts_index_by_code() {
        for (index, &code) in Code::ALL.iter().enumerate() {
            assert_eq!(code as usize, index);
        }
        let mut counts = Counts::default();
        counts.add(Code::Null);
        counts.add(Code::Structure);
        counts.add(Code::Null);
        assert_eq!(
            counts.iter().collect::<Vec<_>>(),
            [(Code::Structure, 1), (Code::Null, 2)]
        );
        assert_eq!(counts.total(Severity::Error), 1);
        assert_eq!(counts.total(Severity::Warning), 2);
    }

    #[test]
    #[cfg(feature = "serde")]
    fn counts_are_saved_by_name() {
        let mut counts = Counts::default();
        counts.add(Code::Null);
        counts.add(Code::Structure);
        let text = serde_json::to_string(&counts).expect("a form");
        assert_eq!(text, r#"[["E_STRUCTURE",1],["W_NULL",1]]"#);
        let text = r#"[["E_GONE",3],["W_NULL",1],["E_STRUCTURE",1]]"#;
        assert_eq!(
            serde_json::from_str::<Counts>(text).expect("counts"),
            counts
        );
    }
}
