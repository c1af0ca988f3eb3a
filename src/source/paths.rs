//! From what was given on the command line to single sources: directories and globs expanded.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use glob::Pattern;

use super::Origin;
use crate::config::Input;

/// The sources that were given, and what stood in the way of finding others.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    /// In the order given; those of a directory or glob by name. None occurs twice.
    pub(crate) origins: Vec<Origin>,
    /// Directories and globs that could not be looked into, with the reason.
    pub(crate) failures: Vec<(String, String)>,
    /// Directories and globs without a trace.
    pub(crate) empty: Vec<String>,
}

/// Expands what was given. A path that is there is taken as it is, whatever characters it has;
/// one that is not there and has `*`, `?` or `[` in it is a glob.
pub(crate) fn expand(inputs: &[Input]) -> Expansion {
    let mut expansion = Expansion::default();
    let mut seen = HashSet::new();
    for input in inputs {
        let found = match Given::of(input) {
            Given::Stdin => vec![Origin::Stdin],
            Given::Directory(path) => match expansion.directory(path, is_trace) {
                Some(paths) => expansion.files(path, paths),
                None => Vec::new(),
            },
            Given::Glob(path) => match expansion.glob(path) {
                Some(paths) => expansion.files(path, paths),
                None => Vec::new(),
            },
            Given::File(path) => vec![Origin::File(path.to_owned())],
        };
        let new = found
            .into_iter()
            .filter(|origin| seen.insert(origin.clone()));
        expansion.origins.extend(new);
    }
    expansion
}

/// What an input stands for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given<'a> {
    Stdin,
    Directory(&'a Path),
    Glob(&'a Path),
    /// Anything else, whether it is there or not.
    File(&'a Path),
}

impl Given<'_> {
    pub(super) fn of(input: &Input) -> Given<'_> {
        match input {
            Input::Stdin => Given::Stdin,
            Input::Path(path) if path.is_dir() => Given::Directory(path),
            Input::Path(path) if is_glob(path) => Given::Glob(path),
            Input::Path(path) => Given::File(path),
        }
    }
}

fn is_glob(path: &Path) -> bool {
    let has_wildcard = path
        .to_str()
        .is_some_and(|text| text.contains(['*', '?', '[']));
    has_wildcard && path.symlink_metadata().is_err()
}

impl Expansion {
    /// What in a directory is called as wanted; nothing at all if it cannot be read.
    pub(super) fn directory(
        &mut self,
        path: &Path,
        is_wanted: fn(&Path) -> bool,
    ) -> Option<Vec<PathBuf>> {
        let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        match entries {
            Ok(entries) => {
                let paths = entries.into_iter().map(|entry| entry.path());
                Some(paths.filter(|path| is_wanted(path)).collect())
            }
            Err(error) => {
                self.failures
                    .push((path.display().to_string(), error.to_string()));
                None
            }
        }
    }

    /// What a glob matches; nothing at all if it is none.
    pub(super) fn glob(&mut self, path: &Path) -> Option<Vec<PathBuf>> {
        let name = path.display().to_string();
        let matches = match glob::glob(&name) {
            Ok(matches) => matches,
            Err(error) => {
                self.failures.push((name, format!("not a glob: {error}")));
                return None;
            }
        };
        let mut paths = Vec::new();
        for found in matches {
            match found {
                Ok(path) => paths.push(path),
                Err(error) => {
                    let name = error.path().display().to_string();
                    self.failures
                        .push((name, std::io::Error::from(error).to_string()));
                }
            }
        }
        paths.extend(not_utf_8(&name));
        Some(paths)
    }

    /// What of `paths` is no directory, by name.
    fn files(&mut self, given: &Path, mut paths: Vec<PathBuf>) -> Vec<Origin> {
        paths.retain(|path| !path.is_dir());
        paths.sort();
        let given = given.display().to_string();
        // What cannot be looked into is told as that.
        let has_failed = self.failures.last().is_some_and(|(name, _)| *name == given);
        if paths.is_empty() && !has_failed {
            self.empty.push(given);
        }
        paths.into_iter().map(Origin::File).collect()
    }
}

/// What a glob would match if it did not pass over names that are no UTF-8. Those of directories
/// on the way are still passed over.
fn not_utf_8(glob: &str) -> Vec<PathBuf> {
    let (parent, last) = match glob.rsplit_once('/') {
        None => (None, glob),
        Some(("", last)) => (Some("/"), last),
        Some((parent, last)) => (Some(parent), last),
    };
    let Ok(last) = Pattern::new(last) else {
        return Vec::new();
    };
    let parents = match parent.map(glob::glob) {
        None => vec![PathBuf::new()],
        // What is wrong with it was found where it was the whole glob.
        Some(parents) => parents.into_iter().flatten().flatten().collect(),
    };
    let mut paths = Vec::new();
    for parent in parents {
        let given = if parent == Path::new("") {
            Path::new(".")
        } else {
            &parent
        };
        let names = fs::read_dir(given).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name());
        let matches =
            |name: &OsString| name.to_str().is_none() && last.matches(&name.to_string_lossy());
        paths.extend(names.filter(matches).map(|name| parent.join(name)));
    }
    paths
}

/// Whether the file is called like a trace, or like an archive of one. What it holds is seen when it
/// is read.
fn is_trace(path: &Path) -> bool {
    let is_archive = has_extension(path, ["gz", "zst"]);
    let name = path.file_stem().filter(|_| is_archive).map(Path::new);
    is_plain_trace(name.unwrap_or(path))
}

/// Whether the file is called like a trace that can grow.
pub(super) fn is_plain_trace(path: &Path) -> bool {
    has_extension(path, ["jsonl", "ndjson"])
}

fn has_extension(path: &Path, extensions: [&str; 2]) -> bool {
    path.extension()
        .is_some_and(|extension| extensions.iter().any(|one| extension == *one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn directories_and_globs_are_expanded_by_name_and_once() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.ndjson", "c.txt", "[x].jsonl"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("d.jsonl")).unwrap();
        fs::create_dir(dir.path().join("empty")).unwrap();
        let input = |name: &str| Input::Path(dir.path().join(name));
        let expand = |inputs: &[Input]| {
            let expansion = expand(inputs);
            let name = |origin: &Origin| match origin {
                Origin::File(path) => path.file_name().unwrap().to_str().unwrap().to_owned(),
                Origin::Stdin => "-".to_owned(),
            };
            let names: Vec<_> = expansion.origins.iter().map(name).collect();
            (
                names.join(" "),
                expansion.empty.len(),
                expansion.failures.len(),
            )
        };
        assert_eq!(
            expand(&[input("")]),
            ("[x].jsonl a.ndjson b.jsonl".into(), 0, 0)
        );
        assert_eq!(
            expand(&[input("*.txt"), Input::Stdin]),
            ("c.txt -".into(), 0, 0)
        );
        assert_eq!(
            expand(&[input("b*"), input("")]),
            ("b.jsonl [x].jsonl a.ndjson".into(), 0, 0)
        );
        assert_eq!(expand(&[input("[x].jsonl")]), ("[x].jsonl".into(), 0, 0));
        assert_eq!(expand(&[input("missing")]), ("missing".into(), 0, 0));
        assert_eq!(
            expand(&[input("empty"), input("no*")]),
            (String::new(), 2, 0)
        );
        assert_eq!(expand(&[input("a[")]), (String::new(), 0, 1));
    }

    #[test]
    fn a_directory_has_archives_of_traces_too() {
        for name in [
            "a.jsonl",
            "a.ndjson",
            "a.jsonl.gz",
            "a.ndjson.zst",
            "a.b.jsonl.zst",
        ] {
            assert!(is_trace(Path::new(name)), "{name}");
        }
        for name in [
            "a.gz",
            "a.tar.gz",
            "a.jsonl.bz2",
            "a.jsonl.gz.zst",
            "jsonl.gz",
            "a.gz.jsonlx",
            ".jsonl",
        ] {
            assert!(!is_trace(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn sources_that_only_look_the_same_are_all_read() {
        let names: [&[u8]; 3] = [b"\xff", b"\xfe", "\u{fffd}".as_bytes()];
        let mut inputs = vec![Input::Stdin, Input::Path("stdin".into())];
        inputs.extend(names.map(|name| Input::Path(OsStr::from_bytes(name).into())));
        assert_eq!(expand(&inputs).origins.len(), 5);
    }
}
