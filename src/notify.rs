//! What the service manager is told: the protocol of `sd_notify(3)`, as datagrams.
//!
//! Nothing here waits for the manager. What it has no room for is sent again with the next message,
//! but for keepalives and status lines, which the next one replaces.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;

use crate::emit::sanitise::visible;
use crate::health::Health;

/// How often the status line may change: often enough for a person who looks.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// Keepalives come three times in the interval, so that two may be late; but a manager that asks for
/// more than a hundred a second has made a mistake.
const MIN_KEEPALIVE: Duration = Duration::from_millis(10);
/// Messages that the manager had no room for. There are a handful in a run, and two for each reload.
const MAX_UNSENT: usize = 16;
/// Longest address in a diagnostic; no valid one is longer.
const MAX_ADDRESS_CHARS: usize = 108;

/// The way to the service manager, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    manager: Option<Manager>,
}

#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    unsent: Mutex<VecDeque<String>>,
    has_failed: AtomicBool,
}

impl Notifier {
    /// Where `NOTIFY_SOCKET` leads. An address that is neither a path nor an abstract name leads
    /// nowhere, which is said once.
    pub(crate) fn from_env(lookup: impl Fn(&str) -> Option<OsString>) -> Notifier {
        let manager = lookup("NOTIFY_SOCKET").and_then(|address| {
            let opened = Manager::open(&address);
            opened
                .inspect_err(|error| {
                    let address = address.to_string_lossy();
                    let address = visible(&address, MAX_ADDRESS_CHARS);
                    tracing::warn!("NOTIFY_SOCKET `{address}` is not used: {error}");
                })
                .ok()
        });
        Notifier { manager }
    }

    /// Every source is bound and state is loaded; also ends a reload.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// A reload begins; [`Notifier::ready`] must follow.
    pub(crate) fn reloading(&self) {
        match monotonic_microseconds() {
            Some(now) => self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now}")),
            None => self.tell("RELOADING=1"),
        }
    }

    /// The daemon was told to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Sends keepalives, if the manager wants them and as long as nothing is stuck, and a line that
    /// says what is being done. It has to be stopped last: until all is written the manager waits
    /// for keepalives.
    pub(crate) async fn keep_up(
        &self,
        watchdog: Option<Duration>,
        health: &Health,
        status: impl Fn(Instant) -> String,
        stop: CancellationToken,
    ) {
        if self.manager.is_none() {
            return;
        }
        let mut pulse = Pulse::new(watchdog, Instant::now());
        loop {
            let now = Instant::now();
            let message = pulse.due(now, health, &status);
            self.retry();
            if let Some(message) = message
                && !self.send(&message)
            {
                pulse.last_status.clear();
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(pulse.next().into()) => {}
            }
        }
    }

    /// Sends what must arrive, after all that must arrive before.
    fn tell(&self, message: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(message);
        }
    }

    /// Sends what may be lost; whether it was not.
    fn send(&self, message: &str) -> bool {
        self.manager
            .as_ref()
            .is_none_or(|manager| manager.send(message))
    }

    fn retry(&self) {
        if let Some(manager) = &self.manager {
            manager.retry(&mut manager.unsent());
        }
    }
}

impl Manager {
    fn open(address: &OsString) -> io::Result<Manager> {
        let address = match address.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            [b'@', name @ ..] if !name.is_empty() => SocketAddr::from_abstract_name(name)?,
            _ => {
                let expected =
                    "expected an absolute path, or `@` and the name of an abstract socket";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, expected));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Manager {
            socket,
            address,
            unsent: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    fn tell(&self, message: &str) {
        let mut unsent = self.unsent();
        if unsent.len() == MAX_UNSENT {
            unsent.pop_front();
        }
        unsent.push_back(message.to_owned());
        self.retry(&mut unsent);
    }

    fn retry(&self, unsent: &mut VecDeque<String>) {
        while let Some(message) = unsent.front() {
            if !self.send(message) {
                return;
            }
            unsent.pop_front();
        }
    }

    /// Whether there is nothing more to be done about the message: it was sent, or cannot be.
    fn send(&self, message: &str) -> bool {
        match self.socket.send_to_addr(message.as_bytes(), &self.address) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::warn!("the service manager cannot be told anything: {error}");
                }
                true
            }
        }
    }

    fn unsent(&self) -> MutexGuard<'_, VecDeque<String>> {
        // A panic in between leaves a message there that was sent; it does no harm twice.
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the manager wants to hear that the daemon is alive: the interval after which it gives
/// it up. `WATCHDOG_PID` may be absent; if it names another process, the interval is not for us.
/// What cannot be understood counts as absent.
pub(crate) fn watchdog(
    lookup: impl Fn(&str) -> Option<OsString>,
    own_pid: u32,
) -> Option<Duration> {
    let number = |text: OsString| text.to_str()?.parse::<u64>().ok();
    if let Some(pid) = lookup("WATCHDOG_PID")
        && number(pid) != Some(own_pid.into())
    {
        return None;
    }
    let microseconds = number(lookup("WATCHDOG_USEC")?)?;
    // The greatest number stands for no end.
    let is_interval = microseconds > 0 && microseconds < u64::MAX;
    is_interval.then(|| Duration::from_micros(microseconds))
}

/// When to send what.
struct Pulse {
    keepalives: Option<Keepalives>,
    next_status: Instant,
    last_status: String,
}

struct Keepalives {
    /// A part that is silent for so long is stuck.
    max_age: Duration,
    interval: Duration,
    next: Instant,
    /// The part of which it was said that it is stuck.
    stuck: Option<&'static str>,
}

impl Pulse {
    fn new(watchdog: Option<Duration>, now: Instant) -> Pulse {
        Pulse {
            keepalives: watchdog.map(|max_age| Keepalives {
                max_age,
                interval: (max_age / 3).max(MIN_KEEPALIVE),
                next: now,
                stuck: None,
            }),
            next_status: now,
            last_status: String::new(),
        }
    }

    /// The message that is due, if any.
    fn due(
        &mut self,
        now: Instant,
        health: &Health,
        status: impl Fn(Instant) -> String,
    ) -> Option<String> {
        let keepalive = self.keepalive(now, health);
        let lines: Vec<String> = keepalive
            .map(str::to_owned)
            .into_iter()
            .chain(self.status(now, status))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// When [`Pulse::due`] has to be asked again.
    fn next(&self) -> Instant {
        match &self.keepalives {
            Some(keepalives) => keepalives.next.min(self.next_status),
            None => self.next_status,
        }
    }

    fn keepalive(&mut self, now: Instant, health: &Health) -> Option<&'static str> {
        let keepalives = self.keepalives.as_mut()?;
        if now < keepalives.next {
            return None;
        }
        keepalives.next = now + keepalives.interval;
        let stuck = health.stuck(now, keepalives.max_age);
        if stuck != keepalives.stuck
            && let Some(part) = stuck
        {
            tracing::error!("{part} is stuck: the service manager gets no more keepalives");
        }
        keepalives.stuck = stuck;
        stuck.is_none().then_some("WATCHDOG=1")
    }

    fn status(&mut self, now: Instant, status: impl Fn(Instant) -> String) -> Option<String> {
        if now < self.next_status {
            return None;
        }
        self.next_status = now + STATUS_INTERVAL;
        let status = status(now);
        if status == self.last_status {
            return None;
        }
        self.last_status = status;
        Some(format!("STATUS={}", self.last_status))
    }
}

/// The clock by which the manager tells this reload from the one before.
fn monotonic_microseconds() -> Option<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    let microseconds = Duration::from(now).as_micros();
    u64::try_from(microseconds).ok()
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::io::Write;
    use std::process;
    use std::sync::Arc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    /// After which a test gives up.
    const DEADLINE: Duration = Duration::from_secs(20);

    /// A service manager.
    struct Listener {
        socket: UnixDatagram,
        _directory: tempfile::TempDir,
        notifier: Notifier,
    }

    impl Listener {
        /// One that listens at a path.
        fn new() -> Listener {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("notify");
            let socket = UnixDatagram::bind(&path).expect("it is free");
            socket.set_read_timeout(Some(DEADLINE)).expect("not zero");
            Listener {
                socket,
                _directory: directory,
                notifier: notifier(path),
            }
        }

        fn receive(&self) -> String {
            receive(&self.socket)
        }
    }

    fn receive(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).expect("a message comes");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    fn notifier(address: impl Into<OsString>) -> Notifier {
        let address = address.into();
        Notifier::from_env(|name| (name == "NOTIFY_SOCKET").then(|| address.clone()))
    }

    fn nothing_to_say(_: Instant) -> String {
        String::new()
    }

    /// What is written with `tracing` meanwhile.
    fn diagnostics<T: Debug>(act: impl FnOnce() -> T) -> (T, String) {
        #[derive(Clone, Default)]
        struct Buffer(Arc<Mutex<Vec<u8>>>);
        impl Write for Buffer {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("nobody panics").write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let result = tracing::subscriber::with_default(subscriber, act);
        let text = buffer.0.lock().expect("nobody panics").clone();
        (result, String::from_utf8(text).expect("text"))
    }

    #[test]
    fn the_manager_hears_the_stages_of_a_run() {
        let listener = Listener::new();
        listener.notifier.ready();
        assert_eq!(listener.receive(), "READY=1");
        let before = monotonic_microseconds().expect("there is a clock");
        listener.notifier.reloading();
        let reloading = listener.receive();
        let (state, clock) = reloading.split_once('\n').expect("two lines");
        assert_eq!(state, "RELOADING=1");
        let clock = clock.strip_prefix("MONOTONIC_USEC=").expect("its name");
        let clock: u64 = clock.parse().expect("a number");
        assert!((before..=before + 60_000_000).contains(&clock));
        listener.notifier.ready();
        assert_eq!(listener.receive(), "READY=1");
        listener.notifier.stopping();
        assert_eq!(listener.receive(), "STOPPING=1");
    }

    #[test]
    fn an_abstract_address_is_one_without_a_nul_behind_it() {
        let name = format!("tracecheck-notify-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("it is free");
        socket.set_read_timeout(Some(DEADLINE)).expect("not zero");
        notifier(format!("@{name}")).ready();
        assert_eq!(receive(&socket), "READY=1");
    }

    #[test]
    fn other_addresses_are_ignored_with_one_warning() {
        let long = format!("/{}", "x".repeat(200));
        for address in [
            "5",
            "relative/x",
            "",
            "@",
            "vsock:2:1234",
            "vsock-stream:2:1",
            &long,
        ] {
            let (notifier, text) = diagnostics(|| {
                let notifier = notifier(address);
                notifier.ready();
                notifier.stopping();
                notifier
            });
            assert!(notifier.manager.is_none(), "{address}");
            assert_eq!(text.matches("WARN").count(), 1, "{text}");
        }
        let (notifier, text) = diagnostics(|| Notifier::from_env(|_| None));
        assert!(notifier.manager.is_none());
        assert_eq!(text, "", "no manager is no fault");
    }

    #[test]
    fn a_manager_that_is_gone_is_told_of_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let ((), text) = diagnostics(|| {
            let notifier = notifier(directory.path().join("nobody"));
            notifier.ready();
            notifier.stopping();
        });
        assert_eq!(text.matches("WARN").count(), 1, "{text}");
    }

    #[test]
    fn what_the_manager_has_no_room_for_comes_later_in_its_order() {
        let listener = Listener::new();
        let mut filling = 0;
        while listener.notifier.send("WATCHDOG=1") {
            filling += 1;
        }
        listener.notifier.ready();
        listener.notifier.stopping();
        for _ in 0..filling {
            assert_eq!(listener.receive(), "WATCHDOG=1");
        }
        listener.notifier.retry();
        assert_eq!(listener.receive(), "READY=1");
        assert_eq!(listener.receive(), "STOPPING=1");
    }

    #[test]
    fn the_watchdog_is_on_when_its_interval_is_set_for_us() {
        let interval = |usec: Option<&str>, pid: Option<&str>| {
            let lookup = |name: &str| match name {
                "WATCHDOG_USEC" => usec.map(OsString::from),
                "WATCHDOG_PID" => pid.map(OsString::from),
                _ => None,
            };
            watchdog(lookup, 42)
        };
        let on = Some(Duration::from_micros(600_000));
        assert_eq!(interval(Some("600000"), None), on);
        assert_eq!(interval(Some("600000"), Some("42")), on);
        for (usec, pid) in [
            (Some("600000"), Some("1")),
            (Some("600000"), Some("")),
            (Some("600000"), Some("junk")),
            (Some("600000"), Some("42 ")),
            (Some("junk"), None),
            (Some("-1"), None),
            (Some("0"), None),
            (Some(""), Some("42")),
            (Some("18446744073709551615"), None),
            (Some("18446744073709551616"), None),
            (None, Some("42")),
            (None, None),
        ] {
            assert_eq!(interval(usec, pid), None, "{usec:?} {pid:?}");
        }
    }

    #[test]
    fn keepalives_stop_when_something_is_stuck() {
        let start = Instant::now();
        let health = Health::new(start);
        let engine = health.part("engine");
        let mut pulse = Pulse::new(Some(3 * SECOND), start);
        let mut due = |after| pulse.due(start + after, &health, nothing_to_say);
        let ping = Some("WATCHDOG=1".to_owned());
        assert_eq!(due(Duration::ZERO), ping);
        assert_eq!(
            due(SECOND / 2),
            None,
            "a third of the interval has not passed"
        );
        engine.beat(start + SECOND / 2);
        assert_eq!(due(SECOND), ping);
        assert_eq!(due(3 * SECOND), ping);
        let (message, text) = diagnostics(|| {
            assert_eq!(due(4 * SECOND), None);
            due(5 * SECOND)
        });
        assert_eq!(message, None);
        assert_eq!(text.matches("engine is stuck").count(), 1, "{text}");
        engine.rest();
        assert_eq!(due(6 * SECOND), ping);
        engine.wait_for(crate::health::Outside::Output, start + 6 * SECOND);
        assert_eq!(due(60 * SECOND), ping, "backpressure is no fault");
    }

    #[test]
    fn the_status_is_sent_when_it_changes_and_once_a_second_at_most() {
        let start = Instant::now();
        let health = Health::new(start);
        let mut pulse = Pulse::new(None, start);
        let mut due = |after, status: &str| {
            let status = |_| status.to_owned();
            pulse.due(start + after, &health, status)
        };
        assert_eq!(due(Duration::ZERO, "a").as_deref(), Some("STATUS=a"));
        assert_eq!(due(SECOND / 2, "b"), None);
        assert_eq!(due(SECOND, "b").as_deref(), Some("STATUS=b"));
        assert_eq!(due(2 * SECOND, "b"), None);
        assert_eq!(due(3 * SECOND, "c").as_deref(), Some("STATUS=c"));
    }

    #[test]
    fn next_is_when_something_is_due() {
        let start = Instant::now();
        let health = Health::new(start);
        let mut pulse = Pulse::new(Some(6 * SECOND), start);
        assert_eq!(pulse.next(), start);
        pulse.due(start, &health, nothing_to_say);
        assert_eq!(pulse.next(), start + SECOND);
        let mut pulse = Pulse::new(Some(Duration::from_micros(1)), start);
        pulse.due(start, &health, nothing_to_say);
        assert_eq!(pulse.next(), start + MIN_KEEPALIVE);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn keepalives_keep_coming_while_the_output_is_stalled() {
        const INTERVAL: Duration = Duration::from_millis(900);
        const KEEPALIVES: usize = 6;
        let Listener {
            socket,
            _directory,
            notifier,
        } = Listener::new();
        let health = Health::new(Instant::now());
        let writer = health.part("writer");
        writer.wait_for(crate::health::Outside::Output, Instant::now());
        let stop = CancellationToken::new();
        let listening = tokio::task::spawn_blocking({
            let stop = stop.clone();
            move || {
                let mut times = Vec::new();
                while times.len() < KEEPALIVES {
                    if receive(&socket).contains("WATCHDOG=1") {
                        times.push(Instant::now());
                    }
                }
                stop.cancel();
                times
            }
        });
        notifier
            .keep_up(Some(INTERVAL), &health, |now| format!("{now:?}"), stop)
            .await;
        let times = listening.await.expect("it does not panic");
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max().expect("some") < INTERVAL, "{times:?}");
    }

    #[tokio::test]
    async fn without_a_manager_there_is_nothing_to_keep_up() {
        let health = Health::new(Instant::now());
        let never = CancellationToken::new();
        Notifier::default()
            .keep_up(Some(SECOND), &health, nothing_to_say, never)
            .await;
    }
}
