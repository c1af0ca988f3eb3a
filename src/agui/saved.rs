//! The open runs of a checker as they are saved, and a checker that goes on from them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::checker::RunChecker;
use super::run::Run;

/// Tells what was saved of runs in another form; see also
/// [`verify::SAVED_FORMAT`](crate::verify::SAVED_FORMAT), which is that of positions.
pub const SAVED_FORMAT: u32 = 1;

/// An open run, as it is written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SavedRun<'c> {
    source: &'c str,
    run: &'c Run,
}

/// An open run, as it is read back.
#[derive(Debug, Deserialize)]
pub struct RestoredRun {
    source: Arc<str>,
    run: Run,
}

impl SavedRun<'_> {
    /// The name of the source that it is on.
    #[must_use]
    pub fn source(&self) -> &str {
        self.source
    }

    /// What findings call it: its `runId`, or the source's name; a long one is cut.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.run.name
    }

    /// How many events it has had.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.run.events
    }
}

impl RestoredRun {
    /// What was written.
    #[must_use]
    pub fn saved(&self) -> SavedRun<'_> {
        SavedRun {
            source: &self.source,
            run: &self.run,
        }
    }
}

/// Saving, and going on from what was saved: behind a whole event of each source, with the sources'
/// [positions](super::EventFramer::position).
impl RunChecker {
    /// Gives each open run of a source that can be read again, in the order of the sources' names.
    /// Of other sources nothing can follow.
    ///
    /// # Errors
    ///
    /// The first that `each` gives; nothing comes after it.
    pub fn save_runs<E>(
        &self,
        mut each: impl FnMut(SavedRun<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut runs: Vec<_> = self.runs().filter(|(_, run)| !run.from_stream).collect();
        runs.sort_by_key(|&(source, _)| source);
        runs.into_iter()
            .try_for_each(|(source, run)| each(SavedRun { source, run }))
    }

    /// Takes over an open run of another checker, before the first event of its source. Where that
    /// was held against another declaration, this run is held to what both declare.
    pub fn restore_run(&mut self, run: RestoredRun) {
        let RestoredRun { source, run } = run;
        self.open_run(source, run);
    }
}
