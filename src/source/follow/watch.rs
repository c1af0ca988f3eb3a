//! Events of the kernel, which only say where to look: everything that matters is found by a scan
//! too, only later.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
use nix::errno::Errno;

/// Room for at least a hundred events at once.
const BUFFER_BYTES: usize = 1 << 15;

/// Watches directories.
#[derive(Debug)]
pub(super) struct Watcher {
    inotify: Inotify,
    /// By descriptor: the directory, and how it is called by those who want it watched.
    watched: HashMap<WatchDescriptor, Watched>,
    by_directory: HashMap<DirectoryId, WatchDescriptor>,
    told_limit: bool,
}

#[derive(Debug)]
struct Watched {
    directory: DirectoryId,
    paths: Vec<PathBuf>,
}

/// Device and inode.
type DirectoryId = (u64, u64);

/// What happened to a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// The content may have changed.
    Content,
    /// Permissions or the number of links may have changed.
    Attributes,
    /// Somebody who could write has closed it.
    Closed,
    /// A file was created.
    Created,
    /// A file was moved here; the number is that of the move.
    MovedHere(u32),
    /// The file was moved away; the number is that of the move.
    MovedAway(u32),
    /// The name was removed.
    Deleted,
}

/// An event.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// The name in a directory, which is called by `paths`.
    Name {
        paths: &'a [PathBuf],
        name: &'a OsStr,
        happened: Happened,
    },
    /// A watched directory is gone or was moved.
    Directory,
    /// Events were lost.
    Overflow,
}

impl Watcher {
    /// A watcher, unless the system has none left: then that is said.
    pub(super) fn new() -> Option<Watcher> {
        match Inotify::init() {
            Ok(inotify) => Some(Watcher {
                inotify,
                watched: HashMap::new(),
                by_directory: HashMap::new(),
                told_limit: false,
            }),
            Err(error) => {
                let hint = match errno(&error) {
                    Some(Errno::EMFILE | Errno::ENFILE) => {
                        ": raise fs.inotify.max_user_instances (or user.max_inotify_instances)"
                    }
                    _ => "",
                };
                tracing::warn!(
                    "no inotify instance ({error}){hint}; files are looked at several times a second instead"
                );
                None
            }
        }
    }

    /// Becomes readable when there are events.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.inotify.as_fd().try_clone_to_owned()
    }

    /// Watches these directories and no others. Returns whether any is watched that was not before.
    pub(super) fn set(&mut self, directories: &BTreeSet<PathBuf>) -> bool {
        let mut wanted: HashMap<DirectoryId, Vec<PathBuf>> = HashMap::new();
        for path in directories {
            if let Some(id) = directory_id(path) {
                wanted.entry(id).or_default().push(path.clone());
            }
        }
        self.drop_all_but(&wanted);
        let mut any_new = false;
        for (directory, paths) in wanted {
            if let Some(descriptor) = self.by_directory.get(&directory) {
                if let Some(watched) = self.watched.get_mut(descriptor) {
                    watched.paths = paths;
                }
                continue;
            }
            any_new |= self.add(directory, paths);
        }
        any_new
    }

    /// Whether events of the directory come.
    pub(super) fn watches(&self, directory: &Path) -> bool {
        directory_id(directory).is_some_and(|id| self.by_directory.contains_key(&id))
    }

    /// Takes the events that have come.
    pub(super) fn take(&mut self, mut each: impl FnMut(Event<'_>)) {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            let events = match self.inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // There are no more; whatever else it is, scans find what events would have told.
                Err(_) => return,
            };
            for event in events {
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    each(Event::Overflow);
                    continue;
                }
                let is_gone = EventMask::IGNORED
                    | EventMask::DELETE_SELF
                    | EventMask::MOVE_SELF
                    | EventMask::UNMOUNT;
                if event.mask.intersects(is_gone) {
                    if event.mask.contains(EventMask::IGNORED)
                        && let Some(watched) = self.watched.remove(&event.wd)
                    {
                        self.by_directory.remove(&watched.directory);
                    }
                    each(Event::Directory);
                    continue;
                }
                if let Some(watched) = self.watched.get(&event.wd)
                    && let Some(name) = event.name
                {
                    each(Event::Name {
                        paths: &watched.paths,
                        name,
                        happened: happened(event.mask, event.cookie),
                    });
                }
            }
        }
    }

    fn add(&mut self, directory: DirectoryId, paths: Vec<PathBuf>) -> bool {
        let mask = WatchMask::CREATE
            | WatchMask::MODIFY
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::ATTRIB
            | WatchMask::CLOSE_WRITE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        match self.inotify.watches().add(as_directory(&paths[0]), mask) {
            Ok(descriptor) => {
                self.by_directory.insert(directory, descriptor.clone());
                self.watched
                    .insert(descriptor, Watched { directory, paths });
                true
            }
            Err(error) => {
                self.tell_limit(&error);
                false
            }
        }
    }

    fn tell_limit(&mut self, error: &io::Error) {
        // It may be gone by now, or not be readable: no matter, there are scans.
        let is_limit = matches!(errno(error), Some(Errno::ENOSPC | Errno::ENOMEM));
        if is_limit && !self.told_limit {
            self.told_limit = true;
            tracing::warn!(
                "no more inotify watches ({error}): raise fs.inotify.max_user_watches (or \
                 user.max_inotify_watches); files are looked at several times a second instead"
            );
        }
    }

    fn drop_all_but(&mut self, wanted: &HashMap<DirectoryId, Vec<PathBuf>>) {
        let unwanted: Vec<_> = self
            .by_directory
            .extract_if(|directory, _| !wanted.contains_key(directory))
            .collect();
        for (_, descriptor) in unwanted {
            self.watched.remove(&descriptor);
            // It fails if the directory is gone, and then there is nothing to remove.
            let _ = self.inotify.watches().remove(descriptor);
        }
    }
}

/// What is opened for the directory of a path: that of a bare name is the empty path.
pub(super) fn as_directory(path: &Path) -> &Path {
    match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    }
}

fn directory_id(path: &Path) -> Option<DirectoryId> {
    let metadata = fs::metadata(as_directory(path)).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn happened(mask: EventMask, cookie: u32) -> Happened {
    if mask.contains(EventMask::CREATE) {
        Happened::Created
    } else if mask.contains(EventMask::MOVED_TO) {
        Happened::MovedHere(cookie)
    } else if mask.contains(EventMask::MOVED_FROM) {
        Happened::MovedAway(cookie)
    } else if mask.contains(EventMask::DELETE) {
        Happened::Deleted
    } else if mask.contains(EventMask::ATTRIB) {
        Happened::Attributes
    } else if mask.contains(EventMask::CLOSE_WRITE) {
        Happened::Closed
    } else {
        Happened::Content
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, remove_dir, rename, write};

    fn taken(watcher: &mut Watcher) -> Vec<String> {
        let mut events = Vec::new();
        watcher.take(|event| {
            events.push(match event {
                Event::Name { name, happened, .. } => {
                    let happened = format!("{happened:?}");
                    let happened = happened.split('(').next().unwrap().to_owned();
                    format!("{} {happened}", name.to_str().unwrap())
                }
                other => format!("{other:?}"),
            });
        });
        events.dedup();
        events
    }

    #[test]
    fn tells_what_happens_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let mut watcher = Watcher::new().unwrap();
        let set = BTreeSet::from([dir.path().to_owned(), dir.path().join(".")]);
        assert!(watcher.set(&set));
        assert!(!watcher.set(&set));
        assert!(watcher.watches(dir.path()));
        write(&a, "x").unwrap();
        rename(&a, &b).unwrap();
        assert_eq!(
            taken(&mut watcher),
            [
                "a Created",
                "a Content",
                "a Closed",
                "a MovedAway",
                "b MovedHere"
            ]
        );
        assert!(taken(&mut watcher).is_empty());
        watcher.set(&BTreeSet::new());
        write(&a, "x").unwrap();
        assert!(!taken(&mut watcher).contains(&"a Created".to_owned()));
    }

    #[test]
    fn a_directory_that_comes_again_is_watched_again() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        create_dir(&inner).unwrap();
        let mut watcher = Watcher::new().unwrap();
        let set = BTreeSet::from([inner.clone()]);
        watcher.set(&set);
        remove_dir(&inner).unwrap();
        assert_eq!(taken(&mut watcher), ["Directory"]);
        create_dir(&inner).unwrap();
        assert!(watcher.set(&set));
        write(inner.join("a"), "x").unwrap();
        assert_eq!(taken(&mut watcher), ["a Created", "a Content", "a Closed"]);
    }
}
