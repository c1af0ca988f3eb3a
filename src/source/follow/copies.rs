//! Copies that a glob or directory matches too: of a file that is rotated by copying and truncating
//! it, everything would be read twice.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file::Followed;
use super::following::{Following, shown};
use crate::source::message::SourceId;

/// For how long a new file that may become a copy is not read, as long as nothing comes into it.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How much of a file's end is compared with the original.
const END_BYTES: u64 = 256;

/// What a new file beside another turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinship {
    Copy,
    Stranger,
    /// There is too little of it to tell.
    Undecided,
}

impl Following {
    /// The content that a new file under this path may be a copy of.
    pub(super) fn original(&self, path: &Path) -> Option<SourceId> {
        live_names(path).into_iter().find_map(|live| {
            let file = self.names.get(&live)?.file?;
            let id = *self.by_file.get(&file)?;
            let original = self.files.get(&id)?;
            (original.is_open() && original.position > 0).then_some(id)
        })
    }

    /// Whether a file that waits to be opened is a copy, or may yet become one. If it is one, it is
    /// passed over.
    pub(super) fn is_kept_from_opening(&mut self, id: SourceId, now: Instant) -> bool {
        let file = &self.files[&id];
        let Some(original) = file.original.and_then(|id| self.files.get(&id)) else {
            return false;
        };
        if original.is_copy {
            return false;
        }
        match kinship(file, original).unwrap_or(Kinship::Stranger) {
            Kinship::Stranger => {}
            Kinship::Undecided => {
                let at = file.grown_at + MAX_WAIT;
                if now < at && file.nameless_since.is_none() {
                    self.wake(at);
                    return true;
                }
            }
            Kinship::Copy => {
                let (name, of) = (shown(&file.name), shown(&original.name));
                tracing::debug!("{name}: is a copy of {of} and is not read again");
                self.pass_over_copy(id);
                return true;
            }
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.original = None;
            file.is_stirred = true;
        }
        false
    }
}

/// Whether the file holds the beginning of what the original holds.
fn kinship(file: &Followed, original: &Followed) -> io::Result<Kinship> {
    // Before the original is known to be overwritten, the copy is where the rest of it is.
    if original.length() < original.position || !original.holds_what_was_read()? {
        return Ok(Kinship::Undecided);
    }
    let length = file.length();
    let head = original.head()?;
    let new_head = file.head()?;
    if !head.starts_with(&new_head) && !new_head.starts_with(&head) {
        return Ok(Kinship::Stranger);
    }
    if !original.fingerprint.head_matches(&file.file)? {
        return Ok(Kinship::Undecided);
    }
    let start = length.saturating_sub(END_BYTES);
    let mut end = vec![0; (length - start) as usize];
    let mut same = end.clone();
    file.file.read_exact_at(&mut end, start)?;
    match original.file.read_exact_at(&mut same, start) {
        Ok(()) if end == same => Ok(Kinship::Copy),
        _ => Ok(Kinship::Stranger),
    }
}

/// The paths that may have been rotated into this one, the longest first.
pub(super) fn live_names(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) => (stem, Some(extension)),
        None => (name, None),
    };
    for (at, _) in name
        .char_indices()
        .rev()
        .filter(|(at, c)| *at > 0 && !c.is_alphanumeric())
    {
        names.push(path.with_file_name(&name[..at]));
        if let Some(extension) = extension
            && at < stem.len()
        {
            names.push(path.with_file_name(format!("{}.{extension}", &name[..at])));
        }
    }
    names.retain(|live| {
        let live = live.file_name().unwrap_or_default();
        super::rotation::is_rotated_name(name.as_ref(), live)
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_names_lead_back() {
        let of = |name: &str| -> Vec<String> {
            let names = live_names(Path::new(name));
            names
                .iter()
                .map(|path| path.to_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(of("d/a.log.1"), ["d/a.log", "d/a"]);
        assert_eq!(of("d/a-1.log"), ["d/a-1", "d/a", "d/a.log"]);
        assert!(of("a").is_empty());
    }
}
