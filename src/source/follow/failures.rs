//! What cannot be looked at, opened or read: it is said once, and tried again with each scan.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::following::{Following, shown};
use super::scan::Found;
use crate::source::message::Message;

impl Following {
    pub(super) fn note_failures(&mut self, found: &Found) -> BTreeSet<PathBuf> {
        for (path, error) in &found.failures {
            self.tell_failing(path, error);
        }
        found
            .failures
            .iter()
            .map(|(path, _)| path.clone())
            .collect()
    }

    pub(super) fn note_unopened(
        &mut self,
        path: &Path,
        error: &io::Error,
        failing: &mut BTreeSet<PathBuf>,
    ) {
        let errno = error.raw_os_error().map(Errno::from_raw);
        if matches!(errno, Some(Errno::EMFILE | Errno::ENFILE)) {
            return self.note_no_descriptors(path, &error.to_string());
        }
        self.tell_failing(path, &error.to_string());
        failing.insert(path.to_owned());
    }

    /// This file, and maybe others, cannot be opened until some are closed.
    pub(super) fn note_no_descriptors(&mut self, path: &Path, error: &str) {
        if !self.lacks_descriptors {
            self.lacks_descriptors = true;
            let hint = "it and others wait until some are closed; raise the limit of open files";
            self.tell_failure(path, format!("{error}: {hint} (LimitNOFILE, ulimit -n)"));
        }
        self.scans.lacked_descriptors = true;
    }

    fn tell_failing(&mut self, path: &Path, error: &str) {
        if self.failing.insert(path.to_owned()) {
            self.tell_failure(path, error.to_owned());
        }
    }

    /// Says that something cannot be read at the moment.
    pub(super) fn tell_failure(&mut self, path: &Path, error: String) {
        self.outbox.push_back(Message::Failed {
            id: None,
            name: path.display().to_string(),
            error,
            is_final: false,
        });
    }

    pub(super) fn note_recoveries(&mut self, failing: BTreeSet<PathBuf>) {
        for path in self.failing.difference(&failing) {
            tracing::info!("{}: can be read again, or is gone", shown(path));
        }
        self.failing = failing;
        if self.lacks_descriptors && !self.scans.lacked_descriptors {
            tracing::info!("all files are open again");
        }
        self.lacks_descriptors = self.scans.lacked_descriptors;
        self.scans.lacked_descriptors = false;
    }
}
