//! SIGHUP: the configuration is read again and takes effect whole, or not at all.

use std::io;
use std::sync::Arc;

use tokio::sync::mpsc::Sender;

use super::{Daemon, paths, told};
use crate::config::Config;
use crate::source::Message;
use crate::source::follow::Command;
use crate::source::listen::{Activated, Listeners};

impl Daemon<'_> {
    /// Goes over to the configuration as it is now.
    pub(super) fn reload(&mut self) -> io::Result<()> {
        self.notifier.reloading();
        match self.try_reload() {
            Ok(config) => {
                self.config = Arc::clone(&config);
                self.engine.reconfigure(config)?;
                tracing::info!("the configuration was read again");
            }
            Err(problems) => {
                for problem in problems {
                    tracing::error!("nothing was reloaded: {problem}");
                }
            }
        }
        self.notifier.ready();
        Ok(())
    }

    fn try_reload(&mut self) -> Result<Arc<Config>, Vec<String>> {
        let config = Config::new(self.typed.clone(), self.environment);
        let config = Arc::new(config.map_err(|error| error.problems())?);
        let fixed = self.config.what_cannot_change(&config);
        if !fixed.is_empty() {
            let problem = |name| format!("{name} cannot change while it runs");
            return Err(fixed.into_iter().map(problem).collect());
        }
        let inputs = paths(&config.inputs);
        // A thread that follows nothing yet changes nothing, and is all of it that can fail.
        let is_new = self.readers.follower.is_none() && !inputs.is_empty();
        if is_new {
            let sender = self.sender()?;
            let followed = self.follow(Vec::new(), sender, Vec::new());
            followed.map_err(|error| vec![format!("files cannot be followed: {error}")])?;
        }
        if let Err(problems) = self.reload_sockets(&config) {
            if is_new {
                self.readers.follower = None;
            }
            return Err(problems);
        }
        if let Some(follower) = &self.readers.follower {
            follower.tell(Command::Inputs(inputs));
            follower.tell(Command::Reopen);
        }
        Ok(config)
    }

    fn reload_sockets(&mut self, config: &Config) -> Result<(), Vec<String>> {
        let options = config.listen.clone();
        if let Some(listening) = &mut self.readers.listening {
            let reloaded = self.runtime.block_on(listening.reload(options));
            return reloaded.map_err(told);
        }
        if options.addresses.is_empty() {
            return Ok(());
        }
        let listeners = Listeners::bind(options, Activated::default()).map_err(told)?;
        let sender = self.sender()?;
        let progress = Arc::clone(&self.readers.listen_progress);
        let (stop, tracker) = (self.stop_reading.clone(), self.tracker.clone());
        let _guard = self.runtime.enter();
        let listening = listeners.serve(sender, stop, progress, tracker);
        self.readers.listening = Some(listening.map_err(|error| vec![error.to_string()])?);
        Ok(())
    }

    /// A way for what is read to the engine.
    fn sender(&self) -> Result<Sender<Message>, Vec<String>> {
        let sender = self.messages.upgrade();
        sender.ok_or_else(|| vec!["the run is ending".to_owned()])
    }
}
