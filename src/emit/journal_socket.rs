//! The socket of the systemd journal.
//!
//! Each entry is a datagram to the journal's path, on a socket that is not connected: a journal that
//! was restarted is met again by itself. While it is away or full the entry waits and is tried again,
//! for as long as it takes; that is what makes nothing be lost, and what stalls the queue before it.
//! An entry that is too large for a datagram goes as a sealed file in memory, whose descriptor the
//! datagram carries.
//!
//! What the journal then does is its own affair: of a service it drops entries beyond a rate
//! (`RateLimitBurst=` in journald.conf, 10,000 in 30 s by default, more where the disk has room) and
//! says so in a message of its own. `LogRateLimitIntervalSec=0` in the service's unit turns that off.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg, setsockopt, sockopt};

use super::sanitise::visible;

/// Where the journal listens.
pub(crate) const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Larger entries go as files. The kernel copies a datagram into one block of memory, which is hard
/// to find when it is much larger; findings are nearly always smaller.
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;

/// How much may wait in the socket: as much as systemd's own clients ask for. The kernel gives what it
/// allows.
const SEND_BUFFER_BYTES: usize = 8 * 1024 * 1024;

/// How long one send waits for a full journal before the end is looked for.
const SEND_TIMEOUT: Duration = Duration::from_millis(200);

/// How long to wait for a journal that is away, at first and at most. A restart takes a fraction of a
/// second; trying once a second costs nothing.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// An outage that lasts is told; a restart is not.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Longest path in a diagnostic; a socket's cannot be longer.
const MAX_PATH_CHARS: usize = 108;

/// What no reader of a file in memory has to fear then: that it changes under its eyes.
fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SEAL
}

/// Sends entries to the journal.
pub(crate) struct JournalSocket {
    socket: UnixDatagram,
    path: PathBuf,
    address: UnixAddr,
    outage: Option<Outage>,
}

/// The journal does not take entries.
struct Outage {
    since: Instant,
    is_told: bool,
}

/// What to do about an entry that was not sent.
enum Remedy {
    /// The send itself has waited.
    TryAgain,
    Wait,
    GiveUp,
}

impl JournalSocket {
    /// A socket for the journal that listens at `path`, now or later.
    pub(crate) fn new(path: &Path) -> io::Result<JournalSocket> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        // Both are wishes: without them less fits at a time. The second is for root only.
        let _ = setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER_BYTES);
        let _ = setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES);
        Ok(JournalSocket {
            socket,
            path: path.to_owned(),
            address: UnixAddr::new(path)?,
            outage: None,
        })
    }

    /// Sends one entry, however long it takes.
    ///
    /// Between two attempts `pause` is called; if that gives false the entry is given up, and so does
    /// this. An error is one that no waiting cures.
    pub(super) fn send(
        &mut self,
        entry: &[u8],
        mut pause: impl FnMut(Duration) -> bool,
    ) -> io::Result<bool> {
        let mut wait = FIRST_WAIT;
        loop {
            let Err(error) = self.try_send(entry) else {
                self.note_sent();
                return Ok(true);
            };
            let to_wait = match remedy(error) {
                Remedy::TryAgain => Duration::ZERO,
                Remedy::Wait => wait,
                Remedy::GiveUp => return Err(self.describe(error)),
            };
            self.note_outage(error);
            if !pause(to_wait) {
                return Ok(false);
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn try_send(&self, entry: &[u8]) -> Result<(), Errno> {
        if entry.len() > MAX_DATAGRAM_BYTES {
            return self.send_file(entry);
        }
        match self.send_message(&[IoSlice::new(entry)], &[]) {
            Err(Errno::EMSGSIZE | Errno::ENOBUFS) => self.send_file(entry),
            result => result,
        }
    }

    fn send_file(&self, entry: &[u8]) -> Result<(), Errno> {
        let file = sealed_file(entry)?;
        self.send_message(&[], &[ControlMessage::ScmRights(&[file.as_raw_fd()])])
    }

    fn send_message(
        &self,
        payload: &[IoSlice<'_>],
        control: &[ControlMessage<'_>],
    ) -> Result<(), Errno> {
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_NOSIGNAL);
        sendmsg(socket, payload, control, flags, Some(&self.address)).map(drop)
    }

    fn note_outage(&mut self, error: Errno) {
        let outage = self.outage.get_or_insert_with(|| Outage {
            since: Instant::now(),
            is_told: false,
        });
        if !outage.is_told && outage.since.elapsed() >= TOLD_AFTER {
            outage.is_told = true;
            let error = self.describe(error);
            tracing::warn!("{error}: events wait until it takes them");
        }
    }

    fn note_sent(&mut self) {
        let Some(outage) = self.outage.take() else {
            return;
        };
        if outage.is_told {
            let (path, seconds) = (self.shown_path(), outage.since.elapsed().as_secs());
            // As loud as the warning, so that whoever has read it knows that it is over.
            tracing::warn!("the journal at {path} takes events again, after {seconds} s");
        }
    }

    fn describe(&self, error: Errno) -> io::Error {
        let error = io::Error::from(error);
        let message = format!(
            "cannot write to the journal at {}: {error}",
            self.shown_path()
        );
        io::Error::new(error.kind(), message)
    }

    fn shown_path(&self) -> String {
        visible(&self.path.to_string_lossy(), MAX_PATH_CHARS).to_string()
    }
}

fn remedy(error: Errno) -> Remedy {
    match error {
        // Full, or a signal.
        Errno::EAGAIN | Errno::EINTR => Remedy::TryAgain,
        // Away.
        Errno::ENOENT
        | Errno::ECONNREFUSED
        | Errno::ECONNRESET
        | Errno::ENOTCONN
        | Errno::EPIPE
        // Somebody has too little memory or too few descriptors.
        | Errno::ENOBUFS
        | Errno::ENOMEM
        | Errno::EMFILE
        | Errno::ENFILE
        | Errno::ETOOMANYREFS => Remedy::Wait,
        _ => Remedy::GiveUp,
    }
}

/// A file in memory that holds the entry and can never change.
fn sealed_file(entry: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"tracecheck", flags)?);
    file.write_all(entry)
        .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals()))?;
    Ok(file.into())
}

/// A journal for tests: it takes what is sent to it, in whichever of the two ways.
#[cfg(test)]
pub(super) mod listen {
    use std::io::IoSliceMut;
    use std::io::Read;

    use nix::sys::socket::{ControlMessageOwned, recvmsg};

    use super::*;

    /// How long anything may take before a test fails.
    pub(in crate::emit) const DEADLINE: Duration = Duration::from_secs(20);

    pub(in crate::emit) struct Journal {
        socket: UnixDatagram,
    }

    pub(in crate::emit) struct Received {
        pub(in crate::emit) entry: Vec<u8>,
        pub(in crate::emit) as_file: bool,
    }

    impl Journal {
        pub(in crate::emit) fn at(path: &Path) -> Journal {
            let socket = UnixDatagram::bind(path).expect("a free path");
            socket.set_read_timeout(Some(DEADLINE)).expect("set");
            Journal { socket }
        }

        /// The next entry. A file must be sealed.
        #[track_caller]
        pub(in crate::emit) fn receive(&self) -> Received {
            let mut payload = vec![0; 2 * MAX_DATAGRAM_BYTES];
            let mut control = nix::cmsg_space!([i32; 4]);
            let (bytes, files) = {
                let mut slices = [IoSliceMut::new(&mut payload)];
                let message = recvmsg::<UnixAddr>(
                    self.socket.as_raw_fd(),
                    &mut slices,
                    Some(&mut control),
                    MsgFlags::MSG_CMSG_CLOEXEC,
                )
                .expect("a datagram within the deadline");
                assert!(!message.flags.contains(MsgFlags::MSG_TRUNC));
                let files: Vec<i32> = message
                    .cmsgs()
                    .expect("room for them")
                    .flat_map(|message| match message {
                        ControlMessageOwned::ScmRights(files) => files,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                (message.bytes, files)
            };
            payload.truncate(bytes);
            let as_file = !files.is_empty();
            if as_file {
                assert_eq!((bytes, files.len()), (0, 1));
                payload = read_sealed(files[0]);
            }
            Received {
                entry: payload,
                as_file,
            }
        }
    }

    /// Opened anew by its number, which nothing here may take for a descriptor that it owns.
    fn read_sealed(number: i32) -> Vec<u8> {
        let mut file = File::open(format!("/proc/self/fd/{number}")).expect("received");
        let found = fcntl(&file, FcntlArg::F_GET_SEALS).expect("a file in memory");
        assert!(SealFlag::from_bits_retain(found).contains(seals()));
        let mut entry = Vec::new();
        file.read_to_end(&mut entry).expect("readable");
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::listen::{DEADLINE, Journal};
    use super::*;

    fn entry(number: usize) -> Vec<u8> {
        format!("MESSAGE={number}\n").into_bytes()
    }

    /// An entry of so many bytes.
    fn entry_of(bytes: usize) -> Vec<u8> {
        format!("MESSAGE={}\n", "x".repeat(bytes - 9)).into_bytes()
    }

    /// Sends an entry and waits as long as it takes, within a test's deadline.
    fn send(socket: &mut JournalSocket, entry: &[u8]) {
        let started = Instant::now();
        let sent = socket.send(entry, |wait| {
            thread::sleep(wait);
            started.elapsed() < DEADLINE
        });
        assert!(sent.expect("no lasting error"), "not sent in time");
    }

    #[test]
    fn small_entries_are_datagrams_and_large_ones_sealed_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("J");
        let journal = Journal::at(&path);
        let mut socket = JournalSocket::new(&path).expect("a socket");
        for (bytes, as_file) in [
            (9, false),
            (MAX_DATAGRAM_BYTES, false),
            (MAX_DATAGRAM_BYTES + 1, true),
            (400_000, true),
        ] {
            let sent = entry_of(bytes);
            send(&mut socket, &sent);
            let received = journal.receive();
            assert!(received.entry == sent, "{bytes} bytes");
            assert_eq!(received.as_file, as_file, "{bytes} bytes");
        }
    }

    #[test]
    fn what_the_socket_calls_too_large_goes_as_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("J");
        let journal = Journal::at(&path);
        let mut socket = JournalSocket::new(&path).expect("a socket");
        setsockopt(&socket.socket, sockopt::SndBuf, &4608).expect("set");
        for number in 0..3 {
            let sent = entry_of(20_000 + number);
            send(&mut socket, &sent);
            let received = journal.receive();
            assert!(received.entry == sent && received.as_file);
        }
    }

    #[test]
    fn a_journal_that_comes_back_gets_everything_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("J");
        let mut socket = JournalSocket::new(&path).expect("a socket");
        let journal = Journal::at(&path);
        send(&mut socket, &entry(0));
        assert_eq!(journal.receive().entry, entry(0));
        drop(journal);
        for name_stays in [true, false] {
            if !name_stays {
                fs::remove_file(&path).expect("the journal's");
            }
            let (told, away) = channel();
            thread::scope(|scope| {
                let socket = &mut socket;
                scope.spawn(move || {
                    let started = Instant::now();
                    for number in 1..=20 {
                        let sent = socket.send(&entry(number), |wait| {
                            let _ = told.send(());
                            thread::sleep(wait);
                            started.elapsed() < DEADLINE
                        });
                        assert!(sent.expect("no lasting error"), "not sent in time");
                    }
                });
                away.recv_timeout(DEADLINE).expect("an attempt in vain");
                let _ = fs::remove_file(&path);
                let journal = Journal::at(&path);
                for number in 1..=20 {
                    assert_eq!(journal.receive().entry, entry(number));
                }
            });
            assert!(socket.outage.is_none());
        }
    }

    #[test]
    fn a_full_journal_gets_everything_once_it_reads() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("J");
        let journal = Journal::at(&path);
        let mut socket = JournalSocket::new(&path).expect("a socket");
        let (told, full) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let started = Instant::now();
                for number in 0..2_000 {
                    let sent = socket.send(&entry(number), |_| {
                        let _ = told.send(());
                        started.elapsed() < DEADLINE
                    });
                    assert!(sent.expect("no lasting error"));
                }
            });
            full.recv_timeout(DEADLINE).expect("it has a limit");
            for number in 0..2_000 {
                assert_eq!(journal.receive().entry, entry(number));
            }
        });
    }

    #[test]
    fn an_entry_is_given_up_when_nobody_wants_it_any_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut socket = JournalSocket::new(&directory.path().join("J")).expect("a socket");
        let mut waits = Vec::new();
        let sent = socket.send(&entry(0), |wait| {
            waits.push(wait.as_millis());
            waits.len() < 9
        });
        assert!(!sent.expect("no lasting error"));
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    }

    #[test]
    fn what_no_waiting_cures_is_an_error_that_names_the_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stream");
        let _listener = UnixListener::bind(&path).expect("a free path");
        let mut socket = JournalSocket::new(&path).expect("a socket");
        let error = socket.send(&entry(0), |_| true).expect_err("a stream");
        assert!(error.to_string().contains("stream"), "{error}");
        assert!(JournalSocket::new(Path::new(&"x".repeat(200))).is_err());
    }
}
