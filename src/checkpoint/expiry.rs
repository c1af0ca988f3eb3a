//! Files that are not read just now and whose positions are kept all the same: rotated away, left
//! out of this run, on a disk that is not mounted.
//!
//! How long a file was not seen is measured by the monotonic clock while the process runs, and by
//! the wall clock over the time in between. A wall clock that jumps while the process runs makes no
//! file older.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use super::format::FileEntry;
use super::store::unix_seconds;
use crate::source::{FileId, SavedFile};

/// How long a file may be away. Whoever rotates keeps a few days, a disk may be missing over a long
/// weekend, and an entry costs up to a kilobyte in every checkpoint.
const MAX_UNSEEN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// For how long nothing expires after a start: a process that was stopped for a month first has
/// to look what is still there.
const GRACE: Duration = Duration::from_secs(10 * 60);

/// How many files are remembered, the last seen ones: some tens of megabytes where somebody rotates
/// several times a minute.
const MAX_FILES: usize = 50_000;

/// The files that are remembered.
#[derive(Debug)]
pub(crate) struct Remembered {
    started: Instant,
    files: HashMap<FileId, Unseen>,
}

#[derive(Debug)]
struct Unseen {
    file: SavedFile,
    since: Instant,
    /// How long before `since` it had not been seen already.
    before: Duration,
}

impl Unseen {
    fn duration(&self, now: Instant) -> Duration {
        self.before + now.saturating_duration_since(self.since)
    }
}

impl Remembered {
    /// What a checkpoint had, at a start.
    pub(crate) fn new(entries: Vec<FileEntry>, now: Instant, wall: SystemTime) -> Remembered {
        let wall = unix_seconds(wall);
        let unseen = |entry: FileEntry| Unseen {
            before: Duration::from_secs(wall.saturating_sub(entry.last_seen)),
            file: entry.file,
            since: now,
        };
        let files = entries.into_iter().map(unseen);
        Remembered {
            started: now,
            files: files
                .map(|unseen| (unseen.file.generation.file, unseen))
                .collect(),
        }
    }

    /// Keeps a file that was seen just now and is not read any more.
    pub(crate) fn remember(&mut self, file: SavedFile, now: Instant) {
        let unseen = Unseen {
            file,
            since: now,
            before: Duration::ZERO,
        };
        self.files.insert(unseen.file.generation.file, unseen);
    }

    /// Forgets a file, because it is read again or was deleted.
    pub(crate) fn forget(&mut self, id: FileId) -> Option<SavedFile> {
        self.files.remove(&id).map(|unseen| unseen.file)
    }

    /// Drops what was not seen for too long, and the longest unseen where there are too many.
    /// Returns how many.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        let before = self.files.len();
        if now.saturating_duration_since(self.started) >= GRACE {
            self.files
                .retain(|_, unseen| unseen.duration(now) < MAX_UNSEEN);
        }
        self.drop_beyond(MAX_FILES, now);
        before - self.files.len()
    }

    /// The files, each with the time when it was last seen, in seconds since 1970.
    pub(crate) fn entries(
        &self,
        now: Instant,
        wall: SystemTime,
    ) -> impl Iterator<Item = (&SavedFile, u64)> {
        let wall = unix_seconds(wall);
        self.files.values().map(move |unseen| {
            let last_seen = wall.saturating_sub(unseen.duration(now).as_secs());
            (&unseen.file, last_seen)
        })
    }

    fn drop_beyond(&mut self, max_files: usize, now: Instant) {
        if self.files.len() <= max_files {
            return;
        }
        let mut ages: Vec<(Duration, FileId)> = self
            .files
            .iter()
            .map(|(&id, unseen)| (unseen.duration(now), id))
            .collect();
        ages.sort_unstable_by_key(|&(age, _)| age);
        for (_, id) in &ages[max_files..] {
            self.files.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::super::sample::{entry, file};
    use super::*;

    const DAY: u64 = 24 * 60 * 60;
    const START: u64 = 1_000 * DAY;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Path and time of each file, by path.
    fn all(remembered: &Remembered, now: Instant, wall: u64) -> Vec<(String, u64)> {
        let mut all: Vec<_> = remembered
            .entries(now, at(wall))
            .map(|(file, last_seen)| (file.path.display().to_string(), last_seen))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_kept_for_a_week() {
        let start = Instant::now();
        let entries = vec![
            entry("six days", 1, START - 6 * DAY),
            entry("eight days", 2, START - 8 * DAY),
            entry("yesterday", 3, START - DAY),
        ];
        let mut remembered = Remembered::new(entries, start, at(START));
        // Something may be found there yet.
        assert_eq!(remembered.expire(start), 0);
        assert_eq!(
            remembered
                .forget(file("", 2, 0).generation.file)
                .map(|file| file.position.offset),
            Some(20)
        );
        remembered.remember(file("now", 4, 20), start);
        let later = start + Duration::from_secs(2 * DAY);
        assert_eq!(remembered.expire(later), 1);
        assert_eq!(
            all(&remembered, later, START + 2 * DAY),
            [
                ("now".to_owned(), START),
                ("yesterday".to_owned(), START - DAY)
            ]
        );
        assert_eq!(remembered.expire(later + Duration::from_secs(7 * DAY)), 2);
    }

    #[test]
    fn what_was_not_seen_for_long_expires_when_it_had_its_chance() {
        let start = Instant::now();
        let entries = vec![entry("old", 1, 0)];
        let mut remembered = Remembered::new(entries, start, at(START));
        assert_eq!(remembered.expire(start + GRACE - Duration::from_secs(1)), 0);
        assert_eq!(remembered.expire(start + GRACE), 1);
    }

    #[test]
    fn a_jump_of_the_wall_clock_makes_nothing_older() {
        let start = Instant::now();
        let entries = vec![entry("tomorrow", 1, START + DAY)];
        let mut remembered = Remembered::new(entries, start, at(START));
        let later = start + Duration::from_secs(DAY);
        assert_eq!(remembered.expire(later), 0);
        let jumped = START + 300 * DAY;
        let expected = [("tomorrow".to_owned(), jumped - DAY)];
        assert_eq!(all(&remembered, later, jumped), expected);
        assert_eq!(all(&remembered, later, 5), [("tomorrow".to_owned(), 0)]);
    }

    #[test]
    fn of_too_many_the_longest_unseen_go() {
        let start = Instant::now();
        let entries = (0..10).map(|number| entry(number.to_string(), number, START - number));
        let mut remembered = Remembered::new(entries.collect(), start, at(START));
        remembered.drop_beyond(10, start);
        remembered.drop_beyond(3, start);
        let expected = [0, 1, 2].map(|number| (number.to_string(), START - number));
        assert_eq!(all(&remembered, start, START), expected);
    }

    #[test]
    fn another_generation_takes_the_place_of_the_one_before() {
        let start = Instant::now();
        let mut remembered = Remembered::new(vec![entry("a", 1, START)], start, at(START));
        let mut next = file("b", 1, 5);
        next.generation = next.generation.after_truncation(1, 2);
        remembered.remember(next.clone(), start);
        let entries: Vec<_> = remembered.entries(start, at(START)).collect();
        assert_eq!(entries, [(&next, START)]);
    }
}
