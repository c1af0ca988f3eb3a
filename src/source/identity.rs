//! What a source is, whatever it is called: the part of a finding's id that a rename leaves alone.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::xxh3_128;

/// Identity of an open source. A regular file is known by its device, inode and time of birth, as
/// inodes are used again. Anything else is a stream that cannot be read twice; `now` tells it from
/// the ones before it.
pub(super) fn identity(metadata: &Metadata, now: SystemTime) -> u128 {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = match metadata.is_file() {
        true => metadata.created().map(since_epoch).unwrap_or_default(),
        false => since_epoch(now),
    };
    let mut bytes = Vec::with_capacity(32);
    bytes.extend_from_slice(&metadata.dev().to_le_bytes());
    bytes.extend_from_slice(&metadata.ino().to_le_bytes());
    bytes.extend_from_slice(&moment.as_nanos().to_le_bytes());
    xxh3_128(&bytes)
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
