//! When checkpoints are taken, and the thread that makes them durable.
//!
//! The verifying thread writes a checkpoint at the speed of memory and goes on. The keeper waits
//! until the output has taken everything that was found before, seals the checkpoint, syncs it and
//! puts it into its place. One is under way at a time, so a slow disk or a stalled output makes
//! checkpoints rarer and holds nobody up; how old the last durable one is can be asked for.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use super::format::Unsealed;
use super::store::{CheckpointWriter, Store};

/// How often checkpoints are taken where they are cheap: this much is read again after a kill.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The same after something that should be known after a crash, such as a new file: few disks mind
/// ten small files a second for a while.
const URGENT_INTERVAL: Duration = Duration::from_millis(100);

/// A checkpoint that took the verifying thread so long is followed by that many times as long
/// without: a tenth of its time at the most.
const COST_FACTOR: u32 = 10;

/// How long nothing is written where nothing changes. Then it is, for a checkpoint also says when
/// its files were last there.
const UNCHANGED_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// How long the keeper waits for the output before it looks whether it is to stop.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// Takes checkpoints.
#[derive(Debug)]
pub(crate) struct Keeper {
    thread: Option<JoinHandle<()>>,
    store: Arc<Store>,
    shared: Arc<Shared>,
    pace: Pace,
    last_taken: Option<Instant>,
}

/// How old what is durable is; can be asked from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Freshness(Arc<Shared>);

impl Keeper {
    /// Starts the thread. `wait` blocks until the output has written everything up to a position
    /// that the caller counts, and says whether it has; it may give up at the deadline, and at once
    /// where there will be no more output.
    pub(crate) fn start(
        store: Store,
        now: Instant,
        wait: impl Fn(u64, Instant) -> bool + Send + 'static,
    ) -> io::Result<Keeper> {
        let store = Arc::new(store);
        let shared = Arc::new(Shared::new(now));
        let worker = Worker {
            store: Arc::clone(&store),
            shared: Arc::clone(&shared),
            wait,
        };
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || worker.work())?;
        Ok(Keeper {
            thread: Some(thread),
            store,
            shared,
            pace: Pace::new(now),
            last_taken: None,
        })
    }

    /// Whether it is time for a checkpoint. `changed` says whether anything has come since
    /// [`Keeper::take`] was last called.
    pub(crate) fn is_due(&self, now: Instant, changed: bool) -> bool {
        let mut progress = self.shared.lock();
        if progress.is_busy() || now < self.pace.due {
            return false;
        }
        let is_saved = self.last_taken == Some(progress.durable);
        if changed || !is_saved {
            return true;
        }
        // What is durable still holds.
        progress.as_good_as = now;
        let last = self.last_taken.unwrap_or(now);
        now.saturating_duration_since(last) >= UNCHANGED_INTERVAL
    }

    /// Takes a checkpoint: `write` puts everything into it, and `output_position` is how far the
    /// output has to come for it to hold. Does nothing while another is under way.
    pub(crate) fn take(
        &mut self,
        output_position: u64,
        write: impl FnOnce(&mut CheckpointWriter) -> io::Result<()>,
    ) {
        if self.shared.lock().is_busy() {
            return;
        }
        let taken = Instant::now();
        let written = self.write(write);
        self.pace.took(taken, taken.elapsed());
        self.last_taken = Some(taken);
        match written {
            Ok(checkpoint) => self.shared.hand_over(Pending {
                checkpoint,
                output_position,
                taken,
            }),
            Err(error) => {
                self.store.discard();
                self.shared.note(&self.store, Err(error));
            }
        }
    }

    /// Whether one that somebody has reason to want can be taken.
    pub(crate) fn is_due_if_urgent(&self, now: Instant) -> bool {
        now >= self.pace.due_if_urgent && !self.shared.lock().is_busy()
    }

    /// Takes a checkpoint and waits until it is durable, or until `deadline`.
    pub(crate) fn settle(
        &mut self,
        deadline: Instant,
        output_position: u64,
        write: impl FnOnce(&mut CheckpointWriter) -> io::Result<()>,
    ) {
        if self.shared.wait_until_idle(deadline) {
            self.take(output_position, write);
            self.shared.wait_until_idle(deadline);
        }
    }

    /// Takes a last checkpoint and waits for it until `deadline`. Returns whether it is durable;
    /// if not, the one before stays.
    pub(crate) fn finish(
        mut self,
        deadline: Instant,
        output_position: u64,
        write: impl FnOnce(&mut CheckpointWriter) -> io::Result<()>,
    ) -> bool {
        self.shared.lock().stop_at = Some(deadline);
        // The output comes to the one that is under way before it comes to the end.
        if !self.shared.wait_until_idle(deadline) {
            return false;
        }
        self.take(output_position, write);
        self.shared.wait_until_idle(deadline) && self.last_taken == Some(self.shared.lock().durable)
    }

    pub(crate) fn freshness(&self) -> Freshness {
        Freshness(Arc::clone(&self.shared))
    }

    fn write(
        &self,
        write: impl FnOnce(&mut CheckpointWriter) -> io::Result<()>,
    ) -> io::Result<Unsealed<File>> {
        let mut writer = self.store.begin(SystemTime::now())?;
        write(&mut writer)?;
        writer.finish()
    }
}

impl Drop for Keeper {
    /// Gives up what is under way and not delivered. A disk that does not answer is not waited for.
    fn drop(&mut self) {
        let mut progress = self.shared.lock();
        progress.is_closed = true;
        let is_idle = !progress.is_busy();
        drop(progress);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take().filter(|_| is_idle) {
            // A panic of the thread was told when it happened.
            let _ = thread.join();
        }
    }
}

impl Freshness {
    /// How long ago the state was taken that is durable now, or how long there has been none.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.0.lock().as_good_as)
    }
}

/// When the next checkpoint may be taken.
#[derive(Debug)]
struct Pace {
    due: Instant,
    /// The same for one that somebody has reason to want.
    due_if_urgent: Instant,
}

impl Pace {
    /// The first may be taken at once: until then nobody knows which files there were.
    fn new(now: Instant) -> Pace {
        Pace {
            due: now + INTERVAL,
            due_if_urgent: now,
        }
    }

    /// One was taken, or tried, and took the verifying thread so long.
    fn took(&mut self, taken: Instant, cost: Duration) {
        self.due = taken + cost + INTERVAL.max(cost * COST_FACTOR);
        self.due_if_urgent = taken + cost + URGENT_INTERVAL.max(cost * COST_FACTOR);
    }
}

/// A checkpoint that waits for the output.
#[derive(Debug)]
struct Pending {
    checkpoint: Unsealed<File>,
    output_position: u64,
    taken: Instant,
}

#[derive(Debug)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug)]
struct Progress {
    pending: Option<Pending>,
    /// The keeper has one in its hands.
    is_working: bool,
    /// When the state was taken that is durable; at first, when the keeper was started.
    durable: Instant,
    /// The same, or a later moment at which the state had not changed.
    as_good_as: Instant,
    /// The last one could not be saved, and that was told.
    is_failing: bool,
    /// There will be no more, and what is under way is given up then.
    stop_at: Option<Instant>,
    is_closed: bool,
}

impl Progress {
    fn is_busy(&self) -> bool {
        self.is_working || self.pending.is_some()
    }

    /// Whether there is no use in waiting for the output any longer.
    fn is_over(&self, now: Instant) -> bool {
        self.is_closed || self.stop_at.is_some_and(|stop_at| stop_at <= now)
    }
}

impl Shared {
    fn new(now: Instant) -> Shared {
        Shared {
            progress: Mutex::new(Progress {
                pending: None,
                is_working: false,
                durable: now,
                as_good_as: now,
                is_failing: false,
                stop_at: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // Nothing is left half done where a panic could strike.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, pending: Pending) {
        self.lock().pending = Some(pending);
        self.changed.notify_all();
    }

    /// The next one to make durable; none when there will be no more.
    fn next(&self) -> Option<Pending> {
        let mut progress = self.lock();
        loop {
            if let Some(pending) = progress.pending.take() {
                progress.is_working = true;
                return Some(pending);
            }
            if progress.is_closed {
                return None;
            }
            progress = self
                .changed
                .wait(progress)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        let mut progress = self.lock();
        while progress.is_busy() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(progress, left);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Tells of the first failure and of the end of failing.
    fn note(&self, store: &Store, saved: io::Result<()>) {
        let mut progress = self.lock();
        match &saved {
            Ok(()) if progress.is_failing => {
                tracing::warn!("checkpoints are saved in {} again", store.shown());
            }
            Err(error) if !progress.is_failing => {
                tracing::warn!(
                    "cannot save a checkpoint in {}: {error}; after a restart, what is read from now \
                     on is read again",
                    store.shown()
                );
            }
            _ => {}
        }
        progress.is_failing = saved.is_err();
    }
}

/// What the thread has.
struct Worker<W> {
    store: Arc<Store>,
    shared: Arc<Shared>,
    wait: W,
}

impl<W: Fn(u64, Instant) -> bool> Worker<W> {
    fn work(self) {
        while let Some(pending) = self.shared.next() {
            let (taken, is_durable) = (pending.taken, self.keep(pending));
            let mut progress = self.shared.lock();
            progress.is_working = false;
            if is_durable {
                (progress.durable, progress.as_good_as) = (taken, taken);
            }
            self.shared.changed.notify_all();
        }
    }

    fn keep(&self, pending: Pending) -> bool {
        if !self.wait_for_output(pending.output_position) {
            self.store.discard();
            return false;
        }
        let published = self.store.publish(pending.checkpoint);
        let is_durable = published.is_ok();
        if !is_durable {
            self.store.discard();
        }
        self.shared.note(&self.store, published);
        is_durable
    }

    fn wait_for_output(&self, position: u64) -> bool {
        loop {
            let step_ends = Instant::now() + WAIT_STEP;
            if (self.wait)(position, step_ends) {
                return true;
            }
            // It may have given up early.
            let mut progress = self.shared.lock();
            loop {
                let now = Instant::now();
                if progress.is_over(now) {
                    return false;
                }
                if now >= step_ends {
                    break;
                }
                let waited = self.shared.changed.wait_timeout(progress, step_ends - now);
                progress = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::super::sample::{Sample, identity, sample};
    use super::super::store::find_current;
    use super::*;

    /// Far more than anything here takes.
    const LONG: Duration = Duration::from_secs(20);

    /// An output that has come so far.
    #[derive(Clone, Default)]
    struct Output(Arc<AtomicU64>);

    impl Output {
        fn comes_to(&self, position: u64) {
            self.0.store(position, Ordering::SeqCst);
        }
    }

    fn keeper(dir: &Path, output: &Output) -> Keeper {
        let (store, _) = Store::open::<Sample>(dir, identity(), SystemTime::now()).expect("opened");
        let output = output.clone();
        Keeper::start(store, Instant::now(), move |position, _| {
            output.0.load(Ordering::SeqCst) >= position
        })
        .expect("started")
    }

    /// Takes a checkpoint that is known by its name.
    fn take(keeper: &mut Keeper, position: u64, name: &str) {
        keeper.take(position, |writer| writer.state(&sample(name)));
    }

    fn wait_until_idle(keeper: &Keeper) {
        assert!(keeper.shared.wait_until_idle(Instant::now() + LONG));
    }

    /// The name of the checkpoint that is durable.
    fn durable(dir: &Path) -> Option<Sample> {
        let found = find_current(dir).expect("looked into");
        assert_eq!(found.problems, [""; 0]);
        found.current?.1.read_state().expect("whole")
    }

    fn has_new(dir: &Path) -> bool {
        dir.join("checkpoint.new").exists()
    }

    #[test]
    fn a_checkpoint_is_durable_when_the_output_has_come_so_far() {
        let dir = tempfile::tempdir().expect("created");
        let dir = dir.path();
        let output = Output::default();
        let mut keeper = keeper(dir, &output);
        take(&mut keeper, 10, "first");
        output.comes_to(9);
        thread::sleep(2 * WAIT_STEP); // time enough to do wrong
        assert_eq!(durable(dir), None);
        assert!(has_new(dir));
        output.comes_to(10);
        wait_until_idle(&keeper);
        assert_eq!(durable(dir), Some(sample("first")));
    }

    #[test]
    fn one_is_under_way_at_a_time() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        let mut keeper = keeper(dir.path(), &output);
        let soon = Instant::now() + LONG;
        assert!(keeper.is_due(soon, true));
        take(&mut keeper, 10, "first");
        assert!(!keeper.is_due(soon, true));
        take(&mut keeper, 20, "second");
        output.comes_to(20);
        wait_until_idle(&keeper);
        assert_eq!(durable(dir.path()), Some(sample("first")));
        assert!(keeper.is_due(soon, true));
    }

    #[test]
    fn a_stop_saves_a_last_time() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        output.comes_to(20);
        let mut keeper = keeper(dir.path(), &output);
        take(&mut keeper, 10, "first");
        let deadline = Instant::now() + LONG;
        assert!(keeper.finish(deadline, 20, |writer| writer.state(&sample("last"))));
        assert_eq!(durable(dir.path()), Some(sample("last")));
        // The directory is free again.
        let opened = Store::open::<Sample>(dir.path(), identity(), SystemTime::now());
        assert!(opened.is_ok());
    }

    #[test]
    fn a_stop_does_not_pass_what_is_not_delivered() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        output.comes_to(10);
        let mut first = keeper(dir.path(), &output);
        take(&mut first, 10, "delivered");
        wait_until_idle(&first);
        let deadline = Instant::now() + 2 * WAIT_STEP;
        assert!(!first.finish(deadline, 11, |writer| writer.state(&sample("lost"))));
        assert_eq!(durable(dir.path()), Some(sample("delivered")));
        // Nor does one that is under way, and then nothing more is written.
        let deadline = Instant::now() + LONG;
        while Store::open::<Sample>(dir.path(), identity(), SystemTime::now()).is_err() {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(1));
        }
        let mut second = keeper(dir.path(), &output);
        take(&mut second, 11, "lost");
        let deadline = Instant::now() + 2 * WAIT_STEP;
        assert!(!second.finish(deadline, 12, |_| panic!("no use in writing")));
        assert_eq!(durable(dir.path()), Some(sample("delivered")));
    }

    #[test]
    fn what_is_under_way_at_a_stop_is_kept_if_it_is_delivered() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        let mut keeper = keeper(dir.path(), &output);
        take(&mut keeper, 10, "first");
        output.comes_to(10);
        let deadline = Instant::now() + Duration::from_secs(1);
        assert!(!keeper.finish(deadline, 11, |writer| writer.state(&sample("last"))));
        assert_eq!(durable(dir.path()), Some(sample("first")));
    }

    #[test]
    fn a_keeper_that_is_dropped_gives_up() {
        let dir = tempfile::tempdir().expect("created");
        let mut keeper = keeper(dir.path(), &Output::default());
        take(&mut keeper, 10, "first");
        let shared = Arc::clone(&keeper.shared);
        drop(keeper);
        assert!(shared.wait_until_idle(Instant::now() + LONG));
        assert_eq!(durable(dir.path()), None);
        assert!(!has_new(dir.path()));
    }

    #[test]
    fn an_output_that_gives_up_early_is_not_asked_all_the_time() {
        let dir = tempfile::tempdir().expect("created");
        let (store, _) =
            Store::open::<Sample>(dir.path(), identity(), SystemTime::now()).expect("opened");
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let mut keeper = Keeper::start(store, Instant::now(), move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            false
        })
        .expect("started");
        take(&mut keeper, 1, "never");
        thread::sleep(4 * WAIT_STEP);
        assert!(asked.load(Ordering::SeqCst) <= 5);
    }

    #[test]
    fn failures_are_survived_and_the_age_tells() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        output.comes_to(100);
        let mut keeper = keeper(dir.path(), &output);
        let freshness = keeper.freshness();
        let started = keeper.shared.lock().durable;
        // In the way of the file: it cannot be created and not be removed.
        let obstacle = dir.path().join("checkpoint.new");
        fs::create_dir(&obstacle).expect("created");
        for _ in 0..2 {
            take(&mut keeper, 1, "first");
            assert!(keeper.shared.lock().is_failing);
        }
        let soon = Instant::now() + LONG;
        assert_eq!(freshness.age(soon), soon - started);
        assert!(keeper.is_due(soon, false), "it is tried again");
        fs::remove_dir(&obstacle).expect("removed");
        // The same at the keeper's end.
        let current = dir.path().join("checkpoint");
        fs::create_dir(&current).expect("created");
        fs::create_dir(dir.path().join("checkpoint.old")).expect("created");
        fs::write(dir.path().join("checkpoint.old/full"), "").expect("written");
        take(&mut keeper, 1, "second");
        wait_until_idle(&keeper);
        assert!(keeper.shared.lock().is_failing);
        assert!(!has_new(dir.path()));
        assert!(keeper.is_due(soon, false), "it is tried again");
        fs::remove_dir(&current).expect("removed");
        take(&mut keeper, 1, "third");
        wait_until_idle(&keeper);
        assert!(!keeper.shared.lock().is_failing);
        assert!(freshness.age(soon) < soon - started);
        assert_eq!(durable(dir.path()), Some(sample("third")));
    }

    #[test]
    fn what_cannot_be_written_is_not_kept() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        let mut keeper = keeper(dir.path(), &output);
        keeper.take(0, |writer| {
            writer.state(&sample("half"))?;
            Err(io::ErrorKind::StorageFull.into())
        });
        wait_until_idle(&keeper);
        assert_eq!(durable(dir.path()), None);
        assert!(!has_new(dir.path()));
    }

    #[test]
    fn where_nothing_changes_little_is_written() {
        let dir = tempfile::tempdir().expect("created");
        let mut keeper = keeper(dir.path(), &Output::default());
        let start = Instant::now();
        assert!(!keeper.is_due(start, true));
        assert!(keeper.is_due(start + INTERVAL, false), "there is none yet");
        take(&mut keeper, 0, "first");
        wait_until_idle(&keeper);
        let soon = Instant::now() + LONG;
        assert!(keeper.is_due(soon, true));
        assert!(!keeper.is_due(soon, false));
        assert_eq!(keeper.freshness().age(soon), Duration::ZERO);
        assert!(keeper.is_due(soon + UNCHANGED_INTERVAL, false));
    }

    #[test]
    fn dear_checkpoints_are_taken_less_often() {
        let start = Instant::now();
        for (cost, pause) in [(0, 1_000), (100, 1_000), (101, 1_010), (1_500, 15_000)] {
            let mut pace = Pace::new(start);
            pace.took(start, Duration::from_millis(cost));
            assert_eq!(pace.due - start, Duration::from_millis(cost + pause));
        }
    }

    #[test]
    fn saves_that_follow_each_other_leave_only_known_names() {
        let dir = tempfile::tempdir().expect("created");
        let output = Output::default();
        output.comes_to(u64::MAX);
        let mut keeper = keeper(dir.path(), &output);
        let stop = Arc::new(AtomicBool::new(false));
        let watcher = {
            let (dir, stop) = (dir.path().to_owned(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut last = 0;
                while !stop.load(Ordering::SeqCst) {
                    let Some(sample) = durable(&dir) else {
                        assert_eq!(last, 0, "there was one already");
                        continue;
                    };
                    let number: u64 = sample.name.parse().expect("a number");
                    // One that was current a moment ago may be found, no older one.
                    assert!(number + 1 >= last, "{number} after {last}");
                    last = number;
                }
                last
            })
        };
        const SAVES: u64 = 100;
        for number in 1..=SAVES {
            take(&mut keeper, number, &number.to_string());
            wait_until_idle(&keeper);
        }
        stop.store(true, Ordering::SeqCst);
        assert!(watcher.join().expect("no state was missing or damaged") <= SAVES);
        assert_eq!(durable(dir.path()), Some(sample(SAVES.to_string())));
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .expect("listed")
            .map(|entry| entry.expect("read").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["checkpoint", "checkpoint.old", "lock"]);
    }
}
