//! What is kept of a trace between its records: never a record, never a list of candidates.

use std::sync::Arc;

use super::MAX_DOCUMENT_BYTES;
use super::seq_index::{SeqIndex, SetHash};
use crate::decode::document::Reading;
use crate::finding::{AgentId, Counts, Source};
use crate::schema::agent::Agent;
use crate::schema::predicate_set::PredicateSet;

/// The state of one open trace.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct TraceState {
    pub(crate) records: u64,
    pub(crate) placements: u64,
    /// The greatest `seq` so far; meaningful once `begun`.
    pub(crate) greatest_seq: u64,
    /// Whether a record with a readable `seq` has come.
    pub(crate) begun: bool,
    pub(crate) gap_reported: bool,
    /// Whether it is decided if the trace's beginning was seen.
    pub(crate) first_judged: bool,
    /// Whether the beginning of the trace was not seen.
    pub(crate) partial: bool,
    pub(crate) partial_reported: bool,
    /// Whether a record came from a source that cannot be read again.
    pub(crate) from_stream: bool,
    /// Whether the source began anew, and the next record with a readable `seq` decides whether the
    /// trace goes on.
    pub(crate) generation_began: bool,
    /// Whether a placement with a full explanation has come, and one whose `seq` was unreadable.
    pub(crate) explained: bool,
    pub(crate) explained_without_seq: bool,
    pub(crate) submission: Submission,
    pub(crate) admission: Admission,
    pub(crate) explanations: SeqIndex,
    rare: Option<Box<Rare>>,
}

/// What most traces do without.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rare {
    pub(crate) pending: Vec<Pending>,
    pub(crate) counts: Counts,
}

/// The predicate set S of the latest `task.submitted` (step 1).
#[derive(Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Submission {
    /// None came, which is as good as one that requires nothing.
    #[default]
    None,
    /// None was seen, or its requirements could not be read whole or kept.
    Unknown,
    Set(PredicateSet),
}

/// The agent of the latest `task.admitted`.
#[derive(Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Admission {
    #[default]
    None,
    /// None was seen, or its agent could not be read or kept.
    Unknown,
    Agent(AdmittedAgent),
}

/// An admitted agent in one allocation. Either half may be unreadable, and then is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdmittedAgent {
    text: Box<str>,
    name_length: Option<u32>,
    has_namespace: bool,
}

impl AdmittedAgent {
    fn of(agent: &Agent<'_>) -> Self {
        let name = agent.name.map(|name| name.decode());
        let namespace = agent.namespace.map(|namespace| namespace.decode());
        AdmittedAgent::from_halves(name.as_deref(), namespace.as_deref())
    }

    fn from_halves(name: Option<&str>, namespace: Option<&str>) -> Self {
        let text = [name, namespace].map(Option::unwrap_or_default).concat();
        let name_length =
            name.map(|name| u32::try_from(name.len()).expect("longer agents are not kept"));
        let has_namespace = namespace.is_some();
        AdmittedAgent {
            text: text.into_boxed_str(),
            name_length,
            has_namespace,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        Some(&self.text[..self.name_length? as usize])
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        let start = self.name_length.unwrap_or(0) as usize;
        self.has_namespace.then(|| &self.text[start..])
    }

    /// Whether both halves could be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_namespace && self.name_length.is_some()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for AdmittedAgent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.name(), self.namespace()).serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for AdmittedAgent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, namespace) = <(Option<String>, Option<String>)>::deserialize(deserializer)?;
        if name
            .as_ref()
            .is_some_and(|name| name.len() > MAX_DOCUMENT_BYTES)
        {
            return Err(serde::de::Error::custom("longer agents are not kept"));
        }
        Ok(AdmittedAgent::from_halves(
            name.as_deref(),
            namespace.as_deref(),
        ))
    }
}

impl Admission {
    /// What a `task.admitted` with this agent leaves behind.
    pub(crate) fn of(agent: &Reading<Agent<'_>>) -> Self {
        match agent {
            Reading::Value(agent) if agent.text_bytes() <= MAX_DOCUMENT_BYTES => {
                Admission::Agent(AdmittedAgent::of(agent))
            }
            _ => Admission::Unknown,
        }
    }
}

/// A resumed placement that waits for the one that explains it (R16), and where it stands.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pending {
    pub(crate) source: Source,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    /// Hash of the line, for the finding's id.
    pub(crate) line_hash: u128,
    pub(crate) seq: Option<u64>,
    pub(crate) agent: Option<Arc<AgentId>>,
}

impl TraceState {
    /// A trace of which nothing before `first_seq` was seen, which may be unreadable.
    pub(crate) fn begin_partial(&mut self, first_seq: Option<u64>) {
        self.partial = true;
        if self.submission == Submission::None {
            self.submission = Submission::Unknown;
        }
        if self.admission == Admission::None {
            self.admission = Admission::Unknown;
        }
        let unseen = first_seq.map_or(u64::MAX, |seq| seq.saturating_sub(1));
        self.explanations.begin_after(unseen);
    }

    /// What most traces do without; allocated when it is first needed.
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Whether placements wait for the one that explains them.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending() > 0
    }

    /// How many placements wait for the one that explains them.
    pub(crate) fn pending(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.pending.len())
    }

    /// The placements that wait, which then do so no longer.
    pub(crate) fn take_pending(&mut self) -> Vec<Pending> {
        self.rare
            .as_mut()
            .map(|rare| std::mem::take(&mut rare.pending))
            .unwrap_or_default()
    }

    /// Makes the placements that wait share what they say of their source, as they did before they
    /// were saved.
    #[cfg(feature = "serde")]
    pub(crate) fn share_sources(&mut self) {
        let Some(rare) = &mut self.rare else { return };
        let mut shared: Option<Source> = None;
        for pending in &mut rare.pending {
            match &shared {
                Some(source) if *source == pending.source => pending.source = source.clone(),
                _ => shared = Some(pending.source.clone()),
            }
        }
    }

    /// What was found in the trace.
    pub(crate) fn into_counts(self) -> Counts {
        self.rare.map(|rare| rare.counts).unwrap_or_default()
    }

    /// Notes a placement with a full explanation. Returns whether the index had to forget others.
    pub(crate) fn explain(&mut self, seq: Option<u64>, set: SetHash) -> bool {
        self.explained = true;
        self.take_pending();
        match seq {
            Some(seq) => self.explanations.add(seq, set),
            None => {
                self.explained_without_seq = true;
                false
            }
        }
    }
}
