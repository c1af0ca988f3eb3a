//! A run: what was named is read to its end, verified, and summed up.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Sender, channel};

use crate::checking::{Checker, Declaration};
use crate::config::Config;
use crate::emit::sanitise::visible;
use crate::engine::{Engine, Flow, shown};
use crate::exit::Outcome;
use crate::output::Output;
use crate::parallel::Parallel;
use crate::progress::Progress;
use crate::signals;
use crate::source::{Archives, Expansion, Message, Origin, expand, read_all};
use crate::ticks;

/// Messages that wait between the threads; what bounds the memory is the number of blocks.
const CHANNEL_MESSAGES: usize = 4;

/// Verifies everything that the configuration names.
pub(crate) fn run(config: &Arc<Config>) -> Outcome {
    tracing::debug!("{}", visible(&format!("{config:?}"), usize::MAX));
    let expansion = expand(&config.inputs);
    let progress = Progress::new(config.progress, total_bytes(&expansion.origins));
    let out = Box::new(progress.beside(io::stdout()));
    let output = Output::new(config, out, progress.clone());
    let (checker, declaration) = Checker::new(config);
    let mut engine = Engine::new(Arc::clone(config), checker, output);
    let result = verify(config, &mut engine, declaration, expansion, &progress);
    progress.finish();
    if let Err(error) = result {
        engine.outcome.note_output_error(&error);
    }
    engine.outcome.failing_findings = engine.has_failing_findings();
    let outcome = engine.outcome;
    // The process ends here; freeing a million states one by one would only keep somebody waiting.
    mem::forget(engine);
    outcome
}

fn verify(
    config: &Arc<Config>,
    engine: &mut Engine,
    declaration: Declaration,
    expansion: Expansion,
    progress: &Progress,
) -> io::Result<()> {
    engine.announce_declaration(declaration)?;
    announce(config, engine, &expansion)?;
    let nothing_read = expansion.origins.is_empty() && expansion.failures.is_empty();
    engine.outcome.nothing_read = nothing_read;
    if are_side_by_side(config, &expansion.origins) {
        return verify_side_by_side(config, engine, expansion.origins, progress);
    }
    let (sender, mut receiver) = channel(CHANNEL_MESSAGES);
    let messages = sender.downgrade();
    listen(move || {
        // Where nobody reads any more the run ends by itself.
        if let Some(messages) = messages.upgrade() {
            let _ = messages.blocking_send(Message::Stop);
        }
    });
    if config.follow {
        ticks::start(sender.downgrade());
    }
    start_reading(config, expansion.origins, sender);
    // Whoever reads holds a sender; when the last one is gone everything was read.
    while let Some(message) = receiver.blocking_recv() {
        if engine.handle(message)? == Flow::Stop {
            break;
        }
    }
    engine.finish()
}

/// Whether the sources have nothing to do with one another and there are threads for several.
fn are_side_by_side(config: &Config, origins: &[Origin]) -> bool {
    let are_apart = config.trace_key.is_none() && !config.follow;
    are_apart && origins.len() > 1 && config.jobs.get() > 1
}

fn verify_side_by_side(
    config: &Arc<Config>,
    engine: &mut Engine,
    origins: Vec<Origin>,
    progress: &Progress,
) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let wanted = Arc::clone(&stop);
    listen(move || wanted.store(true, Ordering::Relaxed));
    let parallel = Parallel {
        config,
        jobs: config.jobs,
        progress,
        stop: &stop,
    };
    parallel.verify(origins, engine)?;
    engine.finish()
}

fn listen(stop: impl FnOnce() + Send + 'static) {
    if let Err(error) = signals::listen(stop) {
        tracing::warn!("signals will end the run at once: {error}");
    }
}

/// Says what of the options has no effect and what of the input could not be found.
fn announce(config: &Config, engine: &mut Engine, expansion: &Expansion) -> io::Result<()> {
    if config.trace_idle.is_some() && !config.follow {
        tracing::warn!("--trace-idle has no effect without --follow");
    }
    for name in &expansion.empty {
        let name = shown(name);
        tracing::warn!(
            "{name}: no traces there (*.jsonl, *.ndjson, these with .gz or .zst, or what the glob matches)"
        );
    }
    let mut failures = expansion.failures.iter();
    failures.try_for_each(|(name, error)| engine.fail(None, name, error))
}

fn start_reading(config: &Config, origins: Vec<Origin>, sender: Sender<Message>) {
    let archives = match config.follow {
        true => Archives::Refuse,
        false => Archives::Decompress,
    };
    read_all(origins, archives, None, sender);
}

/// How many bytes there are to read, where that is known.
fn total_bytes(origins: &[Origin]) -> Option<u64> {
    let length = |origin: &Origin| match origin {
        Origin::Stdin => None,
        Origin::File(path) => {
            let metadata = path.metadata().ok()?;
            metadata.is_file().then_some(metadata.len())
        }
    };
    origins.iter().map(length).sum()
}
