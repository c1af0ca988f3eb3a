//! Things to save in tests.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracecheck::framing::Position;

use super::format::{FileEntry, Identity};
use crate::source::{FileId, Fingerprint, Generation, SavedFile};

/// A state in place of the verifier's, of whose form a store knows nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) records: u64,
}

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

pub(super) fn sample(name: impl Into<String>) -> Sample {
    Sample {
        name: name.into(),
        records: 7,
    }
}
