//! What waits to be written: a bounded queue between the engine and the writer's thread.
//!
//! The engine [pushes](OutputQueue::push) chunks and waits while too much is queued, so that a slow
//! reader of the output slows down the reading of traces; nothing is dropped while the run goes on.
//! The writer [takes](OutputQueue::next) one chunk after another. What has been written is counted
//! in chunks, so that a checkpoint can wait for [everything before it](OutputQueue::wait_written).
//!
//! Whatever the engine does here ends: with the output, with an error of the writer, or at a
//! deadline. While it waits it counts on its beat, which tells a watchdog that it is alive.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stop::Stop;

/// Most bytes that wait, with those being written: sixteen times what the emitter collects and a
/// pipe holds, so that neither side waits for the other at each write. More would not be faster, and
/// would have to be written out within the time that a stop has. Only a chunk that is larger by
/// itself exceeds it, and then is the only one.
pub(crate) const MAX_QUEUED_BYTES: usize = 1024 * 1024;

/// A full queue takes more again once it has come down to this: whoever waited then has work to do
/// for a while, and does not wake up for each chunk.
const LOW_BYTES: usize = MAX_QUEUED_BYTES / 2;

/// How often the engine counts on its beat and looks for a stop while it waits: below a second, the
/// shortest watchdog that anybody sets.
const BEAT: Duration = Duration::from_millis(200);

/// How long one write may take before the output counts as stalled: a reader of 1 KB/s takes a
/// piece for a pipe in four seconds, and is slow and not stalled.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Bytes that are written together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Whole lines, or one journal entry.
    pub(crate) bytes: Vec<u8>,
    /// How many events they are.
    pub(crate) events: u32,
    /// When what they tell of was read, if that is to be measured.
    pub(crate) arrived: Option<Instant>,
}

/// What was not written when the queue was [closed](OutputQueue::close).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remaining {
    /// How many events. Of a chunk that was written in part, those are left out that the writer
    /// could tell were written.
    pub(crate) events: u64,
    /// How many bytes.
    pub(crate) bytes: u64,
}

/// See the [module's documentation](self).
pub(crate) struct OutputQueue {
    state: Mutex<State>,
    /// There is something to write, or there will be nothing more.
    filled: Condvar,
    /// The queue has come down to [`LOW_BYTES`], or the output has failed.
    room: Condvar,
    /// A chunk was written, or the output has failed.
    progress: Condvar,
    stop: Stop,
    beat: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Chunk>,
    /// What is waiting, and what of the chunk being written is left.
    queued: Remaining,
    /// What was pushed and not taken, because a stop or an error came first.
    refused: Remaining,
    /// Chunks that were pushed, and those of them that were written and flushed.
    pushed: u64,
    written: u64,
    /// What is left of the chunk being written, and when the write that goes on was begun.
    in_writing: Option<(Remaining, Instant)>,
    /// Nothing more will be pushed.
    closed: bool,
    /// Nothing more is to be written.
    abandoned: bool,
    failure: Option<Failure>,
}

/// An error that can be returned any number of times.
enum Failure {
    Os(i32),
    Other(io::ErrorKind, String),
}

impl Failure {
    fn new(error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(code) => Failure::Os(code),
            None => Failure::Other(error.kind(), error.to_string()),
        }
    }

    fn to_error(&self) -> io::Error {
        match self {
            Failure::Os(code) => io::Error::from_raw_os_error(*code),
            Failure::Other(kind, text) => io::Error::new(*kind, text.clone()),
        }
    }
}

/// The engine's side.
impl OutputQueue {
    /// An empty queue. Waiting ends at the deadline of `stop` at the latest, and counts on `beat`.
    pub(crate) fn new(stop: Stop, beat: Arc<AtomicU64>) -> Self {
        OutputQueue {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Condvar::new(),
            progress: Condvar::new(),
            stop,
            beat,
        }
    }

    /// Hands over a chunk, and waits until there is room for it.
    ///
    /// Fails with [`io::ErrorKind::TimedOut`] at the deadline of the stop, and with the writer's
    /// error once there is one; a reader that went away is [`io::ErrorKind::BrokenPipe`]. The chunk
    /// then counts as [remaining](OutputQueue::close).
    pub(crate) fn push(&self, mut chunk: Chunk) -> io::Result<()> {
        // The limit counts bytes, not what a buffer had room for.
        chunk.bytes.shrink_to_fit();
        let size = Remaining::of(&chunk);
        let mut state = self.lock();
        let has_room = |state: &State| {
            let queued = state.queued.bytes;
            queued == 0 || queued + size.bytes <= MAX_QUEUED_BYTES as u64
        };
        while state.failure.is_none() && !state.closed && !has_room(&state) {
            match self.wait(&self.room, state, None) {
                Ok(after) => state = after,
                Err(error) => {
                    self.lock().refused.add(size);
                    return Err(error);
                }
            }
        }
        let refusal = match &state.failure {
            Some(failure) => Some(failure.to_error()),
            None if state.closed => Some(io::Error::other("the output was closed")),
            None => None,
        };
        if let Some(error) = refusal {
            state.refused.add(size);
            return Err(error);
        }
        state.queued.add(size);
        state.pushed += 1;
        state.waiting.push_back(chunk);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// The writer's error, once there is one. Whoever has nothing to push asks for it now and then:
    /// the output may fail long after the push that it fails for.
    pub(crate) fn check(&self) -> io::Result<()> {
        match &self.lock().failure {
            Some(failure) => Err(failure.to_error()),
            None => Ok(()),
        }
    }

    /// How many chunks were pushed so far.
    pub(crate) fn position(&self) -> u64 {
        self.lock().pushed
    }

    /// How many chunks were written and flushed so far, the first ones pushed.
    #[cfg(test)]
    pub(super) fn written(&self) -> u64 {
        self.lock().written
    }

    /// Waits until everything before `position` was written. Fails as [`OutputQueue::push`] does,
    /// and at `deadline` too.
    pub(crate) fn wait_written(&self, position: u64, deadline: Instant) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            if state.written >= position {
                return Ok(());
            }
            if let Some(failure) = &state.failure {
                return Err(failure.to_error());
            }
            state = self.wait(&self.progress, state, Some(deadline))?;
        }
    }

    /// How many bytes and events are queued, with what is being written.
    pub(crate) fn queued(&self) -> Remaining {
        self.lock().queued
    }

    /// Since when the writer has been in one write, if for longer than [`STALLED_AFTER`].
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        let (_, since) = self.lock().in_writing?;
        (since.elapsed() >= STALLED_AFTER).then_some(since)
    }

    /// Lets the writer write what is queued until `deadline`, and takes away the rest. Whatever is
    /// pushed from now on is refused.
    ///
    /// Returns what was not written, with what could not be pushed before. A chunk that a write
    /// still hangs in counts to it, and may reach the reader after all.
    pub(crate) fn close(&self, deadline: Instant) -> Remaining {
        let mut state = self.lock();
        state.closed = true;
        self.filled.notify_all();
        while state.queued != Remaining::default() && state.failure.is_none() {
            let Some(left) = left_until(deadline) else {
                break;
            };
            state = self.wait_for(&self.progress, state, left);
        }
        state.abandoned = true;
        state.waiting.clear();
        let mut remaining = mem::take(&mut state.refused);
        remaining.add(state.queued);
        drop(state);
        self.filled.notify_all();
        remaining
    }

    /// Waits a beat for `condvar`, or until one of the deadlines, which is an error.
    fn wait<'q>(
        &self,
        condvar: &Condvar,
        state: MutexGuard<'q, State>,
        deadline: Option<Instant>,
    ) -> io::Result<MutexGuard<'q, State>> {
        let deadline = deadline.into_iter().chain(self.stop.deadline()).min();
        let left = deadline.map_or(Some(BEAT), left_until);
        let left = left.ok_or_else(|| {
            let message = "the output did not take everything in time";
            io::Error::new(io::ErrorKind::TimedOut, message)
        })?;
        Ok(self.wait_for(condvar, state, left))
    }

    /// Waits a beat, or for `left` if that is less.
    fn wait_for<'q>(
        &self,
        condvar: &Condvar,
        state: MutexGuard<'q, State>,
        left: Duration,
    ) -> MutexGuard<'q, State> {
        self.beat.fetch_add(1, Ordering::Relaxed);
        let (state, _) = condvar
            .wait_timeout(state, left.min(BEAT))
            .unwrap_or_else(PoisonError::into_inner);
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is whole before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side. Each chunk that [`OutputQueue::next`] gives is followed by any number of
/// [`OutputQueue::note_piece`] and one of [`OutputQueue::note_written`] and [`OutputQueue::fail`].
impl OutputQueue {
    /// The next chunk, once there is one; `None` when there will be none.
    pub(super) fn next(&self) -> Option<Chunk> {
        let mut state = self.lock();
        loop {
            if state.abandoned || state.failure.is_some() {
                return None;
            }
            if let Some(chunk) = state.waiting.pop_front() {
                state.in_writing = Some((Remaining::of(&chunk), Instant::now()));
                return Some(chunk);
            }
            if state.closed {
                return None;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// So much of the chunk is out, and the next write begins. Whether there should be one.
    pub(super) fn note_piece(&self, events: u64, bytes: usize) -> bool {
        let mut state = self.lock();
        if let Some((left, since)) = &mut state.in_writing {
            let bytes = (bytes as u64).min(left.bytes);
            let events = events.min(left.events);
            let piece = Remaining { events, bytes };
            left.subtract(piece);
            *since = Instant::now();
            state.queued.subtract(piece);
        }
        !state.abandoned
    }

    /// The whole chunk is out.
    pub(super) fn note_written(&self) {
        let mut state = self.lock();
        if let Some((left, _)) = state.in_writing.take() {
            state.queued.subtract(left);
        }
        state.written += 1;
        let low = state.queued.bytes <= LOW_BYTES as u64;
        drop(state);
        if low {
            self.room.notify_all();
        }
        self.progress.notify_all();
    }

    /// Nothing more can be written. Whoever pushes hears it from now on; what comes after the first
    /// error does not count.
    pub(super) fn fail(&self, error: &io::Error) {
        let mut state = self.lock();
        state.failure.get_or_insert_with(|| Failure::new(error));
        state.in_writing = None;
        state.waiting = VecDeque::new();
        drop(state);
        self.room.notify_all();
        self.progress.notify_all();
    }

    /// Waits, and says whether the chunk should still be written.
    pub(super) fn pause(&self, duration: Duration) -> bool {
        let until = Instant::now() + duration;
        let mut state = self.lock();
        while !state.abandoned {
            let Some(left) = left_until(until) else {
                return true;
            };
            let (after, _) = self
                .filled
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state = after;
        }
        false
    }
}

impl Remaining {
    fn of(chunk: &Chunk) -> Remaining {
        Remaining {
            events: chunk.events.into(),
            bytes: chunk.bytes.len() as u64,
        }
    }

    fn add(&mut self, other: Remaining) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Remaining) {
        self.events -= other.events;
        self.bytes -= other.bytes;
    }
}

/// How long it is until then; `None` where that is over.
fn left_until(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// How long anything may take before a test fails.
    const DEADLINE: Duration = Duration::from_secs(20);

    fn queue() -> (OutputQueue, Stop, Arc<AtomicU64>) {
        let (stop, beat) = (Stop::default(), Arc::default());
        (
            OutputQueue::new(stop.clone(), Arc::clone(&beat)),
            stop,
            beat,
        )
    }

    fn chunk(bytes: usize) -> Chunk {
        Chunk {
            bytes: vec![b'x'; bytes],
            events: 2,
            arrived: None,
        }
    }

    fn remaining(events: u64, bytes: usize) -> Remaining {
        let bytes = bytes as u64;
        Remaining { events, bytes }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[test]
    fn chunks_come_out_in_order_and_are_counted() {
        let (queue, ..) = queue();
        for bytes in [3, 4] {
            queue.push(chunk(bytes)).expect("room");
        }
        assert_eq!((queue.position(), queue.written()), (2, 0));
        assert_eq!(queue.queued(), remaining(4, 7));
        assert_eq!(queue.next(), Some(chunk(3)));
        assert_eq!(queue.queued(), remaining(4, 7));
        assert!(queue.note_piece(1, 2));
        assert_eq!(queue.queued(), remaining(3, 5));
        queue.note_written();
        assert_eq!(queue.queued(), remaining(2, 4));
        assert_eq!(queue.written(), 1);
        queue.wait_written(1, soon()).expect("written");
        let error = queue.wait_written(2, soon()).expect_err("not written");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_full_queue_waits_until_there_is_room() {
        let (queue, _, beat) = queue();
        queue.push(chunk(MAX_QUEUED_BYTES)).expect("empty");
        thread::scope(|scope| {
            let pushing = scope.spawn(|| queue.push(chunk(1)));
            let started = Instant::now();
            while beat.load(Ordering::Relaxed) < 3 {
                assert!(started.elapsed() < DEADLINE, "it waits without a beat");
                thread::yield_now();
            }
            assert!(!pushing.is_finished());
            assert_eq!(queue.position(), 1);
            queue.next().expect("pushed");
            queue.note_written();
            pushing.join().expect("no panic").expect("room");
        });
        assert_eq!(queue.queued(), remaining(2, 1));
    }

    #[test]
    fn a_chunk_beyond_the_limit_goes_alone() {
        let (queue, stop, _) = queue();
        queue.push(chunk(2 * MAX_QUEUED_BYTES)).expect("empty");
        stop.end_by(Instant::now());
        queue.push(chunk(1)).expect_err("full");
        queue.next().expect("pushed");
        queue.note_written();
        queue.push(chunk(2 * MAX_QUEUED_BYTES)).expect("empty");
    }

    #[test]
    fn a_push_gives_up_at_the_deadline_and_counts_as_remaining() {
        let (queue, stop, _) = queue();
        queue.push(chunk(MAX_QUEUED_BYTES)).expect("empty");
        let deadline = soon();
        thread::scope(|scope| {
            let pushing = scope.spawn(|| queue.push(chunk(5)));
            // A stop that comes while it waits counts too.
            stop.end_by(deadline);
            let error = pushing.join().expect("no panic").expect_err("full");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
        assert!(Instant::now() >= deadline);
        assert_eq!(
            queue.close(deadline),
            remaining(4, MAX_QUEUED_BYTES + 5),
            "what waits, and what was refused"
        );
        assert_eq!(queue.next(), None, "abandoned");
    }

    #[test]
    fn a_stop_does_not_hinder_what_has_room() {
        let (queue, stop, _) = queue();
        stop.end_by(Instant::now());
        queue.push(chunk(5)).expect("room");
    }

    #[test]
    fn an_error_is_remembered_and_wakes_whoever_waits() {
        let (queue, ..) = queue();
        queue.push(chunk(MAX_QUEUED_BYTES)).expect("empty");
        let deadline = Instant::now() + DEADLINE;
        thread::scope(|scope| {
            let pushing = scope.spawn(|| queue.push(chunk(1)));
            let waiting = scope.spawn(|| queue.wait_written(1, deadline));
            queue.next().expect("pushed");
            queue.fail(&io::Error::from_raw_os_error(32));
            queue.fail(&io::Error::other("the second"));
            for waited in [pushing, waiting] {
                let error = waited.join().expect("no panic").expect_err("failed");
                assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
                assert_eq!(error.raw_os_error(), Some(32));
            }
        });
        for _ in 0..2 {
            for result in [queue.push(chunk(1)), queue.check()] {
                let error = result.expect_err("failed");
                assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            }
        }
        assert_eq!(queue.next(), None);
        let left = queue.close(deadline);
        assert_eq!(left, remaining(8, MAX_QUEUED_BYTES + 3));
        assert!(Instant::now() < deadline, "nothing can come any more");
    }

    #[test]
    fn a_closed_queue_is_written_out_and_takes_no_more() {
        let (queue, ..) = queue();
        queue.push(chunk(1)).expect("room");
        queue.push(chunk(2)).expect("room");
        thread::scope(|scope| {
            scope.spawn(|| {
                while queue.next().is_some() {
                    queue.note_written();
                }
            });
            let left = queue.close(Instant::now() + DEADLINE);
            assert_eq!(left, Remaining::default());
        });
        queue.push(chunk(1)).expect_err("closed");
    }

    #[test]
    fn what_of_a_chunk_was_written_does_not_remain() {
        let (queue, ..) = queue();
        queue.push(chunk(10)).expect("room");
        queue.push(chunk(20)).expect("room");
        queue.next().expect("pushed");
        assert!(queue.note_piece(1, 4));
        assert_eq!(queue.close(Instant::now()), remaining(3, 26));
        assert!(!queue.note_piece(1, 6), "nobody wants the rest");
        assert!(!queue.pause(DEADLINE));
    }

    #[test]
    fn only_a_write_that_lasts_is_a_stall() {
        let (queue, ..) = queue();
        assert_eq!(queue.stalled_since(), None);
        queue.push(chunk(10)).expect("room");
        queue.next().expect("pushed");
        assert_eq!(queue.stalled_since(), None);
        let since = Instant::now() - STALLED_AFTER;
        queue.lock().in_writing.as_mut().expect("begun").1 = since;
        assert_eq!(queue.stalled_since(), Some(since));
        queue.note_piece(0, 1);
        assert_eq!(queue.stalled_since(), None, "it goes on");
        queue.note_written();
        assert_eq!(queue.stalled_since(), None);
    }
}
