//! What a source is, whatever it is called: the part of a finding's id that a rename leaves alone.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Identity of an open source. A regular file is known by its device, inode and time of birth, as
/// inodes are used again. Anything else is a stream that cannot be read twice; `now` tells it from
/// the ones before it.
pub(super) fn identity(metadata: &Metadata, now: SystemTime) -> u128 {
    let mut id = FileId::of(metadata);
    if !metadata.is_file() {
        id.born_nanos = nanos(now);
    }
    Generation::first(id).origin
}

/// A regular file, whatever it is called and whatever it holds. Nothing that was opened can share
/// it with another file while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// When it was created, in nanoseconds since 1970; 0 where the file system does not tell.
    pub(crate) born_nanos: u128,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
            born_nanos: metadata.created().map(nanos).unwrap_or_default(),
        }
    }
}

/// One content of a file: truncating or overwriting it makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    pub(crate) file: FileId,
    /// What the ids of findings in it are made from.
    pub(crate) origin: u128,
    /// How many generations before this one, without a break, began with the same line.
    pub(crate) repeats: u32,
}

impl Generation {
    /// What a file holds that was never seen truncated.
    pub(crate) fn first(file: FileId) -> Generation {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend_from_slice(&file.device.to_le_bytes());
        bytes.extend_from_slice(&file.inode.to_le_bytes());
        bytes.extend_from_slice(&file.born_nanos.to_le_bytes());
        Generation {
            file,
            origin: xxh3_128(&bytes),
            repeats: 0,
        }
    }

    /// What a file holds after it was truncated. It is known by its first line, so that it is the
    /// same one to a process that was killed and did not see all the generations before.
    pub(crate) fn after_truncation(self, old_head: u64, new_head: u64) -> Generation {
        let repeats = match old_head == new_head {
            true => self.repeats + 1,
            false => 0,
        };
        let first = Generation::first(self.file).origin;
        let mut bytes = Vec::with_capacity(28);
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&new_head.to_le_bytes());
        bytes.extend_from_slice(&repeats.to_le_bytes());
        Generation {
            file: self.file,
            origin: xxh3_128(&bytes),
            repeats,
        }
    }
}

fn nanos(time: SystemTime) -> u128 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_rename_and_growth_but_not_replacement() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let of = |path| identity(&std::fs::metadata(path).unwrap(), UNIX_EPOCH);
        std::fs::write(&old, "a").unwrap();
        let first = of(&old);
        std::fs::rename(&old, &new).unwrap();
        std::fs::write(&new, "longer").unwrap();
        assert_eq!(of(&new), first);
        std::fs::write(&old, "a").unwrap();
        assert_ne!(of(&old), first);
    }
}
