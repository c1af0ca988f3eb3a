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

/// The files of one vector, of which each may be there or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vector {
    /// Path below the directory, without what the files' names end in.
    pub(super) name: String,
    /// `NAME.jsonl`: a trace, or events one a line.
    pub(super) lines: Option<PathBuf>,
    /// `NAME.sse`: server-sent events.
    pub(super) server_sent: Option<PathBuf>,
    /// `NAME.json`: a declaration of AG-UI.
    pub(super) document: Option<PathBuf>,
    /// `NAME.declaration.json`: what events are held against.
    pub(super) declaration: Option<PathBuf>,
    /// `NAME.expected.json`.
    pub(super) expectation: Option<PathBuf>,
}

/// What a vector is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject<'v> {
    /// A trace.
    Trace(&'v Path),
    /// A declaration of AG-UI by itself.
    Declaration(&'v Path),
    /// A stream of AG-UI events, held against a declaration.
    Stream {
        events: &'v Path,
        declaration: &'v Path,
    },
}

impl Vector {
    /// What the vector is about, as its files tell.
    ///
    /// # Errors
    ///
    /// Why they tell nothing.
    pub(super) fn subject(&self) -> Result<Subject<'_>, &'static str> {
        let [lines, server_sent, document, declaration] = [
            &self.lines,
            &self.server_sent,
            &self.document,
            &self.declaration,
        ]
        .map(Option::as_deref);
        match (lines, server_sent, document, declaration) {
            (Some(trace), None, None, None) => Ok(Subject::Trace(trace)),
            (None, None, Some(document), None) => Ok(Subject::Declaration(document)),
            (Some(events), None, None, Some(declaration))
            | (None, Some(events), None, Some(declaration)) => Ok(Subject::Stream {
                events,
                declaration,
            }),
            (None, None, None, None) => Err("there is no trace NAME.jsonl beside it"),
            (None, Some(_), None, None) => Err("there is no NAME.declaration.json beside it"),
            (None, None, None, Some(_)) => Err("there is no NAME.jsonl or NAME.sse beside it"),
            _ => Err("its files are of more than one vector"),
        }
    }

    /// The file of the vector that a name ends in so.
    fn file(&mut self, end: &str) -> &mut Option<PathBuf> {
        match end {
            ".jsonl" => &mut self.lines,
            ".sse" => &mut self.server_sent,
            ".declaration.json" => &mut self.declaration,
            ".expected.json" => &mut self.expectation,
            _ => &mut self.document,
        }
    }
}

/// What the names of files end in; an end before the ones that it ends in.
const ENDS: [&str; 5] = [
    ".jsonl",
    ".sse",
    ".declaration.json",
    ".expected.json",
    ".json",
];

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
                let named = ENDS
                    .iter()
                    .find_map(|&end| below.strip_suffix(end).map(|name| (name, end)));
                match named {
                    Some((name, end)) => *vector(&mut vectors, name).file(end) = Some(path),
                    None => stray.push(below),
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
            "d.json",
            "d.expected.json",
            "s.sse",
            "s.declaration.json",
            "s.expected.json",
        ] {
            fs::write(root.join(file), "").expect("written");
        }
        let suite = Suite::find(root).expect("readable");
        let found: Vec<_> = suite
            .vectors
            .iter()
            .map(|v| (&*v.name, v.lines.is_some(), v.expectation.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                ("a/alone", true, false),
                ("a/b/x", true, true),
                ("a/b/y", false, true),
                ("d", false, true),
                ("s", false, true),
                ("x", true, true)
            ]
        );
        assert_eq!(suite.stray, ["README.md", "a/z.ndjson"]);
        let subject = |name| {
            let vector = suite.vectors.iter().find(|v| v.name == name).expect(name);
            vector.subject()
        };
        assert!(matches!(subject("x"), Ok(Subject::Trace(_))));
        assert!(matches!(subject("d"), Ok(Subject::Declaration(_))));
        assert!(matches!(subject("s"), Ok(Subject::Stream { .. })));
        assert!(subject("a/b/y").is_err());
    }

    #[test]
    fn a_directory_must_be_there() {
        let error = Suite::find(Path::new("/nowhere/vectors")).expect_err("not there");
        assert!(error.contains("/nowhere/vectors"), "{error}");
    }
}
