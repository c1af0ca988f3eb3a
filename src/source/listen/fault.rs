//! What stands in the way of listening.

use std::fmt;

use crate::emit::sanitise::visible;

/// Longest name in a message; no path or address of use is longer.
const MAX_NAME_CHARS: usize = 4096;

/// One thing that stands in the way of listening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The address, file or descriptor, safe to be shown.
    pub(crate) place: String,
    /// What is wrong there.
    pub(crate) problem: String,
}

impl Fault {
    pub(super) fn new(place: impl fmt::Display, problem: impl Into<String>) -> Fault {
        let place = place.to_string();
        Fault {
            place: visible(&place, MAX_NAME_CHARS).to_string(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for Fault {}
