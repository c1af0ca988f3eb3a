//! Looks after the parts of a daemon several times a second, and notes for others how they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::checkpoint::Freshness;
use crate::emit::queue::OutputQueue;
use crate::health::{Beat, Health, Outside};
use crate::metrics::Metrics;
use crate::source::SourceKind;
use crate::source::follow::FollowProgress;
use crate::source::listen::ListenProgress;

/// How often: well within the shortest watchdog that anybody sets.
const LOOK: Duration = Duration::from_millis(100);

/// What is looked at, and what it is told to.
pub(crate) struct Watch {
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: Arc<OutputQueue>,
    pub(crate) engine: Arc<Beat>,
    /// Counts while the engine waits for the output.
    pub(crate) queue_beat: Arc<AtomicU64>,
    pub(crate) follow: Arc<FollowProgress>,
    pub(crate) listen: Arc<ListenProgress>,
    pub(crate) checkpoints: Option<Freshness>,
}

impl Watch {
    /// Looks until it is told to stop.
    pub(crate) fn start(self, runtime: &Runtime, stop: CancellationToken) {
        let parts = Parts {
            follower: self.health.part("the reading of files"),
            output: self.health.part("the output"),
            engine: Arc::clone(&self.engine),
            seen_follower: 0,
            seen_queue: 0,
        };
        runtime.spawn(async move {
            let mut parts = parts;
            loop {
                self.look(&mut parts, Instant::now());
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        });
    }

    fn look(&self, parts: &mut Parts, now: Instant) {
        parts.look_at_follower(&self.follow, now);
        parts.look_at_output(&self.queue, &self.queue_beat, now);
        self.metrics.output_queue.set(self.queue.queued().events);
        let lag = self.follow.lag(now);
        let since = (!lag.is_zero()).then(|| now - lag);
        let files = self.metrics.lag.of(SourceKind::File);
        files.set_unread(self.follow.lag_bytes(), since);
        for kind in [SourceKind::Tcp, SourceKind::Unix] {
            let received = self.listen.bytes(kind);
            self.metrics.lag.of(kind).set_received(received);
        }
        if let Some(checkpoints) = &self.checkpoints {
            self.metrics.checkpoint_taken(now - checkpoints.age(now));
        }
    }
}

/// The parts that do not beat by themselves.
struct Parts {
    follower: Arc<Beat>,
    output: Arc<Beat>,
    engine: Arc<Beat>,
    seen_follower: u64,
    seen_queue: u64,
}

impl Parts {
    fn look_at_follower(&mut self, follow: &FollowProgress, now: Instant) {
        let beats = follow.beats();
        if follow.is_waiting() || follow.files() == 0 {
            self.follower.rest();
        } else if beats != self.seen_follower {
            self.follower.beat(now);
        }
        self.seen_follower = beats;
    }

    fn look_at_output(&mut self, queue: &OutputQueue, beat: &AtomicU64, now: Instant) {
        match queue.stalled_since() {
            Some(since) => self.output.wait_for(Outside::Output, since),
            None => self.output.rest(),
        }
        let beats = beat.load(Ordering::Relaxed);
        if beats != self.seen_queue {
            // The engine is alive, and waits for the output.
            self.engine.beat(now);
        }
        self.seen_queue = beats;
    }
}
