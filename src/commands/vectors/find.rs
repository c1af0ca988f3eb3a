//! Which files make up vectors, and which do not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What is in a directory and below.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Suite {
    /// By name.
    pub(super) vectors: Vec<Vector>,
    /// Paths below the directory of the files that belong to no vector.
    pub(super) stray: Vec<String>,
}

/// A trace and what is expected of it. One of the two may not be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vector {
    /// Path below the directory, without what the two files' names end in.
    pub(super) name: String,
    pub(super) trace: Option<PathBuf>,
    pub(super) expectation: Option<PathBuf>,
}

const TRACE: &str = ".jsonl";
const EXPECTATION: &str = ".expected.json";

impl Suite {
    /// Looks through a directory and those in it; links to directories are not followed.
    ///
    /// # Errors
    ///
    /// Which directory cannot be read, and why.
    pub(super) fn find(root: &Path) -> Result<Suite, String> {
        let mut vectors: BTreeMap<String, Vector> = BTreeMap::new();
        let mut stray = Vec::new();
        let mut dirs = vec![root.to_owned()];
        while let Some(dir) = dirs.pop() {
            let (files, inner) = list(&dir)
                .map_err(|error| format!("cannot read directory `{}`: {error}", dir.display()))?;
            dirs.extend(inner);
            for path in files {
                let below = path.strip_prefix(root).unwrap_or(&path);
                let below = below.to_string_lossy().into_owned();
                if let Some(name) = below.strip_suffix(TRACE) {
                    vector(&mut vectors, name).trace = Some(path);
                } else if let Some(name) = below.strip_suffix(EXPECTATION) {
                    vector(&mut vectors, name).expectation = Some(path);
                } else {
                    stray.push(below);
                }
            }
        }
        stray.sort_unstable();
        Ok(Suite {
            vectors: vectors.into_values().collect(),
            stray,
        })
    }
}

fn vector<'v>(vectors: &'v mut BTreeMap<String, Vector>, name: &str) -> &'v mut Vector {
    vectors.entry(name.to_owned()).or_insert_with(|| Vector {
        name: name.to_owned(),
        ..Vector::default()
    })
}

/// The files and the directories in a directory.
fn list(dir: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => dirs.push(entry.path()),
            false => files.push(entry.path()),
        }
    }
    Ok((files, dirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_pair_up_by_name_at_any_depth() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).expect("made");
        for file in [
            "x.jsonl",
            "x.expected.json",
            "a/b/x.jsonl",
            "a/b/x.expected.json",
            "a/alone.jsonl",
            "a/b/y.expected.json",
            "README.md",
            "a/z.ndjson",
        ] {
            fs::write(root.join(file), "").expect("written");
        }
        let suite = Suite::find(root).expect("readable");
        let found: Vec<_> = suite
            .vectors
            .iter()
            .map(|v| (&*v.name, v.trace.is_some(), v.expectation.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                ("a/alone", true, false),
                ("a/b/x", true, true),
                ("a/b/y", false, true),
                ("x", true, true)
            ]
        );
        assert_eq!(suite.stray, ["README.md", "a/z.ndjson"]);
    }

    #[test]
    fn a_directory_must_be_there() {
        let error = Suite::find(Path::new("/nowhere/vectors")).expect_err("not there");
        assert!(error.contains("/nowhere/vectors"), "{error}");
    }
}
