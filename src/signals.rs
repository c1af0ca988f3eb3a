//! SIGINT and SIGTERM: the first ends the run in good order, the second at once.

use std::io;
use std::process;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::exit::Status;
use crate::source::Message;

/// How often [`Message::Tick`] is sent.
const TICK: Duration = Duration::from_millis(250);

/// Sends [`Message::Stop`] at the first signal, and with `ticks` [`Message::Tick`] until then.
pub(crate) fn listen(messages: mpsc::WeakSender<Message>, ticks: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Registered before the thread runs, so that no signal falls in between.
    let mut signals = {
        let _guard = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = next(&mut signals) => {}
                    () = tick(&messages), if ticks => {}
                }
            });
            // A run that has ended by itself listens no more.
            if let Some(messages) = messages.upgrade() {
                let _ = messages.blocking_send(Message::Stop);
            }
            runtime.block_on(next(&mut signals));
            process::exit(Status::Failure.code().into());
        })?;
    Ok(())
}

async fn tick(messages: &mpsc::WeakSender<Message>) {
    loop {
        tokio::time::sleep(TICK).await;
        if let Some(messages) = messages.upgrade() {
            let _ = messages.send(Message::Tick).await;
        }
    }
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
