//! Time for the engine, as messages.

use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::WeakSender;

use crate::source::Message;

/// How often [`Message::Tick`] is sent: what is decided by time is decided a quarter of a second late
/// at most.
const TICK: Duration = Duration::from_millis(250);

/// Sends [`Message::Tick`] for as long as anybody else sends.
pub(crate) fn start(messages: WeakSender<Message>) {
    let tick = move || {
        loop {
            thread::sleep(TICK);
            let Some(messages) = messages.upgrade() else {
                return;
            };
            if messages.blocking_send(Message::Tick).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("ticks".to_owned()).spawn(tick);
    thread.expect("a process can start another thread");
}
