//! Things to save in tests.

use std::path::PathBuf;
use std::time::Duration;

use tracecheck::framing::Position;

use super::format::{FileEntry, Identity};
use super::state::{SavedTrace, State};
use crate::source::{FileId, Fingerprint, Generation, SavedFile};

pub(super) fn identity() -> Identity {
    Identity {
        protocol: "a3".to_owned(),
        trace_key: Some("/trace".to_owned()),
    }
}

pub(super) fn file(path: impl Into<PathBuf>, inode: u64, offset: u64) -> SavedFile {
    let mut fingerprint = Fingerprint::default();
    fingerprint.push(b"{\"seq\":1}\n{\"seq\":2}\n");
    let id = FileId {
        device: 1,
        inode,
        born_nanos: 1_700_000_000_123_456_789,
    };
    SavedFile {
        path: path.into(),
        generation: Generation::first(id),
        fingerprint,
        position: Position {
            line: 3,
            offset,
            passed: 0,
            server_sent: false,
        },
    }
}

pub(super) fn entry(path: impl Into<PathBuf>, inode: u64, last_seen: u64) -> FileEntry {
    FileEntry {
        file: file(path, inode, 20),
        last_seen,
    }
}

pub(super) fn trace(name: impl Into<String>) -> State {
    State::Trace(SavedTrace {
        name: name.into(),
        records: 7,
        placements: 2,
        pending: 1,
        idle: Duration::from_millis(1_500),
    })
}
