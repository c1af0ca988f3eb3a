//! Where the content of a followed path may be, now that the path holds something else: under
//! another name beside it, as the same file or as a copy.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::fcntl::OFlag;

use super::compressed::Content;
use super::scan::parent;
use super::watch::as_directory;
use crate::source::fingerprint::Fingerprint;
use crate::source::identity::FileId;
use crate::source::message::SavedFile;

/// A file that was found beside a followed one.
#[derive(Debug)]
pub(super) struct Sibling {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) id: FileId,
}

/// Opens a regular file, and nothing else: opening a FIFO could take forever.
pub(super) fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "is no regular file",
        )),
    }
}

/// A copy of the content that was read up to `position` from one of the `paths`; the newest.
/// `is_excluded` says which files cannot be it.
pub(super) fn find_copy(
    paths: &[PathBuf],
    fingerprint: &Fingerprint,
    position: u64,
    is_excluded: impl Fn(FileId) -> bool,
) -> Option<Sibling> {
    if position == 0 {
        return None;
    }
    look_steadily(
        || rotated_names(paths),
        |names| {
            let mut newest: Option<(SystemTime, Sibling)> = None;
            for (path, _) in names {
                let Some(sibling) = candidate(path, |metadata| {
                    metadata.len() >= position && !is_excluded(FileId::of(metadata))
                }) else {
                    continue;
                };
                let written = sibling.file.metadata().and_then(|data| data.modified());
                let written = written.unwrap_or(SystemTime::UNIX_EPOCH);
                let is_newer = newest.as_ref().is_none_or(|(time, _)| *time <= written);
                if is_newer
                    && fingerprint
                        .matches(&sibling.file, position)
                        .unwrap_or(false)
                {
                    newest = Some((written, sibling));
                }
            }
            newest.map(|(_, sibling)| sibling)
        },
    )
}

/// The files that once had one of the `paths`, by the time of their birth, which is in `born`; as
/// far as they are not known and not compressed. Times of birth have the grain of the kernel's
/// clock, some milliseconds: of those of the same time the one that was written to last is last.
pub(super) fn generations(
    paths: &[PathBuf],
    born: RangeInclusive<u128>,
    is_known: impl Fn(FileId) -> bool,
) -> Vec<Sibling> {
    let is_wanted = |metadata: &Metadata| {
        let id = FileId::of(metadata);
        id.born_nanos != 0 && born.contains(&id.born_nanos) && !is_known(id)
    };
    let mut found = look_steadily(
        || rotated_names(paths),
        |names| {
            let mut found: Vec<Sibling> = Vec::new();
            for sibling in names
                .iter()
                .filter_map(|(path, _)| candidate(path, is_wanted))
            {
                if !is_compressed(&sibling.file) && found.iter().all(|other| other.id != sibling.id)
                {
                    found.push(sibling);
                }
            }
            found
        },
    );
    found.sort_by_key(|sibling| {
        let metadata = sibling.file.metadata();
        let written = metadata.and_then(|metadata| metadata.modified());
        (sibling.id.born_nanos, written.ok(), sibling.id.inode)
    });
    found
}

/// The saved file itself, wherever in the directories of the `paths` it is now, and whatever it
/// holds.
pub(super) fn find_moved(saved: &SavedFile, paths: &[PathBuf]) -> Option<Sibling> {
    let wanted = saved.generation.file;
    let directories: BTreeSet<_> = paths.iter().map(|path| parent(path)).collect();
    let list = || directories.iter().flat_map(|path| entries(path)).collect();
    look_steadily(list, |names| {
        names.iter().find_map(|(path, _)| {
            let sibling = candidate(path, |metadata| {
                let id = FileId::of(metadata);
                id == wanted || is_on_other_device(id, wanted)
            })?;
            (sibling.id == wanted || fits(saved, &sibling.file)).then_some(sibling)
        })
    })
}

/// Whether it may be the same file on a device whose number has changed since.
pub(super) fn is_on_other_device(id: FileId, wanted: FileId) -> bool {
    id.born_nanos != 0 && id.born_nanos == wanted.born_nanos && id.inode == wanted.inode
}

/// Whether the file still holds what was read of it.
pub(super) fn fits(saved: &SavedFile, file: &File) -> bool {
    let position = saved.position.read_from();
    let is_long_enough = file
        .metadata()
        .is_ok_and(|metadata| metadata.len() >= position);
    is_long_enough && saved.fingerprint.matches(file, position).unwrap_or(false)
}

/// Whether rotating a file called `live` may have given it this name: `a.log.1`, `a.log-20260101`,
/// and `a-20260101.log`.
pub(super) fn is_rotated_name(name: &OsStr, live: &OsStr) -> bool {
    let (bytes, live_bytes) = (name.as_bytes(), live.as_bytes());
    let is_separated = |rest: &[u8]| {
        rest.first()
            .is_some_and(|byte| !byte.is_ascii_alphanumeric())
    };
    if bytes.strip_prefix(live_bytes).is_some_and(is_separated) {
        return true;
    }
    let (name, live) = (Path::new(name), Path::new(live));
    let (Some(stem), Some(live_stem)) = (name.file_stem(), live.file_stem()) else {
        return false;
    };
    let rest = stem.as_bytes().strip_prefix(live_stem.as_bytes());
    name.extension() == live.extension()
        && rest.is_some_and(|rest| is_separated(rest) && rest.iter().any(u8::is_ascii_digit))
}

/// Names in directories, each with the inode that it leads to.
type Names = BTreeSet<(PathBuf, u64)>;

/// How often at most is looked anew at names that change meanwhile.
const MAX_LOOKS: usize = 5;

/// Looks at what is under the names that `list` gives; again if names have changed meanwhile, as a
/// file that was renamed may have been seen under none of them.
fn look_steadily<T>(list: impl Fn() -> Names, look: impl Fn(&Names) -> T) -> T {
    let mut names = list();
    for _ in 1..MAX_LOOKS {
        let seen = look(&names);
        let names_now = list();
        if names_now == names {
            return seen;
        }
        names = names_now;
    }
    look(&names)
}

fn rotated_names(paths: &[PathBuf]) -> Names {
    let mut names = Names::new();
    for path in paths {
        let Some(live) = path.file_name() else {
            continue;
        };
        names.extend(entries(&parent(path)).filter(|(entry, _)| {
            entry
                .file_name()
                .is_some_and(|name| is_rotated_name(name, live))
        }));
    }
    names
}

fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, u64)> {
    let entries = fs::read_dir(as_directory(directory)).into_iter();
    let directory = directory.to_owned();
    entries
        .flatten()
        .flatten()
        .map(move |entry| (directory.join(entry.file_name()), entry.ino()))
}

/// Opens what is under the path if it is a regular file and as wanted; what was opened is, too.
fn candidate(path: &Path, is_wanted: impl Fn(&Metadata) -> bool) -> Option<Sibling> {
    let is_wanted = |metadata: &Metadata| metadata.is_file() && is_wanted(metadata);
    fs::symlink_metadata(path).ok().filter(is_wanted)?;
    let (file, metadata) = open_regular(path).ok()?;
    is_wanted(&metadata).then(|| Sibling {
        path: path.to_owned(),
        id: FileId::of(&metadata),
        file,
    })
}

fn is_compressed(file: &File) -> bool {
    let mut head = [0; 8];
    let length = file.read_at(&mut head, 0).unwrap_or(0);
    matches!(Content::of(&head[..length]), Content::Compressed(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn names_that_change_are_looked_at_again() {
        let lists = Cell::new(0);
        let looks = Cell::new(0);
        let look = |changes: usize| {
            lists.set(0);
            looks.set(0);
            look_steadily(
                || {
                    lists.set(lists.get() + 1);
                    Names::from([(PathBuf::from("a"), lists.get().min(changes) as u64)])
                },
                |names| {
                    looks.set(looks.get() + 1);
                    names.first().expect("one").1
                },
            )
        };
        assert_eq!((look(1), looks.get()), (1, 1));
        assert_eq!((look(3), looks.get()), (3, 3));
        assert_eq!((look(100), looks.get()), (MAX_LOOKS as u64, MAX_LOOKS));
    }

    #[test]
    fn rotated_names_are_told_from_other_files() {
        for (name, is_rotated) in [
            ("a.log.1", true),
            ("a.log-20260101", true),
            ("a.log~", true),
            ("a-20260101.log", true),
            ("a.1.log", true),
            ("a.log", false),
            ("a.logs", false),
            ("a.log2", false),
            ("ab.log", false),
            ("a-errors.log", false),
            ("a1.log", false),
            ("a-1.txt", false),
            ("b.log.1", false),
        ] {
            let found = is_rotated_name(OsStr::new(name), OsStr::new("a.log"));
            assert_eq!(found, is_rotated, "{name}");
        }
    }
}
