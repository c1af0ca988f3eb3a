//! A run: what was named is read to its end, verified, and summed up.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::channel;

use crate::checking::{Checker, Declaration};
use crate::config::Config;
use crate::engine::{Engine, Flow, shown};
use crate::exit::Outcome;
use crate::journal::Journal;
use crate::output::Output;
use crate::parallel::Parallel;
use crate::progress::Progress;
use crate::saving::{Opened, Saving};
use crate::signals;
use crate::source::{Archives, Expansion, Message, Origin, expand, read_all};
use crate::ticks;

/// Messages that wait between the threads; what bounds the memory is the number of blocks.
const CHANNEL_MESSAGES: usize = 4;

/// How long the last checkpoint may take; a disk that hangs should not hold up the result for ever.
const LAST_CHECKPOINT: Duration = Duration::from_secs(60);

/// Verifies everything that the configuration names.
pub(crate) fn run(config: &Arc<Config>) -> Outcome {
    let expansion = expand(&config.inputs);
    let progress = Progress::new(config.progress, total_bytes(&expansion.origins));
    let (journal, saving) = match open(config) {
        Ok(opened) => opened,
        Err(problems) => {
            for problem in problems {
                tracing::error!("{problem}");
            }
            return Outcome {
                not_begun: true,
                ..Outcome::default()
            };
        }
    };
    let output = match &journal {
        Some(journal) => Output::queued(config, Arc::clone(&journal.queue), progress.clone()),
        None => {
            let out = Box::new(progress.beside(io::stdout()));
            Output::new(config, out, progress.clone())
        }
    };
    let (checker, declaration) = Checker::new(config);
    let mut engine = Engine::new(Arc::clone(config), checker, output);
    let result = verify(
        config,
        &mut engine,
        declaration,
        expansion,
        &progress,
        saving,
        journal.as_ref(),
    );
    progress.finish();
    let finished = journal.map_or(Ok(()), Journal::finish);
    if let Err(error) = result.and(finished) {
        engine.outcome.note_output_error(&error);
    }
    engine.outcome.failing_findings = engine.has_failing_findings();
    let outcome = engine.outcome;
    // The process ends here; freeing a million states one by one would only keep somebody waiting.
    mem::forget(engine);
    outcome
}

/// What is needed before anything is read.
fn open(config: &Config) -> Result<(Option<Journal>, Option<Opened>), Vec<String>> {
    let journal = Journal::open(config).map_err(|error| vec![error.to_string()])?;
    let saving = match &journal {
        Some(journal) => Saving::open(config, &journal.queue)?,
        None => Saving::open_direct(config)?,
    };
    Ok((journal, saving))
}

fn verify(
    config: &Arc<Config>,
    engine: &mut Engine,
    declaration: Declaration,
    expansion: Expansion,
    progress: &Progress,
    saving: Option<Opened>,
    journal: Option<&Journal>,
) -> io::Result<()> {
    engine.announce_declaration(declaration)?;
    announce(config, engine, &expansion)?;
    let nothing_read = expansion.origins.is_empty() && expansion.failures.is_empty();
    engine.outcome.nothing_read = nothing_read;
    let (mut saving, saved) = saving.unzip();
    if saving.is_none() && are_side_by_side(config, &expansion.origins) {
        return verify_side_by_side(config, engine, expansion.origins, progress, journal);
    }
    let files = saved.map(|saved| engine.restore(saved, SystemTime::now()));
    let (sender, mut receiver) = channel(CHANNEL_MESSAGES);
    let messages = sender.downgrade();
    listen(journal, move || {
        // Where nobody reads any more the run ends by itself.
        if let Some(messages) = messages.upgrade() {
            let _ = messages.blocking_send(Message::Stop);
        }
    });
    if saving.is_some() {
        ticks::start(sender.downgrade());
    }
    read_all(expansion.origins, Archives::Decompress, files, sender);
    // Whoever reads holds a sender; when the last one is gone everything was read.
    while let Some(message) = receiver.blocking_recv() {
        let is_tick = matches!(message, Message::Tick);
        if engine.handle(message)? == Flow::Stop {
            break;
        }
        if is_tick && let Some(saving) = &mut saving {
            saving.tick(engine);
        }
    }
    engine.finish()?;
    if let Some(saving) = saving {
        // However long the journal is away, which the checkpoint waits for.
        journal.map_or(Ok(()), Journal::wait)?;
        let deadline = Instant::now() + LAST_CHECKPOINT;
        if !saving.finish(engine, deadline) {
            tracing::warn!("where this run ended could not be saved");
        }
    }
    Ok(())
}

/// Whether the sources have nothing to do with one another and there are threads for several.
fn are_side_by_side(config: &Config, origins: &[Origin]) -> bool {
    config.trace_key.is_none() && origins.len() > 1 && config.jobs.get() > 1
}

fn verify_side_by_side(
    config: &Arc<Config>,
    engine: &mut Engine,
    origins: Vec<Origin>,
    progress: &Progress,
    journal: Option<&Journal>,
) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let wanted = Arc::clone(&stop);
    listen(journal, move || wanted.store(true, Ordering::Relaxed));
    let parallel = Parallel {
        config,
        jobs: config.jobs,
        progress,
        stop: &stop,
    };
    parallel.verify(origins, engine)?;
    engine.finish()
}

fn listen(journal: Option<&Journal>, stop: impl FnOnce() + Send + 'static) {
    let hurry = journal.map(Journal::hurry);
    let stop = move || {
        // First of all, as whoever is to hear of the stop may be waiting for the journal.
        if let Some(hurry) = hurry {
            hurry();
        }
        stop();
    };
    if let Err(error) = signals::listen(stop) {
        tracing::warn!("signals will end the run at once: {error}");
    }
}

/// Says what of the options has no effect and what of the input could not be found.
fn announce(config: &Config, engine: &mut Engine, expansion: &Expansion) -> io::Result<()> {
    if config.trace_idle.is_some() {
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
