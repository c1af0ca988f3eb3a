//! Files side by side: where each source is a trace of its own, whole sources are verified by
//! several threads, each with an engine of its own, and told in their order.
//!
//! A thread takes the next file in the order given. What it has to tell of a file whose turn has not
//! come waits in a bounded channel, and when that is full the thread waits too, so that memory does
//! not grow with the number of findings. The file whose turn it is always has a thread, so that
//! nobody waits for ever.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::checking::Checker;
use crate::config::Config;
use crate::engine::{Engine, Flow, Share};
use crate::output::{Output, Told};
use crate::progress::Progress;
use crate::source::{Archives, Message, Origin, Reader, Unheard};

/// Batches that wait for a file's turn.
const BATCHES_AHEAD: usize = 8;

/// What the sources are verified with.
pub(crate) struct Parallel<'r> {
    pub(crate) config: &'r Arc<Config>,
    pub(crate) jobs: NonZeroUsize,
    pub(crate) progress: &'r Progress,
    /// Set where the run is to end.
    pub(crate) stop: &'r AtomicBool,
}

/// One file and where what it gives is written.
struct Task {
    origin: Origin,
    batches: Mutex<Option<SyncSender<Vec<Told>>>>,
}

impl Parallel<'_> {
    /// Verifies all of the sources; `engine` writes what is told of them and adds it up.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub(crate) fn verify(&self, origins: Vec<Origin>, engine: &mut Engine) -> io::Result<()> {
        let (tasks, turns): (Vec<_>, Vec<_>) = origins.into_iter().map(Task::new).unzip();
        let next = AtomicUsize::new(0);
        let workers = self.jobs.get().min(tasks.len());
        thread::scope(|scope| {
            let work = || self.work(&tasks, &next);
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let written = write_in_turn(turns, engine);
            for worker in workers {
                engine.add(&worker.join().expect("a verifying thread does not panic"));
            }
            written
        })
    }

    /// Verifies one file after the other until there are no more.
    fn work(&self, tasks: &[Task], next: &AtomicUsize) -> Share {
        let mut reader = Reader::new(Archives::Decompress, 1);
        let (checker, _) = Checker::new(self.config);
        let nowhere = || Output::to_thread(sync_channel(0).0, self.progress.clone());
        let mut engine = Engine::new(Arc::clone(self.config), checker, nowhere());
        let mut is_over = false;
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Dropped where there is nothing to tell any more, so that nobody waits for it.
            let batches = task.take_sender();
            if !is_over {
                engine.write_to(Output::to_thread(batches, self.progress.clone()));
                let mut heard = |message| self.handle(&mut engine, message);
                let read = reader.read(&task.origin, &mut heard);
                // What was found before a stop is told, too.
                is_over = engine.hand_on().is_err() || read.is_err();
            }
        }
        // The last file's turn ends when its sender is gone.
        engine.write_to(nowhere());
        engine.share()
    }

    fn handle(&self, engine: &mut Engine, message: Message) -> Result<(), Unheard> {
        if self.stop.load(Ordering::Relaxed) {
            // The first one to see it says so for all.
            let _ = engine.handle(Message::Stop);
            return Err(Unheard);
        }
        match engine.handle(message) {
            Ok(Flow::On | Flow::Reload) => Ok(()),
            Ok(Flow::Stop) | Err(_) => Err(Unheard),
        }
    }
}

impl Task {
    fn new(origin: Origin) -> (Task, Receiver<Vec<Told>>) {
        let (batches, turn) = sync_channel(BATCHES_AHEAD);
        let batches = Mutex::new(Some(batches));
        (Task { origin, batches }, turn)
    }

    fn take_sender(&self) -> SyncSender<Vec<Told>> {
        let mut batches = self.batches.lock().expect("nobody panics with it");
        batches.take().expect("a file is verified once")
    }
}

/// Writes what is told of each source, the sources in their order.
fn write_in_turn(turns: Vec<Receiver<Vec<Told>>>, engine: &mut Engine) -> io::Result<()> {
    for turn in turns {
        for told in turn.iter().flatten() {
            engine.tell(told)?;
        }
        engine.flush()?;
    }
    Ok(())
}
