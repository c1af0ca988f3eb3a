//! How many connections may be open at once.

use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::{Mutex, watch};

/// Places for connections. One that is taken is free again when its [`Slot`] is dropped.
#[derive(Debug)]
pub(super) struct Slots {
    state: watch::Sender<State>,
    /// Whoever waits for a place holds it, so that the others wait in the order they came.
    turn: Mutex<()>,
}

/// One connection's place.
#[derive(Debug)]
pub(super) struct Slot(Arc<Slots>);

#[derive(Debug)]
struct State {
    /// May be more than `max` after that was lowered.
    open: usize,
    max: usize,
    /// Whether it was said that there is no place.
    told: bool,
}

impl Slots {
    pub(super) fn new(max: usize) -> Arc<Slots> {
        let state = State {
            open: 0,
            max,
            told: false,
        };
        Arc::new(Slots {
            state: watch::Sender::new(state),
            turn: Mutex::new(()),
        })
    }

    pub(super) fn set_max(&self, max: usize) {
        self.state.send_modify(|state| state.max = max);
    }

    /// Takes a place, and waits for one if there is none.
    pub(super) async fn take(self: &Arc<Self>) -> Slot {
        let _turn = self.turn.lock().await;
        let mut changes = self.state.subscribe();
        while !self.try_take() {
            changes
                .changed()
                .await
                .expect("the sender is part of what is borrowed");
        }
        Slot(Arc::clone(self))
    }

    fn try_take(&self) -> bool {
        let mut taken = false;
        let mut is_news = false;
        self.state.send_if_modified(|state| {
            taken = state.open < state.max;
            if taken {
                // Clearly below the limit, or every connection that goes would be told of.
                state.open += 1;
                state.told &= state.open > state.max - state.max / 10;
            } else {
                is_news = !state.told;
                state.told = true;
            }
            // Nobody waits for a place to be taken.
            false
        });
        if is_news {
            tracing::warn!(
                "{} connections are open, and no more are taken until one is closed \
                 (--max-connections)",
                self.state.borrow().open
            );
        }
        taken
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.open -= 1);
    }
}

/// How many of the connections that are wanted the process can have open: three quarters of its
/// descriptors, as files, checkpoints and metrics need some whatever connects. Raises the limit
/// as far as the process may.
pub(super) fn connections_that_fit(wanted: usize) -> usize {
    let Ok((mut soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return wanted;
    };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        soft = hard;
    }
    let fitting = usize::try_from(soft / 4 * 3).unwrap_or(usize::MAX).max(1);
    if fitting < wanted {
        tracing::warn!(
            "of the {wanted} connections of --max-connections {fitting} can be open at once, as the \
             process may open {soft} files (LimitNOFILE= of the unit, or ulimit -n)"
        );
    }
    wanted.min(fitting)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_place_is_waited_for() {
        let slots = Slots::new(2);
        let one = slots.take().await;
        let _two = slots.take().await;
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.take().await }
        });
        tokio::time::timeout(Duration::from_millis(50), slots.take())
            .await
            .unwrap_err();
        drop(one);
        let three = waiting.await.unwrap();
        slots.set_max(4);
        let _four = slots.take().await;
        slots.set_max(1);
        drop(three);
        assert!(!slots.try_take());
    }

    #[tokio::test]
    async fn that_it_is_full_is_told_until_clearly_fewer_are_open() {
        let slots = Slots::new(10);
        let told = || slots.state.borrow().told;
        let mut held = Vec::new();
        for _ in 0..10 {
            held.push(slots.take().await);
        }
        assert!(!told());
        assert!(!slots.try_take());
        assert!(told());
        held.pop();
        held.push(slots.take().await);
        assert!(told(), "one goes and one comes");
        held.truncate(5);
        held.push(slots.take().await);
        assert!(!told());
    }

    #[test]
    fn some_descriptors_are_left_for_other_things() {
        assert_eq!(connections_that_fit(1), 1);
        let all = connections_that_fit(usize::MAX);
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!((all as u64) < soft, "{all} of {soft}");
    }
}
