//! The file of a Unix socket: what may be replaced, who may connect, and when it is removed.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, lchown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket,
};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};

use super::address::MAX_UNIX_PATH_BYTES;
use super::permissions::Owner;
use crate::emit::sanitise::visible;

/// Longest wait for another start in the same directory; each takes a few system calls.
const MAX_TURN_WAIT: Duration = Duration::from_secs(1);
/// How often it is tried whether the other start is done.
const TURN_POLL: Duration = Duration::from_millis(5);

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) owner: Option<Owner>,
}

/// The file of a socket that this process bound. Its inode cannot be used again for another file
/// while the socket is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Removes the file when it is dropped, which must be before the socket is closed.
#[derive(Debug)]
pub(super) struct Removal(SocketFile);

/// Binds a socket to the path and listens on it. A socket there that nobody listens on is
/// replaced; anything else that is there stays, and is an error.
pub(super) fn listen_at(path: &Path, access: Access) -> Result<(UnixListener, Removal), String> {
    let turn = take_turn(path);
    make_way(path)?;
    let socket = new_socket(SockFlag::empty()).map_err(|error| cannot("make a socket", error))?;
    let address = UnixAddr::new(path).map_err(|error| cannot("bind", error))?;
    bind(socket.as_raw_fd(), &address).map_err(|error| cannot("bind", error))?;
    let file = SocketFile::at(path).map_err(|error| format!("cannot find what was bound: {error}"));
    let removal = Removal(file?);
    // Before `listen` nobody can connect, whatever the umask lets through.
    removal.0.admit(access)?;
    listen(&socket, Backlog::MAXCONN).map_err(|error| cannot("listen", error))?;
    drop(turn);
    Ok((UnixListener::from(socket), removal))
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<SocketFile> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(SocketFile {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Whether the path still leads to this socket.
    pub(super) fn is_in_place(&self) -> bool {
        SocketFile::at(&self.path).is_ok_and(|found| found == *self)
    }

    /// Lets those connect, and nobody else.
    pub(super) fn admit(&self, access: Access) -> Result<(), String> {
        if let Some(Owner { user, group }) = access.owner {
            lchown(&self.path, user, group)
                .map_err(|error| format!("cannot set its owner: {error}"))?;
        }
        let mode = Mode::from_bits_truncate(access.mode);
        fchmodat(AT_FDCWD, &self.path, mode, FchmodatFlags::NoFollowSymlink)
            .map_err(|error| cannot("set its mode", error))
    }
}

impl fmt::Display for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        write!(f, "unix:{}", visible(&path, MAX_UNIX_PATH_BYTES))
    }
}

impl Removal {
    pub(super) fn file(&self) -> &SocketFile {
        &self.0
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let turn = take_turn(&self.0.path);
        if self.0.is_in_place()
            && let Err(error) = fs::remove_file(&self.0.path)
        {
            tracing::warn!("{}: cannot remove the socket: {error}", self.0);
        }
        drop(turn);
    }
}

/// Orders starts and stops in one directory, so that nobody takes a socket for left behind that
/// another process has bound and does not listen on yet. Without it things go wrong only in that
/// instant; whoever keeps the lock to himself must not keep us from working.
fn take_turn(path: &Path) -> Option<File> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let directory = File::open(parent).ok()?;
    let give_up = Instant::now() + MAX_TURN_WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(TryLockError::WouldBlock) if Instant::now() < give_up => thread::sleep(TURN_POLL),
            Err(_) => return None,
        }
    }
}

/// Removes a socket that nobody listens on; anything else that is there is an error.
fn make_way(path: &Path) -> Result<(), String> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot look there: {error}")),
    };
    if !metadata.file_type().is_socket() {
        return Err("there is something else than a socket already".to_owned());
    }
    match try_connect(path) {
        Err(Errno::ECONNREFUSED) => fs::remove_file(path)
            .map_err(|error| format!("cannot remove the socket that was left behind: {error}")),
        Err(Errno::ENOENT) => Ok(()),
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => {
            Err("somebody listens there already".to_owned())
        }
        Err(error) => Err(format!(
            "there is a socket already, and no telling whether somebody listens: {error}"
        )),
    }
}

fn try_connect(path: &Path) -> nix::Result<()> {
    // A full backlog must not hold up the start.
    let socket = new_socket(SockFlag::SOCK_NONBLOCK)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
}

fn new_socket(flags: SockFlag) -> nix::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

fn cannot(what: &str, error: Errno) -> String {
    format!("cannot {what}: {}", io::Error::from(error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use nix::unistd::{getgid, getuid};

    use super::*;

    const PRIVATE: Access = Access {
        mode: 0o660,
        owner: None,
    };

    /// Leaves a socket that nobody listens on. A program that another test starts has a copy of
    /// every descriptor for an instant.
    fn leave_behind(path: &Path) {
        drop(UnixListener::bind(path).unwrap());
        while UnixStream::connect(path).is_ok() {
            thread::yield_now();
        }
        assert!(path.exists());
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_a_living_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        leave_behind(&path);

        let (listener, removal) = listen_at(&path, PRIVATE).unwrap();
        UnixStream::connect(&path).unwrap();
        let refused = listen_at(&path, PRIVATE).unwrap_err();
        assert_eq!(refused, "somebody listens there already");
        UnixStream::connect(&path).unwrap();

        drop(removal);
        assert!(!path.exists());
        drop(listener);
    }

    #[test]
    fn what_is_no_stream_socket_left_behind_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "precious").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for path in [&path, &link, &dir.path().to_owned()] {
            let refused = listen_at(path, PRIVATE).unwrap_err();
            assert!(
                refused.contains("something else than a socket"),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), b"precious");

        let path = dir.path().join("datagrams");
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        let refused = listen_at(&path, PRIVATE).unwrap_err();
        assert_eq!(refused, "somebody listens there already");

        let refused = listen_at(&dir.path().join("no/s"), PRIVATE).unwrap_err();
        assert!(refused.contains("No such file"), "{refused}");
    }

    #[test]
    fn one_with_a_full_backlog_is_alive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        listen(&listener, Backlog::new(0).unwrap()).unwrap();
        let mut waiting = Vec::new();
        while let Ok(socket) = {
            let socket = new_socket(SockFlag::SOCK_NONBLOCK).unwrap();
            connect(socket.as_raw_fd(), &UnixAddr::new(&path).unwrap()).map(|()| socket)
        } {
            waiting.push(socket);
        }
        let refused = listen_at(&path, PRIVATE).unwrap_err();
        assert_eq!(refused, "somebody listens there already");
    }

    #[test]
    fn mode_and_owner_are_as_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let owner = Some(Owner {
            user: Some(getuid().as_raw()),
            group: Some(getgid().as_raw()),
        });
        for wanted in [0o660, 0o600, 0o777, 0o000] {
            let access = Access {
                mode: wanted,
                owner,
            };
            let (_listener, _removal) = listen_at(&path, access).unwrap();
            assert_eq!(mode(&path), wanted);
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert_eq!(metadata.uid(), getuid().as_raw());
            assert_eq!(metadata.gid(), getgid().as_raw());
        }
    }

    #[test]
    fn nothing_is_left_when_the_owner_cannot_be_set() {
        if getuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let owner = Some(Owner {
            user: Some(0),
            group: None,
        });
        let refused = listen_at(&path, Access { mode: 0o660, owner }).unwrap_err();
        assert!(refused.contains("cannot set its owner"), "{refused}");
        assert!(!path.exists());
    }

    #[test]
    fn what_took_its_place_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (_listener, removal) = listen_at(&path, PRIVATE).unwrap();
        assert!(removal.file().is_in_place());
        fs::remove_file(&path).unwrap();
        let (_other, _removal) = listen_at(&path, PRIVATE).unwrap();
        assert!(!removal.file().is_in_place());
        drop(removal);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn of_two_that_start_at_once_one_wins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        for _ in 0..20 {
            leave_behind(&path);
            let start = std::sync::Barrier::new(2);
            let both = thread::scope(|scope| {
                let bind = || {
                    start.wait();
                    listen_at(&path, PRIVATE)
                };
                let (one, two) = (scope.spawn(bind), scope.spawn(bind));
                [one.join().unwrap(), two.join().unwrap()]
            });
            assert_eq!(both.iter().flatten().count(), 1, "{both:?}");
            UnixStream::connect(&path).unwrap();
        }
    }
}
