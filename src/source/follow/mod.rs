//! Files that are followed as they grow and are rotated, truncated and replaced.
//!
//! One thread owns them all. It sleeps until the kernel or the engine tells it something, or the
//! next scan is due, and then takes a [turn](following::Following::turn). While the engine takes
//! nothing more, it reads nothing more, but still looks what happens to the files, so that they are
//! open before they are deleted.
//!
//! ```text
//! scan ──> names ──> changes ──> file          what is there, what that means, open or end, read
//!   events (watch) say when and where to look; a scan alone finds everything too
//!   rotation: where moved-away files and copies are    resume: where another process has stopped
//! ```

mod arrivals;
mod blocks;
mod changes;
mod compressed;
mod copies;
mod failures;
mod file;
mod following;
mod lag;
mod limit;
mod look;
mod names;
mod order;
mod past;
mod progress;
mod resume;
mod rotation;
mod scan;
#[cfg(test)]
mod tests;
mod truncation;
mod watch;

pub(crate) use progress::FollowProgress;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep_until;

use self::following::Following;
use self::watch::Watcher;
use super::message::{Message, SavedFile};
use crate::config::Input;

/// What to follow.
#[derive(Debug)]
pub(crate) struct FollowOptions {
    /// Files, directories and globs. Standard input and what [`streams`] finds is for others.
    pub(crate) inputs: Vec<Input>,
    /// Whether files that are there now, and were not saved, are begun behind their last line.
    pub(crate) from_end: bool,
    /// Whether records name their traces, so that the next file need not wait for an unhurried end
    /// of the one before it.
    pub(crate) keyed: bool,
    /// Whether what is verified may take several lines, so that a file that ends with a line may
    /// still have something unfinished.
    pub(crate) spans_lines: bool,
    /// Where to go on. What the inputs do not cover is left alone.
    pub(crate) saved: Vec<SavedFile>,
}

/// What the following thread can be told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Follow these and no others.
    Inputs(Vec<Input>),
    /// Look at all paths now.
    Reopen,
    /// End at once, without a word.
    Stop,
}

/// Those of the inputs that are there, but neither files nor directories: they can be read, but have
/// no generations. They are not followed.
pub(crate) fn streams(inputs: &[Input]) -> Vec<PathBuf> {
    scan::streams(inputs)
}

/// The following thread. It ends when this is dropped, or nobody takes its messages.
#[derive(Debug)]
pub(crate) struct Follower {
    commands: UnboundedSender<Command>,
}

impl Follower {
    /// Tells the thread something; it may have ended.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}

/// Starts following.
///
/// # Errors
///
/// If the thread, or what wakes it, cannot be had.
pub(crate) fn follow(
    options: FollowOptions,
    messages: Sender<Message>,
    progress: Arc<FollowProgress>,
) -> io::Result<Follower> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let (sender, commands) = unbounded_channel();
    let watcher = Watcher::new();
    let descriptor = watcher.as_ref().map(Watcher::descriptor).transpose()?;
    thread::Builder::new()
        .name("follower".to_owned())
        .spawn(move || {
            let mut following = Following::new(options, Arc::clone(&progress), watcher);
            following.max_files = limit::max_files();
            let driver = Driver {
                following,
                messages,
                commands,
                progress,
            };
            runtime.block_on(driver.run(descriptor));
        })?;
    Ok(Follower { commands: sender })
}

struct Driver {
    following: Following,
    messages: Sender<Message>,
    commands: UnboundedReceiver<Command>,
    progress: Arc<FollowProgress>,
}

/// Nothing more is to be done.
struct Over;

impl Driver {
    async fn run(mut self, descriptor: Option<OwnedFd>) {
        let events = descriptor.and_then(waker);
        let mut has_begun = false;
        loop {
            if self.take_commands().is_err() {
                return;
            }
            self.following.turn(Instant::now());
            if !std::mem::replace(&mut has_begun, true) {
                self.progress.set_begun();
            }
            if self.send().is_err() {
                return;
            }
            if self.following.outbox.is_empty() && self.following.is_busy() {
                continue;
            }
            self.progress.set_waiting(true);
            let waited = self.wait(events.as_ref()).await;
            self.progress.set_waiting(false);
            if waited.is_err() {
                return;
            }
        }
    }

    /// Sends what can be sent at once.
    fn send(&mut self) -> Result<(), Over> {
        while !self.following.outbox.is_empty() {
            match self.messages.try_reserve() {
                Ok(permit) => {
                    if let Some(message) = self.following.outbox.pop_front() {
                        permit.send(message);
                    }
                }
                Err(_) if self.messages.is_closed() => return Err(Over),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Sleeps until something happens or is due.
    async fn wait(&mut self, events: Option<&AsyncFd<OwnedFd>>) -> Result<(), Over> {
        let Driver {
            following,
            messages,
            commands,
            ..
        } = self;
        let due = following.due(Instant::now());
        let has_messages = !following.outbox.is_empty();
        tokio::select! {
            biased;
            command = commands.recv() => obey(following, command.unwrap_or(Command::Stop)),
            permit = messages.reserve(), if has_messages => {
                let permit = permit.map_err(|_| Over)?;
                if let Some(message) = following.outbox.pop_front() {
                    permit.send(message);
                }
                Ok(())
            }
            () = readable(events) => {
                following.take_events();
                Ok(())
            }
            () = sleep_until(due.into()) => Ok(()),
            () = messages.closed() => Err(Over),
        }
    }

    fn take_commands(&mut self) -> Result<(), Over> {
        loop {
            match self.commands.try_recv() {
                Ok(command) => obey(&mut self.following, command)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Over),
            }
        }
        // An engine that takes no more has no more to say.
        match self.messages.is_closed() {
            true => Err(Over),
            false => Ok(()),
        }
    }
}

fn obey(following: &mut Following, command: Command) -> Result<(), Over> {
    match command {
        Command::Inputs(inputs) => following.set_inputs(inputs),
        Command::Reopen => following.want_scan(),
        Command::Stop => return Err(Over),
    }
    Ok(())
}

#[expect(
    deprecated,
    reason = "what is deprecated is its use with types that do not keep their descriptor open"
)]
fn waker(descriptor: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    // Without it, scans go on.
    AsyncFd::with_interest(descriptor, Interest::READABLE).ok()
}

/// Waits for events that have not been taken.
async fn readable(events: Option<&AsyncFd<OwnedFd>>) {
    match events {
        None => std::future::pending().await,
        Some(events) => match events.readable().await {
            // All are taken before anything else happens; what comes then makes it ready again.
            Ok(mut guard) => guard.clear_ready(),
            // Scans go on.
            Err(_) => std::future::pending().await,
        },
    }
}
