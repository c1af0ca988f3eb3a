//! The thread itself.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

use super::harness::append;
use crate::config::Input;
use crate::source::follow::{Command, FollowOptions, FollowProgress, Follower, follow};
use crate::source::message::Message;

const DEADLINE: Duration = Duration::from_secs(10);

struct Running {
    dir: TempDir,
    follower: Follower,
    messages: Receiver<Message>,
    progress: Arc<FollowProgress>,
}

fn start(inputs: &[&str], capacity: usize) -> Running {
    let dir = tempfile::tempdir().unwrap();
    for name in inputs {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let inputs = inputs.iter().map(|name| Input::Path(dir.path().join(name)));
    let options = FollowOptions {
        inputs: inputs.collect(),
        from_end: false,
        keyed: true,
        spans_lines: false,
        saved: Vec::new(),
    };
    let (sender, messages) = channel(capacity);
    let progress = Arc::new(FollowProgress::new());
    let follower = follow(options, sender, Arc::clone(&progress)).unwrap();
    Running {
        dir,
        follower,
        messages,
        progress,
    }
}

/// Waits for a condition.
fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Running {
    /// The next message; `None` when the thread has ended.
    fn next(&mut self) -> Option<Message> {
        let mut next = None;
        wait_until(|| match self.messages.try_recv() {
            Ok(message) => {
                next = Some(Some(message));
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => {
                next = Some(None);
                true
            }
        });
        next.unwrap()
    }

    fn bytes(&mut self) -> String {
        match self.next() {
            Some(Message::Bytes { chunk, .. }) => {
                String::from_utf8(chunk.bytes().to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_event_leads_to_a_read_at_once() {
    let mut running = start(&["a"], 4);
    assert!(matches!(running.next(), Some(Message::Opened(_))));
    let mut fastest = DEADLINE;
    for i in 0..50 {
        wait_until(|| running.progress.is_waiting());
        let line = format!("{i}\n");
        append(&running.dir.path().join("a"), &line);
        let written = Instant::now();
        let Some(Message::Bytes { chunk, arrived, .. }) = running.messages.blocking_recv() else {
            panic!("no bytes");
        };
        assert_eq!(chunk.bytes(), line.as_bytes());
        fastest = fastest.min(arrived.saturating_duration_since(written));
    }
    // A scan would need a hundred times as long; other tests run at the same time.
    assert!(fastest < Duration::from_millis(10), "{fastest:?}");
}

#[test]
fn stops_when_told_and_when_nobody_listens() {
    let mut running = start(&["a"], 4);
    assert!(matches!(running.next(), Some(Message::Opened(_))));
    running.follower.tell(Command::Stop);
    assert!(running.next().is_none());

    let mut running = start(&["a"], 1);
    append(&running.dir.path().join("a"), &"line\n".repeat(1_000_000));
    assert!(matches!(running.next(), Some(Message::Opened(_))));
    drop(running.follower);
    wait_until(|| matches!(running.messages.try_recv(), Err(TryRecvError::Disconnected)));

    let running = start(&["a"], 1);
    let progress = Arc::downgrade(&running.progress);
    drop((running.messages, running.progress));
    wait_until(|| progress.strong_count() == 0);
}

#[test]
fn obeys_while_nobody_takes_anything_and_opens_what_comes() {
    let mut running = start(&["a", "c"], 1);
    let a = running.dir.path().join("a");
    let b = running.dir.path().join("b");
    append(&a, "1\n");
    running.follower.tell(Command::Reopen);
    // The channel is full with the first that was opened; the second waits.
    wait_until(|| running.progress.is_waiting() && running.progress.lag_bytes() == 2);
    for text in ["2\n", "3\n"] {
        let files = running.progress.files();
        fs::rename(&a, &b).unwrap();
        fs::write(&a, text).unwrap();
        wait_until(|| running.progress.files() > files);
    }
    fs::remove_file(&b).unwrap();
    fs::write(&b, "4\n").unwrap();
    let inputs = ["a", "b"].map(|name| Input::Path(running.dir.path().join(name)));
    running.follower.tell(Command::Inputs(inputs.to_vec()));
    let mut text = String::new();
    while text.len() < 8 {
        match running.next() {
            Some(Message::Opened(_) | Message::Ended { .. }) => {}
            Some(Message::Bytes { chunk, .. }) => {
                text += std::str::from_utf8(chunk.bytes()).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(text.starts_with("1\n"), "{text}");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3", "4"]);
    wait_until(|| running.progress.lag_bytes() == 0);
    append(&a, "5\n");
    assert_eq!(running.bytes(), "5\n");
}
