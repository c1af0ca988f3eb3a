//! SIGINT and SIGTERM: the first ends the run in good order, the second at once.

use std::io;
use std::process;
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Status;

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

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
