//! The directory of checkpoints: which file is used, and how another takes its place.
//!
//! A save writes `checkpoint.new`, makes it durable, renames `checkpoint` to `checkpoint.old`, then
//! `checkpoint.new` to `checkpoint`, and makes the names durable. Loading takes the first of
//! `checkpoint.new`, `checkpoint` and `checkpoint.old` that is whole: the newest. Wherever a save is
//! cut off, one of the three is, and the checksum tells which, so the order in which a file system
//! makes two renames durable does not matter either.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;

use super::format::{Damage, Entry, FileEntry, Identity, Meta, Reader, Unsealed, Writer};
use super::lock::{Lock, LockError};
use crate::emit::sanitise::visible;

const CURRENT: &str = "checkpoint";
const PREVIOUS: &str = "checkpoint.old";
const NEXT: &str = "checkpoint.new";

/// What is put before the name of a file that is set aside, and the time.
const DAMAGED: &str = "damaged";
const UNUSED: &str = "unused";

/// How many files that were set aside are kept: enough to see what happened, and no litter.
const MAX_ASIDE: usize = 3;

/// Longest path in a message; none can be longer.
const MAX_PATH_CHARS: usize = 4096;

/// A directory that this process alone writes.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    identity: Identity,
    _lock: Lock,
}

/// What takes the entries of a checkpoint.
pub(crate) type CheckpointWriter = Writer<File>;

/// What a directory had for this run.
#[derive(Debug)]
pub(crate) struct Loaded<S> {
    /// None at a first start, and where nothing could be used.
    pub(crate) saved: Option<Saved<S>>,
    /// What was damaged and what is lost with it, each to be told as a warning.
    pub(crate) problems: Vec<String>,
}

/// A checkpoint to go on from; every entry of it has been decoded once.
#[derive(Debug)]
pub(crate) struct Saved<S> {
    pub(crate) meta: Meta,
    pub(crate) files: Vec<FileEntry>,
    reader: Reader,
    state: PhantomData<S>,
}

/// What [`find_current`] finds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The newest checkpoint that is whole, and its path.
    pub(crate) current: Option<(PathBuf, Reader)>,
    /// What is damaged among those that would be newer.
    pub(crate) problems: Vec<String>,
}

/// Why a directory cannot be used at all. Damage is no reason.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Another process uses it.
    InUse { dir: PathBuf, pid: Option<u32> },
    /// It cannot be created, locked or looked into.
    Io { path: PathBuf, error: io::Error },
}

impl Store {
    /// Takes the directory, and finds the newest checkpoint in it that was written by a run of the
    /// same `identity` and is whole. What cannot be used is set aside.
    pub(crate) fn open<S: DeserializeOwned>(
        dir: &Path,
        identity: Identity,
        now: SystemTime,
    ) -> Result<(Store, Loaded<S>), OpenError> {
        let lock = Lock::take(dir).map_err(|error| OpenError::of_lock(dir, error))?;
        let store = Store {
            dir: dir.to_owned(),
            identity,
            _lock: lock,
        };
        let loaded = store.load(now)?;
        Ok((store, loaded))
    }

    /// Begins the next checkpoint. There must be no other that is not yet published.
    pub(super) fn begin(&self, now: SystemTime) -> io::Result<CheckpointWriter> {
        let path = self.path(NEXT);
        remove(&path)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let meta = Meta {
            created: unix_seconds(now),
            identity: self.identity.clone(),
        };
        Writer::new(file, &meta)
    }

    /// Makes a checkpoint the current one, durably. Everything that was found before it must have
    /// been written.
    pub(super) fn publish(&self, checkpoint: Unsealed<File>) -> io::Result<()> {
        checkpoint.seal()?.sync_all()?;
        self.replace()
    }

    /// Frees the place that a checkpoint takes that is not to be published.
    pub(super) fn discard(&self) {
        // If that fails, the next one cannot be written either, and that is told.
        let _ = remove(&self.path(NEXT));
    }

    /// The directory as messages call it.
    pub(super) fn shown(&self) -> String {
        shown(&self.dir).to_string()
    }

    /// Puts `checkpoint.new`, which is whole and durable, into its place.
    fn replace(&self) -> io::Result<()> {
        let current = self.path(CURRENT);
        match fs::rename(&current, self.path(PREVIOUS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::rename(self.path(NEXT), current)?,
        }
        File::open(&self.dir)?.sync_all()
    }

    fn load<S: DeserializeOwned>(&self, now: SystemTime) -> Result<Loaded<S>, OpenError> {
        let mut problems = Vec::new();
        let saved = match self.load_interrupted()? {
            Some(saved) => Some(saved),
            None => self.load_published(now, &mut problems)?,
        };
        if !problems.is_empty() {
            problems.push(consequence(saved.as_ref(), now));
        }
        Ok(Loaded { saved, problems })
    }

    /// Finishes a save that was cut off between its last two steps. Whatever else is called
    /// `checkpoint.new` never was a checkpoint, and nothing is lost with it.
    fn load_interrupted<S: DeserializeOwned>(&self) -> Result<Option<Saved<S>>, OpenError> {
        let path = self.path(NEXT);
        if let Some(file) = open(&path)?
            && let Ok(again) = file.try_clone()
            && let Ok(saved) = check(file, &self.identity)
            && again.sync_all().and_then(|()| self.replace()).is_ok()
        {
            return Ok(Some(saved));
        }
        self.discard();
        Ok(None)
    }

    fn load_published<S: DeserializeOwned>(
        &self,
        now: SystemTime,
        problems: &mut Vec<String>,
    ) -> Result<Option<Saved<S>>, OpenError> {
        for name in [CURRENT, PREVIOUS] {
            let path = self.path(name);
            let Some(file) = open(&path)? else { continue };
            let (prefix, problem) = match check(file, &self.identity) {
                Ok(saved) => return Ok(Some(saved)),
                Err(Unusable::Damaged(damage)) => (DAMAGED, format!("is damaged: {damage}")),
                Err(Unusable::Other(other)) => (UNUSED, other.difference(&self.identity)),
            };
            let aside = self.set_aside(name, prefix, now);
            problems.push(format!("{} {problem}; {aside}", shown(&path)));
        }
        Ok(None)
    }

    /// Renames a file that is not used, and says so.
    fn set_aside(&self, name: &str, prefix: &str, now: SystemTime) -> String {
        let aside = format!("{prefix}-{}-{name}", unix_seconds(now));
        match fs::rename(self.path(name), self.path(&aside)) {
            Ok(()) => {
                self.drop_oldest_aside();
                format!("it is kept as {aside}")
            }
            Err(error) => format!("it could not be set aside: {error}"),
        }
    }

    fn drop_oldest_aside(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut aside: Vec<(u64, String)> = names
            .filter_map(|name| Some((set_aside_at(&name)?, name)))
            .collect();
        aside.sort_unstable();
        for (_, name) in aside.iter().rev().skip(MAX_ASIDE) {
            // Whatever cannot be removed is only in the way.
            let _ = remove(&self.path(name));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Finds the checkpoint that a run would go on from, without taking the directory: a process that
/// uses it is not disturbed.
pub(crate) fn find_current(dir: &Path) -> Result<Found, OpenError> {
    let mut found = Found::default();
    // Where nothing is there when it is looked for, a save may have renamed it since.
    for _ in 0..2 {
        for name in [NEXT, CURRENT, PREVIOUS] {
            let path = dir.join(name);
            let Some(file) = open(&path)? else { continue };
            match Reader::new(file) {
                Ok(reader) => {
                    found.current = Some((path, reader));
                    return Ok(found);
                }
                Err(_) if name == NEXT => {}
                Err(damage) => {
                    let problem = format!("{} is damaged: {damage}", shown(&path));
                    found.problems.push(problem);
                }
            }
        }
        if !found.problems.is_empty() {
            break;
        }
    }
    Ok(found)
}

impl<S: DeserializeOwned> Saved<S> {
    /// How long ago it was taken, by the wall clock.
    pub(crate) fn age(&self, now: SystemTime) -> Duration {
        Duration::from_secs(unix_seconds(now).saturating_sub(self.meta.created))
    }

    /// The states in the order in which they were written. Each has been decoded before, so an
    /// error says that the disk fails.
    pub(crate) fn states(mut self) -> impl Iterator<Item = Result<S, Damage>> {
        let rewound = self.reader.rewind();
        let failed = rewound.err().map(Err);
        let states = std::iter::from_fn(move || self.reader.read_state().transpose());
        failed.into_iter().chain(states)
    }

    /// Decodes everything, and keeps the files.
    fn new(mut reader: Reader) -> Result<Saved<S>, Damage> {
        let mut files = Vec::new();
        while let Some(entry) = reader.read::<S>()? {
            if let Entry::File(file) = entry {
                files.push(file);
            }
        }
        Ok(Saved {
            meta: reader.meta().clone(),
            files,
            reader,
            state: PhantomData,
        })
    }
}

impl Identity {
    /// How a checkpoint of this identity differs from the one that is wanted.
    fn difference(&self, wanted: &Identity) -> String {
        if self.protocol != wanted.protocol {
            return format!(
                "was written with --protocol {}, and this run has {}",
                visible(&self.protocol, MAX_PATH_CHARS),
                wanted.protocol
            );
        }
        let key = |identity: &Identity| match &identity.trace_key {
            Some(key) => format!("--trace-key {}", visible(key, MAX_PATH_CHARS)),
            None => "no --trace-key".to_owned(),
        };
        format!(
            "was written with {}, and this run has {}",
            key(self),
            key(wanted)
        )
    }
}

enum Unusable {
    Damaged(Damage),
    Other(Identity),
}

/// Reads a checkpoint if it is one of this identity.
fn check<S: DeserializeOwned>(file: File, identity: &Identity) -> Result<Saved<S>, Unusable> {
    let reader = Reader::new(file).map_err(Unusable::Damaged)?;
    // The states of another protocol are of other types.
    if reader.meta().identity != *identity {
        return Err(Unusable::Other(reader.meta().identity.clone()));
    }
    Saved::new(reader).map_err(Unusable::Damaged)
}

/// What it means that a newer checkpoint could not be used.
fn consequence<S: DeserializeOwned>(saved: Option<&Saved<S>>, now: SystemTime) -> String {
    match saved {
        Some(saved) => format!(
            "going on from the checkpoint before, taken {} ago: what was read since is read again, \
             and its findings come again with the same ids",
            humantime::format_duration(saved.age(now))
        ),
        None => {
            "there is no checkpoint to go on from: files are read as at a first start, findings \
             come again with the same ids, and what was known of open traces is lost"
                .to_owned()
        }
    }
}

/// A file, if it is there.
fn open(path: &Path) -> Result<Option<File>, OpenError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::Io {
            path: path.to_owned(),
            error,
        }),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// When a file of that name was set aside, if it was.
fn set_aside_at(name: &str) -> Option<u64> {
    let mut parts = name.splitn(3, '-');
    let (prefix, seconds, rest) = (parts.next()?, parts.next()?, parts.next()?);
    ([DAMAGED, UNUSED].contains(&prefix) && [CURRENT, PREVIOUS].contains(&rest))
        .then(|| seconds.parse().ok())?
}

/// Seconds since 1970; what is before counts as 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs()
}

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy(), MAX_PATH_CHARS).to_string()
}

impl OpenError {
    fn of_lock(dir: &Path, error: LockError) -> OpenError {
        let dir = dir.to_owned();
        match error {
            LockError::InUse(pid) => OpenError::InUse { dir, pid },
            LockError::Io(error) => OpenError::Io { path: dir, error },
        }
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::InUse { dir, pid } => {
                write!(
                    f,
                    "the state directory {} is in use by another process",
                    shown(dir)
                )?;
                pid.map_or(Ok(()), |pid| write!(f, " ({pid})"))
            }
            OpenError::Io { path, error } => {
                write!(
                    f,
                    "cannot use the state directory: {}: {error}",
                    shown(path)
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::sample::{Sample, file, identity, sample};
    use super::*;

    /// Seconds since 1970.
    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Begins a checkpoint that holds a number, so that it is known again.
    fn unsealed(store: &Store, number: u64) -> Unsealed<File> {
        let mut writer = store.begin(at(number)).expect("begun");
        writer.file(&file("a", 1, number), number).expect("written");
        writer.state(&sample(number.to_string())).expect("written");
        writer.finish().expect("written")
    }

    fn save(store: &Store, number: u64) {
        let unsealed = unsealed(store, number);
        store.publish(unsealed).expect("published");
    }

    fn open_at(dir: &Path, seconds: u64) -> (Store, Loaded<Sample>) {
        Store::open(dir, identity(), at(seconds)).expect("opened")
    }

    /// The number of the checkpoint that is loaded, and the problems.
    fn load(dir: &Path) -> (Option<u64>, Vec<String>) {
        let (_store, loaded) = open_at(dir, 1_000);
        let number = loaded.saved.map(|saved| {
            let number = saved.meta.created;
            assert_eq!(saved.files.len(), 1);
            assert_eq!(saved.files[0].file.position.offset, number);
            assert_eq!(saved.age(at(1_000)), Duration::from_secs(1_000 - number));
            let states: Vec<Sample> = saved.states().map(|state| state.expect("whole")).collect();
            assert_eq!(states, [sample(number.to_string())]);
            number
        });
        (number, loaded.problems)
    }

    fn names(dir: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(dir).expect("listed");
        entries
            .map(|entry| {
                entry
                    .expect("read")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect()
    }

    fn temporary() -> tempfile::TempDir {
        tempfile::tempdir().expect("created")
    }

    /// A directory with the checkpoints 1, as the one before, and 2.
    fn with_two() -> tempfile::TempDir {
        let dir = temporary();
        let (store, _) = open_at(dir.path(), 0);
        save(&store, 1);
        save(&store, 2);
        dir
    }

    #[test]
    fn the_last_checkpoint_is_loaded_and_the_one_before_kept() {
        let dir = temporary();
        assert_eq!(load(dir.path()), (None, vec![]));
        for number in 1..5 {
            let (store, _) = open_at(dir.path(), 0);
            save(&store, number);
            drop(store);
            assert_eq!(load(dir.path()), (Some(number), vec![]));
        }
        let expected = ["checkpoint", "checkpoint.old", "lock"].map(str::to_owned);
        assert_eq!(names(dir.path()), BTreeSet::from(expected));
    }

    /// What a kill leaves at each step of a save: `N` is a whole checkpoint, `-` one that is not
    /// sealed, a space none; in the order of [`NEXT`], [`CURRENT`] and [`PREVIOUS`].
    #[test]
    fn at_every_step_of_a_save_there_is_one_to_go_on_from() {
        for (left, expected) in [
            ("   ", None), // at the first save
            ("-  ", None),
            ("1  ", Some(1)),
            (" 1 ", Some(1)),
            ("-1 ", Some(1)), // at the second
            ("21 ", Some(2)),
            ("2 1", Some(2)),
            (" 21", Some(2)),
            ("-21", Some(2)), // at a later one
            ("321", Some(3)),
            ("3 2", Some(3)),
            (" 32", Some(3)),
            ("- 1", Some(1)), // after a loss of power that kept one of two renames
            ("  1", Some(1)),
            ("2 2", Some(2)),
        ] {
            let dir = temporary();
            for (name, content) in [NEXT, CURRENT, PREVIOUS].into_iter().zip(left.chars()) {
                let made = temporary();
                let (store, _) = open_at(made.path(), 0);
                match content.to_digit(10) {
                    Some(number) => {
                        save(&store, number.into());
                        fs::rename(made.path().join(CURRENT), dir.path().join(name))
                    }
                    None if content == '-' => {
                        drop(unsealed(&store, 9));
                        fs::rename(made.path().join(NEXT), dir.path().join(name))
                    }
                    None => Ok(()),
                }
                .expect("put there");
            }
            for _ in 0..2 {
                assert_eq!(load(dir.path()), (expected, vec![]), "{left:?}");
            }
            assert!(!names(dir.path()).contains(NEXT), "{left:?}");
            // And it goes on from there.
            let (store, _) = open_at(dir.path(), 0);
            save(&store, 8);
            drop(store);
            assert_eq!(load(dir.path()), (Some(8), vec![]), "{left:?}");
        }
    }

    #[test]
    fn a_damaged_checkpoint_gives_way_to_the_one_before() {
        let whole = fs::read(with_two().path().join(CURRENT)).expect("read");
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        let mut future = whole.clone();
        future[8] = 2;
        for (content, word) in [
            (Vec::new(), "empty"),
            (vec![0; whole.len()], "does not begin"),
            (whole[..whole.len() - 1].to_vec(), "end is missing"),
            (flipped, "checksum"),
            (future, "version 2"),
        ] {
            let dir = with_two();
            let dir = dir.path();
            fs::write(dir.join(CURRENT), &content).expect("written");
            let (number, problems) = load(dir);
            assert_eq!((number, problems.len()), (Some(1), 2), "{problems:?}");
            let kept = "it is kept as damaged-1000-checkpoint";
            assert!(problems[0].contains(word), "{problems:?}");
            assert!(problems[0].ends_with(kept), "{problems:?}");
            assert!(problems[1].contains("taken 16m 39s ago"), "{problems:?}");
            let aside = fs::read(dir.join("damaged-1000-checkpoint")).expect("kept");
            assert_eq!(aside, content);
            assert_eq!(load(dir), (Some(1), vec![]));
        }
    }

    #[test]
    fn where_all_are_damaged_it_begins_anew() {
        let dir = with_two();
        for name in [CURRENT, PREVIOUS] {
            fs::write(dir.path().join(name), [0; 100]).expect("written");
        }
        let (number, problems) = load(dir.path());
        assert_eq!((number, problems.len()), (None, 3), "{problems:?}");
        assert!(problems[2].contains("no checkpoint to go on from"));
        assert_eq!(load(dir.path()), (None, vec![]));
        let (store, _) = open_at(dir.path(), 0);
        save(&store, 3);
        drop(store);
        assert_eq!(load(dir.path()), (Some(3), vec![]));
    }

    #[test]
    fn a_directory_in_the_place_of_a_checkpoint_is_damage() {
        let dir = with_two();
        fs::remove_file(dir.path().join(CURRENT)).expect("removed");
        fs::create_dir(dir.path().join(CURRENT)).expect("created");
        assert_eq!(load(dir.path()).0, Some(1));
    }

    #[test]
    fn another_configuration_begins_anew_and_says_why() {
        let other = |protocol: &str, trace_key: Option<&str>| Identity {
            protocol: protocol.to_owned(),
            trace_key: trace_key.map(str::to_owned),
        };
        for (wanted, words) in [
            (
                other("ag-ui", Some("/trace")),
                "written with --protocol a3, and this run has ag-ui",
            ),
            (
                other("a3", None),
                "written with --trace-key /trace, and this run has no --trace-key",
            ),
            (
                other("a3", Some("/task")),
                "written with --trace-key /trace, and this run has --trace-key /task",
            ),
        ] {
            let dir = with_two();
            let opened = Store::open::<Sample>(dir.path(), wanted.clone(), at(5));
            let (store, loaded) = opened.expect("opened");
            assert!(loaded.saved.is_none());
            assert!(loaded.problems[0].contains(words), "{:?}", loaded.problems);
            assert!(names(dir.path()).contains("unused-5-checkpoint"));
            save(&store, 6);
            drop(store);
            let opened = Store::open::<Sample>(dir.path(), wanted, at(7)).expect("opened");
            assert_eq!(opened.1.saved.expect("saved").meta.created, 6);
        }
    }

    #[test]
    fn what_is_set_aside_does_not_pile_up() {
        let dir = temporary();
        for other in ["damaged-x-checkpoint", "damaged-1-mine", "unused-1"] {
            fs::write(dir.path().join(other), "").expect("written");
        }
        for seconds in 90..110 {
            fs::write(dir.path().join(CURRENT), [0; 9]).expect("written");
            drop(open_at(dir.path(), seconds));
        }
        let expected = [
            "damaged-107-checkpoint",
            "damaged-108-checkpoint",
            "damaged-109-checkpoint",
            "damaged-1-mine",
            "damaged-x-checkpoint",
            "unused-1",
            "lock",
        ];
        assert_eq!(
            names(dir.path()),
            BTreeSet::from(expected.map(str::to_owned))
        );
    }

    #[test]
    fn saves_that_are_given_up_leave_nothing() {
        let dir = with_two();
        let (store, _) = open_at(dir.path(), 0);
        for number in 3..10 {
            drop(unsealed(&store, number));
        }
        store.discard();
        store.discard();
        drop(store);
        assert_eq!(load(dir.path()), (Some(2), vec![]));
        let expected = ["checkpoint", "checkpoint.old", "lock"].map(str::to_owned);
        assert_eq!(names(dir.path()), BTreeSet::from(expected));
    }

    #[test]
    fn a_second_instance_is_refused_and_harms_nothing() {
        let dir = with_two();
        let (store, _) = open_at(dir.path(), 0);
        let unsealed = unsealed(&store, 3);
        let error = Store::open::<Sample>(dir.path(), identity(), at(0)).expect_err("in use");
        let expected = format!(
            "the state directory {} is in use by another process ({})",
            dir.path().display(),
            std::process::id()
        );
        assert_eq!(error.to_string(), expected);
        store.publish(unsealed).expect("published");
        drop(store);
        assert_eq!(load(dir.path()), (Some(3), vec![]));
    }

    #[test]
    fn a_directory_that_cannot_be_had_is_an_error() {
        let dir = temporary();
        let file = dir.path().join("a\u{1b}b");
        fs::write(&file, "").expect("written");
        let error = Store::open::<Sample>(&file.join("state"), identity(), at(0));
        let message = error.expect_err("no directory").to_string();
        assert!(
            message.starts_with("cannot use the state directory: "),
            "{message}"
        );
        assert!(message.contains("a\\u{1b}b/state: "), "{message}");
    }

    #[test]
    fn the_current_one_is_found_without_taking_the_directory() {
        let dir = with_two();
        let (store, _) = open_at(dir.path(), 0);
        let found = || {
            let found = find_current(dir.path()).expect("looked into");
            let created = found.current.map(|(_, reader)| reader.meta().created);
            (created, found.problems)
        };
        assert_eq!(found(), (Some(2), vec![]));
        let unsealed = unsealed(&store, 3);
        assert_eq!(found(), (Some(2), vec![]));
        store.publish(unsealed).expect("published");
        assert_eq!(found(), (Some(3), vec![]));
        fs::write(dir.path().join(CURRENT), "").expect("written");
        let (number, problems) = found();
        assert_eq!((number, problems.len()), (Some(2), 1), "{problems:?}");
        fs::write(dir.path().join(PREVIOUS), "").expect("written");
        let (number, problems) = found();
        assert_eq!((number, problems.len()), (None, 2), "{problems:?}");
        let nowhere = find_current(&dir.path().join("nowhere")).expect("looked for");
        assert!(nowhere.current.is_none() && nowhere.problems.is_empty());
    }

    #[test]
    fn a_hundred_thousand_traces_are_kept() {
        const TRACES: u64 = 100_000;
        let dir = temporary();
        let (store, _) = open_at(dir.path(), 0);
        let mut writer = store.begin(at(1)).expect("begun");
        for number in 0..TRACES {
            writer
                .state(&sample(format!("trace {number}")))
                .expect("written");
        }
        let unsealed = writer.finish().expect("written");
        store.publish(unsealed).expect("published");
        drop(store);
        let (_store, loaded) = open_at(dir.path(), 2);
        let mut states = loaded.saved.expect("saved").states();
        for number in 0..TRACES {
            let state = states.next().expect("all are there").expect("whole");
            assert_eq!(state, sample(format!("trace {number}")));
        }
        assert!(states.next().is_none());
    }
}
