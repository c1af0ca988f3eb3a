//! One process a directory.
//!
//! The lock is one that the kernel gives back when the process ends, however it does, so a lock
//! file that is left behind stops nobody. It is never deleted: whoever waits to open it would then
//! hold the lock of a file that nobody else can find.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The name of the lock file in its directory.
pub(super) const FILE_NAME: &str = "lock";

/// More than the digits of any process number.
const MAX_PID_BYTES: u64 = 20;

/// Holds a directory until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Why a directory cannot be had.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it, by its number where that could be made out.
    InUse(Option<u32>),
    Io(io::Error),
}

impl Lock {
    /// Takes the directory, which is created for its owner alone if it is missing.
    pub(super) fn take(dir: &Path) -> Result<Lock, LockError> {
        create(dir)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(FILE_NAME))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::InUse(read_pid(&file))),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // The number is for people; without it the lock holds as well.
        let _ = write_pid(&mut file);
        Ok(Lock(file))
    }
}

fn create(dir: &Path) -> io::Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|error| match error.kind() {
        // Were it a directory, there would be no error.
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_PID_BYTES).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> LockError {
        LockError::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_second_is_told_who_is_first() {
        let temporary = tempfile::tempdir().expect("created");
        let dir = temporary.path().join("state/of/mine");
        let first = Lock::take(&dir).expect("free");
        for _ in 0..2 {
            match Lock::take(&dir) {
                Err(LockError::InUse(pid)) => assert_eq!(pid, Some(std::process::id())),
                other => panic!("{other:?}"),
            }
        }
        drop(first);
        drop(Lock::take(&dir).expect("free again"));
    }

    #[test]
    fn what_is_created_is_for_its_owner() {
        let temporary = tempfile::tempdir().expect("created");
        let dir = temporary.path().join("state");
        let _lock = Lock::take(&dir).expect("free");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join(FILE_NAME)), 0o600);
    }

    #[test]
    fn what_stands_in_the_lock_file_does_not_matter() {
        let dir = tempfile::tempdir().expect("created");
        std::fs::write(dir.path().join(FILE_NAME), "x".repeat(1000)).expect("written");
        let _lock = Lock::take(dir.path()).expect("free");
        let text = std::fs::read_to_string(dir.path().join(FILE_NAME)).expect("read");
        assert_eq!(text, format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_file_is_no_directory() {
        let dir = tempfile::tempdir().expect("created");
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("written");
        match Lock::take(&file) {
            Err(LockError::Io(error)) => assert_eq!(error.to_string(), "not a directory"),
            other => panic!("{other:?}"),
        }
    }
}
