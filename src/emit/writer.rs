//! The thread that empties the [queue](OutputQueue) to standard output or to the journal.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use memchr::{memchr, memchr_iter, memrchr};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::journal_socket::JournalSocket;
use super::queue::{Chunk, OutputQueue};

/// Most bytes that a pipe takes in one piece or not at all: Linux's `PIPE_BUF`. POSIX promises less,
/// and Linux has always had a page.
const PIPE_BYTES: usize = 4096;

/// How often a writer looks for the end while it waits for a descriptor that does not block.
const LOOK_MILLIS: u16 = 200;

/// Where events go.
pub(crate) enum Target {
    /// Standard output, or what stands for it.
    Stream(Stream),
    /// The journal, a datagram a chunk.
    Journal(JournalSocket),
}

/// Starts the thread. It ends when the queue is closed and empty, or when nothing more can be
/// written, and then the queue knows the error.
///
/// `on_written` is called for each chunk that tells when it arrived: how long that was ago when the
/// chunk was written, and its events.
pub(crate) fn start(
    queue: Arc<OutputQueue>,
    target: Target,
    on_written: impl FnMut(Duration, u32) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let end = End(queue);
            if let Err(error) = write_chunks(&end.0, target, on_written) {
                end.0.fail(&error);
            }
        })?;
    Ok(())
}

/// Tells the queue that nobody takes from it any more, whatever ends the thread.
struct End(Arc<OutputQueue>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.fail(&io::Error::other("the writer has ended"));
    }
}

fn write_chunks(
    queue: &OutputQueue,
    mut target: Target,
    mut on_written: impl FnMut(Duration, u32),
) -> io::Result<()> {
    while let Some(chunk) = queue.next() {
        let written = match &mut target {
            Target::Stream(stream) => stream.write_chunk(&chunk, queue)?,
            Target::Journal(socket) => socket.send(&chunk.bytes, |wait| queue.pause(wait))?,
        };
        if !written {
            return Ok(());
        }
        queue.note_written();
        if let Some(arrived) = chunk.arrived {
            on_written(arrived.elapsed(), chunk.events);
        }
    }
    Ok(())
}

/// A descriptor that takes bytes in order.
///
/// A regular file gets each chunk whole. A pipe, a socket or a terminal may block at any byte, and
/// the process may have to end then; it gets as many whole lines at a time as go into the piece that
/// a pipe takes whole or not at all, so that the last line that its reader sees is not cut. Only a
/// line that is longer than such a piece may be.
pub(crate) struct Stream {
    out: File,
    is_regular: bool,
}

impl Stream {
    /// Standard output, past the buffer that the standard library puts before it.
    pub(crate) fn stdout() -> io::Result<Stream> {
        let owned = io::stdout().as_fd().try_clone_to_owned()?;
        Stream::new(owned)
    }

    fn new(out: OwnedFd) -> io::Result<Stream> {
        let out = File::from(out);
        let is_regular = out.metadata()?.is_file();
        Ok(Stream { out, is_regular })
    }

    /// Whether it was written; not if the queue was abandoned meanwhile.
    fn write_chunk(&mut self, chunk: &Chunk, queue: &OutputQueue) -> io::Result<bool> {
        let mut rest = &*chunk.bytes;
        if self.is_regular {
            return self.write_piece(rest, queue);
        }
        let lines_are_events = count_lines(rest) == u64::from(chunk.events);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(rest));
            if !self.write_piece(piece, queue)? {
                return Ok(false);
            }
            let events = if lines_are_events {
                count_lines(piece)
            } else {
                0
            };
            if !queue.note_piece(events, piece.len()) {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    fn write_piece(&mut self, mut piece: &[u8], queue: &OutputQueue) -> io::Result<bool> {
        while !piece.is_empty() {
            match self.out.write(piece) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => piece = &piece[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Whoever shares the descriptor may have set it so.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_until_writable()?;
                    if !queue.pause(Duration::ZERO) {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn wait_until_writable(&self) -> io::Result<()> {
        let mut waited_for = [PollFd::new(self.out.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut waited_for, PollTimeout::from(LOOK_MILLIS)) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// How many bytes of whole lines to write next: as many as a pipe takes in one piece, or else one
/// line.
fn piece_bytes(bytes: &[u8]) -> usize {
    if bytes.len() <= PIPE_BYTES {
        return bytes.len();
    }
    let (head, tail) = bytes.split_at(PIPE_BYTES);
    match memrchr(b'\n', head) {
        Some(at) => at + 1,
        None => memchr(b'\n', tail).map_or(bytes.len(), |at| PIPE_BYTES + at + 1),
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{PipeReader, Read, pipe};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    use super::super::journal_socket::listen::{DEADLINE, Journal};
    use super::super::queue::{MAX_QUEUED_BYTES, Remaining};
    use super::super::stop::Stop;
    use super::*;

    struct Rig {
        queue: Arc<OutputQueue>,
        stop: Stop,
        beat: Arc<AtomicU64>,
        latencies: Arc<Mutex<Vec<(Duration, u32)>>>,
    }

    fn rig(target: Target) -> Rig {
        let (stop, beat) = (Stop::default(), Arc::default());
        let queue = Arc::new(OutputQueue::new(stop.clone(), Arc::clone(&beat)));
        let latencies = Arc::new(Mutex::new(Vec::new()));
        let measured = Arc::clone(&latencies);
        start(Arc::clone(&queue), target, move |latency, events| {
            let mut latencies = measured.lock().expect("not poisoned");
            latencies.push((latency, events));
        })
        .expect("a thread");
        Rig {
            queue,
            stop,
            beat,
            latencies,
        }
    }

    fn stream(out: impl Into<OwnedFd>) -> Target {
        Target::Stream(Stream::new(out.into()).expect("open"))
    }

    fn piped() -> (PipeReader, Rig) {
        let (reader, writer) = pipe().expect("a pipe");
        (reader, rig(stream(writer)))
    }

    fn line(number: usize) -> String {
        let padding = ".".repeat(number % 700);
        format!("{{\"event\":\"finding\",\"line\":{number},\"message\":\"{padding}\"}}\n")
    }

    fn chunk(lines: std::ops::Range<usize>) -> Chunk {
        Chunk {
            events: lines.len() as u32,
            bytes: lines.map(line).collect::<String>().into_bytes(),
            arrived: None,
        }
    }

    fn later() -> Instant {
        Instant::now() + DEADLINE
    }

    fn wait_for(what: &str, condition: impl Fn() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < DEADLINE, "{what}");
            thread::yield_now();
        }
    }

    /// How many whole lines stand there, each the next.
    #[track_caller]
    fn whole_lines(text: &[u8]) -> usize {
        let text = std::str::from_utf8(text).expect("UTF-8");
        for (number, found) in text.split_inclusive('\n').enumerate() {
            assert!(found == line(number), "line {number}: {found:?}");
        }
        text.lines().count()
    }

    #[test]
    fn pieces_are_whole_lines() {
        let long = "x".repeat(PIPE_BYTES);
        for (text, bytes) in [
            (String::new(), 0),
            ("a\nb\n".into(), 4),
            (format!("{}\n", &long[1..]), PIPE_BYTES),
            (format!("a\n{long}\n"), 2),
            (format!("a\n{}\nb\n", &long[3..]), PIPE_BYTES),
            (format!("{long}\nb\n"), PIPE_BYTES + 1),
            (format!("{long}{long}\nb\n"), 2 * PIPE_BYTES + 1),
            (format!("{long}{long}"), 2 * PIPE_BYTES),
        ] {
            assert_eq!(piece_bytes(text.as_bytes()), bytes);
        }
    }

    #[test]
    fn a_slow_reader_gets_everything_in_order_in_bounded_memory() {
        const CHUNKS: usize = 80;
        let (mut reader, rig) = piped();
        let lines = 100;
        thread::scope(|scope| {
            let queue = &rig.queue;
            scope.spawn(move || {
                for number in 0..CHUNKS {
                    let chunk = chunk(number * lines..(number + 1) * lines);
                    queue.push(chunk).expect("the reader reads");
                    assert!(queue.queued().bytes <= MAX_QUEUED_BYTES as u64);
                }
                assert_eq!(queue.close(later()), Remaining::default());
            });
            let full = MAX_QUEUED_BYTES as u64 - 100_000;
            wait_for("the queue fills up", || rig.queue.queued().bytes > full);
            let read = read_lines(&mut reader, CHUNKS * lines);
            assert_eq!(whole_lines(&read), CHUNKS * lines);
        });
        assert_eq!(rig.queue.written(), CHUNKS as u64);
        assert!(rig.beat.load(Ordering::Relaxed) > 0);
    }

    /// Reads at least so many lines, little by little.
    fn read_lines(reader: &mut PipeReader, lines: usize) -> Vec<u8> {
        let (mut read, mut some, mut ends) = (Vec::new(), [0; 1000], 0);
        while ends < lines as u64 {
            let bytes = reader.read(&mut some).expect("readable");
            read.extend_from_slice(&some[..bytes]);
            ends += count_lines(&some[..bytes]);
        }
        read
    }

    #[test]
    fn a_blocked_pipe_ends_at_the_deadline_without_a_cut_line() {
        let (mut reader, rig) = piped();
        let (mut pushed, mut refused) = (0, None);
        while refused.is_none() {
            if pushed >= 2_000 {
                rig.stop.end_by(Instant::now() + Duration::from_millis(50));
            }
            refused = rig.queue.push(chunk(pushed..pushed + 20)).err();
            pushed += 20;
            assert!(pushed < 20_000, "it never gets full");
        }
        let error = refused.expect("it gives up");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let remaining = rig.queue.close(Instant::now());
        // The writer still hangs in the pipe, as it would when the process ends. What the pipe holds
        // now is all that the reader will get.
        let expected = pushed - remaining.events as usize;
        let mut read = read_lines(&mut reader, expected);
        // The one piece that hung went through as soon as there was room, and nothing after it.
        reader.read_to_end(&mut read).expect("the writer has ended");
        let read = whole_lines(&read);
        assert!(
            (expected..expected + 100).contains(&read),
            "{read} {expected}"
        );
    }

    #[test]
    fn a_process_that_ends_in_a_blocked_write_leaves_whole_lines() {
        // A descriptor that does not block stands for the end of the process: what the kernel does
        // not take at once is never written.
        let (mut reader, writer) = pipe().expect("a pipe");
        let writer = OwnedFd::from(writer);
        nix::fcntl::fcntl(
            &writer,
            nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
        )
        .expect("set");
        let rig = rig(stream(writer));
        let lines = 1_500;
        let bytes = chunk(0..lines).bytes.len() as u64;
        rig.queue.push(chunk(0..lines)).expect("empty");
        wait_for("the pipe fills up", || {
            bytes - rig.queue.queued().bytes > 50_000
        });
        let remaining = rig.queue.close(Instant::now() + Duration::from_millis(50));
        wait_for("the writer ends", || Arc::strong_count(&rig.queue) == 1);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("the writer has ended");
        assert_eq!(whole_lines(&read), lines - remaining.events as usize);
        assert_eq!(read.len() as u64, bytes - remaining.bytes);
    }

    #[test]
    fn a_descriptor_that_does_not_block_gets_everything() {
        let (mut reader, writer) = pipe().expect("a pipe");
        let writer = OwnedFd::from(writer);
        nix::fcntl::fcntl(
            &writer,
            nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
        )
        .expect("set");
        let rig = rig(stream(writer));
        rig.queue.push(chunk(0..1_000)).expect("empty");
        let full = |left: Remaining| left.bytes < chunk(0..1_000).bytes.len() as u64 - 50_000;
        wait_for("the pipe fills up", || full(rig.queue.queued()));
        let mut read = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| reader.read_to_end(&mut read).expect("readable"));
            assert_eq!(rig.queue.close(later()), Remaining::default());
        });
        assert_eq!(whole_lines(&read), 1_000);
    }

    #[test]
    fn a_reader_that_went_away_is_a_broken_pipe_for_good() {
        let (reader, rig) = piped();
        drop(reader);
        rig.queue.push(chunk(0..1)).expect("room");
        for _ in 0..2 {
            let error = rig.queue.wait_written(1, later()).expect_err("closed");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            let error = rig.queue.push(chunk(1..2)).expect_err("closed");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        assert_eq!(rig.queue.close(later()).events, 3);
    }

    #[test]
    fn files_and_sockets_have_each_event_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out");
        let file = File::create(&path).expect("created");
        let (mut peer, socket) = UnixStream::pair().expect("a pair");
        let rigs = [rig(stream(file)), rig(stream(OwnedFd::from(socket)))];
        for rig in rigs {
            rig.queue.push(chunk(0..1)).expect("room");
            rig.queue.wait_written(1, later()).expect("written");
            rig.queue.push(chunk(1..200)).expect("room");
            assert_eq!(rig.queue.close(later()), Remaining::default());
            wait_for("the writer ends", || Arc::strong_count(&rig.queue) == 1);
        }
        assert_eq!(whole_lines(&fs::read(&path).expect("readable")), 200);
        let mut read = Vec::new();
        peer.shutdown(Shutdown::Write).expect("open");
        peer.read_to_end(&mut read).expect("the writer has ended");
        assert_eq!(whole_lines(&read), 200);
    }

    #[test]
    fn latency_is_told_of_what_arrived() {
        let (_reader, rig) = piped();
        let arrived = Instant::now();
        rig.queue.push(chunk(0..3)).expect("room");
        rig.queue
            .push(Chunk {
                arrived: Some(arrived),
                ..chunk(3..5)
            })
            .expect("room");
        assert_eq!(rig.queue.close(later()), Remaining::default());
        wait_for("the writer ends", || Arc::strong_count(&rig.queue) == 1);
        let latencies = rig.latencies.lock().expect("not poisoned");
        let [(latency, events)] = latencies[..] else {
            panic!("{latencies:?}");
        };
        assert_eq!(events, 2);
        assert!(latency <= arrived.elapsed());
    }

    #[test]
    fn a_writer_that_panics_fails_the_queue() {
        let (_reader, writer) = pipe().expect("a pipe");
        let queue = Arc::new(OutputQueue::new(Stop::default(), Arc::default()));
        start(Arc::clone(&queue), stream(writer), |_, _| {
            panic!("on purpose")
        })
        .expect("a thread");
        let arrived = Some(Instant::now());
        let first = Chunk {
            arrived,
            ..chunk(0..1)
        };
        queue.push(first).expect("room");
        queue.wait_written(2, later()).expect_err("it has ended");
    }

    #[test]
    fn the_journal_stalls_the_queue_while_it_is_away_and_a_stop_ends_that() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("J");
        let socket = || Target::Journal(JournalSocket::new(&path).expect("a socket"));
        let entry = |number: usize| Chunk {
            bytes: format!("MESSAGE={number}\n").into_bytes(),
            events: 1,
            arrived: None,
        };
        let rig_of = rig(socket());
        for number in 0..5 {
            rig_of.queue.push(entry(number)).expect("room");
        }
        rig_of
            .queue
            .wait_written(1, Instant::now() + Duration::from_millis(50))
            .expect_err("there is none");
        let journal = Journal::at(&path);
        for number in 0..5 {
            assert_eq!(journal.receive().entry, entry(number).bytes);
        }
        rig_of.queue.wait_written(5, later()).expect("all of it");
        drop(journal);
        for number in 5..8 {
            rig_of.queue.push(entry(number)).expect("room");
        }
        let remaining = rig_of
            .queue
            .close(Instant::now() + Duration::from_millis(50));
        assert_eq!(remaining.events, 3);
        wait_for("the writer ends", || Arc::strong_count(&rig_of.queue) == 1);
    }
}
