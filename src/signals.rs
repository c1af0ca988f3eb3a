//! SIGINT and SIGTERM: the first ends the run in good order, the second at once.

use std::io;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::WeakSender;
use tokio_util::sync::CancellationToken;

use crate::emit::stop::Stop;

use crate::exit::Status;
use crate::health::{Health, Phase};
use crate::notify::Notifier;
use crate::source::Message;

/// Calls `stop` at the first signal.
pub(crate) fn listen(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
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
            runtime.block_on(next(&mut signals));
            stop();
            runtime.block_on(next(&mut signals));
            process::exit(Status::Failure.code().into());
        })?;
    Ok(())
}

/// What the signals of a following run reach.
pub(crate) struct Hands {
    pub(crate) messages: WeakSender<Message>,
    pub(crate) stop: Stop,
    pub(crate) drain: Duration,
    pub(crate) stop_reading: CancellationToken,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) health: Arc<Health>,
}

/// Listens for a following run: SIGHUP reloads; SIGINT and SIGTERM end it, the second at once.
pub(crate) fn follow(runtime: &Runtime, hands: Hands) -> io::Result<()> {
    let _guard = runtime.enter();
    let mut ends = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let mut hangup = signal(SignalKind::hangup())?;
    runtime.spawn(async move {
        loop {
            tokio::select! {
                () = next(&mut ends) => break,
                // Those that come meanwhile are one, and the newest configuration is read.
                _ = hangup.recv() => send(&hands.messages, Message::Reload).await,
            }
        }
        hands.notifier.stopping();
        hands.health.set_phase(Phase::Stopping);
        hands.stop.end_by(Instant::now() + hands.drain);
        hands.stop_reading.cancel();
        tokio::select! {
            () = send(&hands.messages, Message::Stop) => next(&mut ends).await,
            () = next(&mut ends) => {}
        }
        process::exit(Status::Failure.code().into());
    });
    Ok(())
}

async fn send(messages: &WeakSender<Message>, message: Message) {
    // Where nobody reads any more the run ends by itself.
    if let Some(messages) = messages.upgrade() {
        let _ = messages.send(message).await;
    }
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
