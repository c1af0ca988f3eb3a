//! Sockets that systemd bound and passes on (`LISTEN_FDS`).

use std::os::fd::AsFd;

use listenfd::ListenFd;
use nix::sys::socket::{getsockopt, sockopt};

use super::bind::RawListener;
use super::fault::Fault;

/// The first descriptor that is passed on; see `sd_listen_fds(3)`.
const FIRST_DESCRIPTOR: usize = 3;

/// Sockets to listen on that were bound before the process started.
#[derive(Debug, Default)]
pub(crate) struct Activated {
    listeners: Vec<RawListener>,
    faults: Vec<Fault>,
}

impl Activated {
    /// Takes the sockets, once, and the variables that tell of them out of the environment. To be
    /// called before there is a second thread, which could be reading the environment.
    pub(crate) fn from_environment() -> Activated {
        let mut passed = ListenFd::from_env();
        let mut activated = Activated::default();
        for index in 0..passed.len() {
            match take(&mut passed, index) {
                Ok(listener) => activated.listeners.push(listener),
                Err(problem) => {
                    let place = format!("descriptor {}", FIRST_DESCRIPTOR + index);
                    activated.faults.push(Fault::new(place, problem));
                }
            }
        }
        activated
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.faults.is_empty()
    }

    /// The sockets, and what is wrong with the others.
    pub(super) fn into_parts(self) -> (Vec<RawListener>, Vec<Fault>) {
        (self.listeners, self.faults)
    }

    #[cfg(test)]
    pub(super) fn of(listeners: Vec<RawListener>) -> Activated {
        Activated {
            listeners,
            faults: Vec::new(),
        }
    }
}

fn take(passed: &mut ListenFd, index: usize) -> Result<RawListener, String> {
    const UNUSABLE: &str = "what was passed there is no stream socket of TCP or Unix";
    if let Ok(Some(listener)) = passed.take_unix_listener(index) {
        return listening(listener, RawListener::Unix);
    }
    match passed.take_tcp_listener(index) {
        Ok(Some(listener)) => listening(listener, RawListener::Tcp),
        _ => Err(UNUSABLE.to_owned()),
    }
}

/// systemd passes connections instead where the unit says `Accept=yes`.
fn listening<L: AsFd>(listener: L, raw: fn(L) -> RawListener) -> Result<RawListener, String> {
    match getsockopt(&listener, sockopt::AcceptConn) {
        Ok(true) => Ok(raw(listener)),
        Ok(false) => Err("the socket does not listen; the unit needs Accept=no".to_owned()),
        Err(error) => Err(format!("cannot ask what was passed there: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    /// Set where the test runs once more, as a service that systemd activated.
    const AS_SERVICE: &str = "TRACECHECK_TEST_AS_SERVICE";

    /// What the service sees of the one descriptor that is passed to it.
    fn seen_by_a_service(passed: &OwnedFd) -> String {
        let flags = FdFlag::empty();
        fcntl(passed, FcntlArg::F_SETFD(flags)).unwrap();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg("source::listen::activated::tests::as_a_service")
            .env("LISTEN_FDS", "1")
            .env("LISTEN_FDS_FIRST_FD", passed.as_raw_fd().to_string())
            .env_remove("LISTEN_PID")
            .env(AS_SERVICE, "yes")
            .output()
            .unwrap();
        fcntl(passed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let seen = text.lines().find_map(|line| line.split_once("seen: "));
        seen.map(|(_, seen)| seen.to_owned()).unwrap_or_default()
    }

    #[test]
    #[allow(clippy::print_stdout)]
    fn as_a_service() {
        if env::var_os(AS_SERVICE).is_none() {
            return;
        }
        let (listeners, faults) = Activated::from_environment().into_parts();
        let problems: Vec<_> = faults.into_iter().map(|fault| fault.problem).collect();
        println!("seen: {listeners:?} {problems:?}");
    }

    #[test]
    fn what_systemd_passes_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let tcp_6 = TcpListener::bind("[::1]:0");
        let unix = UnixListener::bind(dir.path().join("s")).unwrap();
        let (pair, _other) = UnixStream::pair().unwrap();
        let file = File::create(dir.path().join("f")).unwrap();
        for (passed, expected) in [
            (tcp.into(), "[Tcp("),
            (unix.into(), "[Unix("),
            (connected.into(), "Accept=no"),
            (pair.into(), "Accept=no"),
            (file.into(), "no stream socket"),
        ] {
            let seen = seen_by_a_service(&passed);
            assert!(seen.contains(expected), "{seen}");
        }
        if let Ok(tcp_6) = tcp_6 {
            let seen = seen_by_a_service(&tcp_6.into());
            assert!(seen.contains("[Tcp("), "{seen}");
        }
    }
}
