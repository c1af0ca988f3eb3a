//! Which files the inputs name at the moment.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::progress::FollowProgress;
use crate::config::Input;
use crate::source::identity::FileId;
use crate::source::paths::{Expansion, Given, is_plain_trace};

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Regular files, each path once, in the order given; those of a directory or glob by name.
    pub(super) files: Vec<Sighting>,
    /// Paths where nothing is yet, and globs and directories without a match.
    pub(super) missing: Vec<PathBuf>,
    /// What could not be looked at, with the reason.
    pub(super) failures: Vec<(PathBuf, String)>,
    /// Directories in which files may come and go.
    pub(super) directories: BTreeSet<PathBuf>,
}

/// A regular file under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    pub(super) length: u64,
}

/// Looks everywhere.
pub(super) fn find(inputs: &[Input], progress: &FollowProgress) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    for input in inputs {
        let mut expansion = Expansion::default();
        let (given, paths) = match Given::of(input) {
            Given::Stdin => continue,
            Given::File(path) => {
                found.directories.insert(parent(path));
                found.add(path.to_owned(), true, &mut seen);
                continue;
            }
            Given::Directory(path) => {
                found.directories.insert(path.to_owned());
                (path, expansion.directory(path, is_plain_trace))
            }
            Given::Glob(path) => {
                found.directories.insert(fixed_part(path));
                (path, expansion.glob(path))
            }
        };
        progress.beat();
        if paths.as_ref().is_some_and(Vec::is_empty) {
            found.missing.push(given.to_owned());
        }
        let failures = expansion.failures.into_iter();
        let failures = failures.map(|(name, error)| (PathBuf::from(name), error));
        found.failures.extend(failures);
        let mut paths = paths.unwrap_or_default();
        paths.sort();
        for path in paths {
            found.directories.insert(parent(&path));
            found.add(path, false, &mut seen);
            progress.beat();
        }
    }
    found
}

/// Whether the path is one of the inputs, or one that they match, whether it is there or not.
pub(super) fn covers(inputs: &[Input], path: &Path) -> bool {
    inputs.iter().any(|input| match Given::of(input) {
        Given::Stdin => false,
        Given::File(given) => given == path,
        Given::Directory(given) => parent(path) == given && is_plain_trace(path),
        Given::Glob(given) => {
            let options = MatchOptions {
                require_literal_separator: true,
                ..MatchOptions::new()
            };
            let pattern = given.to_str().and_then(|text| Pattern::new(text).ok());
            pattern.is_some_and(|pattern| pattern.matches_path_with(path, options))
        }
    })
}

/// Those of the paths that are there, but neither files nor directories: they can be read, but
/// have no generations.
pub(super) fn streams(inputs: &[Input]) -> Vec<PathBuf> {
    let mut streams = Vec::new();
    for input in inputs {
        if let Given::File(path) = Given::of(input)
            && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
        {
            streams.push(path.to_owned());
        }
    }
    streams
}

/// The directory that a path is in; empty for a bare name.
pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

impl Found {
    fn add(&mut self, path: PathBuf, is_given: bool, seen: &mut HashSet<PathBuf>) {
        if !seen.insert(path.clone()) {
            return;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => self.files.push(sighting(path, &metadata)),
            Ok(_) => {}
            Err(error) if is_absent(&error) => {
                if is_given {
                    self.missing.push(path);
                }
            }
            Err(error) => self.failures.push((path, error.to_string())),
        }
    }
}

fn sighting(path: PathBuf, metadata: &Metadata) -> Sighting {
    Sighting {
        path,
        id: FileId::of(metadata),
        length: metadata.len(),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The part of a glob before the first component with a wildcard.
fn fixed_part(glob: &Path) -> PathBuf {
    let is_fixed = |component: &std::path::Component<'_>| {
        let text = component.as_os_str().to_string_lossy();
        !text.contains(['*', '?', '['])
    };
    glob.components().take_while(is_fixed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(dir: &Path, inputs: &[&str]) -> (Vec<String>, usize) {
        let inputs: Vec<_> = inputs
            .iter()
            .map(|name| Input::Path(dir.join(name)))
            .collect();
        let found = find(&inputs, &FollowProgress::new());
        let name = |sighting: &Sighting| {
            let name = sighting.path.strip_prefix(dir).unwrap();
            name.to_str().unwrap().to_owned()
        };
        (found.files.iter().map(name).collect(), found.missing.len())
    }

    #[test]
    fn only_regular_files_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.ndjson", "c.jsonl.gz", "d.log"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("e.jsonl")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("f.jsonl")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("g.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let found = |inputs: &[&str]| {
            let (paths, missing) = paths(dir.path(), inputs);
            (paths.join(" "), missing)
        };
        assert_eq!(found(&[""]), ("a.ndjson b.jsonl".to_owned(), 0));
        assert_eq!(found(&["*.log", "d*"]), ("d.log".to_owned(), 0));
        assert_eq!(found(&["x", "x*", "d.log"]), ("d.log".to_owned(), 2));
        assert_eq!(found(&["g.jsonl"]), (String::new(), 0));
        let fifo = dir.path().join("g.jsonl");
        assert_eq!(streams(&[Input::Path(fifo.clone())]), [fifo]);
    }

    #[test]
    fn inputs_cover_what_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let input = |name: &str| [Input::Path(at(name))];
        assert!(covers(&input("a"), &at("a")));
        assert!(!covers(&input("a"), &at("b")));
        assert!(covers(&input("*.log"), &at("a.log")));
        assert!(!covers(&input("*.log"), &at("a/b.log")));
        assert!(covers(&input(""), &at("a.jsonl")));
        assert!(!covers(&input(""), &at("a.log")));
        assert!(!covers(&input(""), &at("a/b.jsonl")));
        assert_eq!(fixed_part(Path::new("/a/b*/c")), Path::new("/a"));
        assert_eq!(fixed_part(Path::new("b*")), Path::new(""));
    }
}
