//! In which order files are read that were there before they were followed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::SystemTime;

use super::copies::live_names;
use super::file::Beginning;
use super::following::Following;
use super::scan::{Found, Sighting};
use crate::source::message::{Follows, SourceId};

impl Following {
    /// Of files that were there before, those that were rotated come before those that have their
    /// former name, as traces go on from one to the next.
    pub(super) fn put_in_order(&mut self, found: &Found) {
        let mut rotated: BTreeMap<&Path, Vec<(SystemTime, SourceId)>> = BTreeMap::new();
        let given: HashMap<&Path, &Sighting> = found
            .files
            .iter()
            .map(|sighting| (sighting.path.as_path(), sighting))
            .collect();
        let waiting = |path: &Path| {
            let file = self.names.get(path)?.file?;
            let file = self.files.get(self.by_file.get(&file)?)?;
            matches!(file.beginning, Beginning::New(Follows::Nothing)).then_some(file)
        };
        for path in given.keys() {
            let live = live_names(path);
            let live = live.iter().find_map(|live| given.get(live.as_path()));
            if let Some(live) = live
                && let Some(file) = waiting(path)
                && file.name == **path
            {
                let written = file.file.metadata().and_then(|data| data.modified());
                let written = written.unwrap_or(SystemTime::UNIX_EPOCH);
                rotated
                    .entry(&live.path)
                    .or_default()
                    .push((written, file.id));
            }
        }
        let mut chains = Vec::new();
        for (live, mut files) in rotated {
            files.sort();
            let mut chain: Vec<SourceId> = files.into_iter().map(|(_, id)| id).collect();
            chain.extend(waiting(live).map(|file| file.id));
            chains.push(chain);
        }
        for pair in chains.iter().flat_map(|chain| chain.windows(2)) {
            if let Some(file) = self.files.get_mut(&pair[1]) {
                file.predecessor = file.predecessor.or(Some(pair[0]));
            }
        }
    }
}
