//! How far a long run is: a bar on standard error, for a person who waits.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A run that ends sooner shows nothing: a bar that flashes up only disturbs.
const DELAY: Duration = Duration::from_millis(500);

/// How often the bar is drawn while nothing is read, so that rate and time stay true.
const TICK: Duration = Duration::from_millis(250);

/// At most 75 columns, so that it does not wrap where there are 80.
const BAR: &str = "[{bar:20}] {percent:>3}%  {decimal_bytes} of {decimal_total_bytes}  \
                   {decimal_bytes_per_sec}  {eta} left";
const SPINNER: &str = "{spinner} {decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}";

/// The progress of a run. Its clones show the same bar.
#[derive(Clone)]
pub(crate) struct Progress {
    /// `None` where nothing is to be shown.
    shown: Option<Arc<Shown>>,
}

struct Shown {
    /// Counts from the beginning, so that its rate is right when it appears.
    bar: ProgressBar,
    started: Instant,
    delay: Duration,
    /// Where the bar will be drawn, until it is.
    target: Mutex<Option<ProgressDrawTarget>>,
}

impl Progress {
    /// Progress towards `total_bytes`, or towards an unknown end. Shows nothing unless `enabled`,
    /// for the first half second, or where standard error is no terminal.
    pub(crate) fn new(enabled: bool, total_bytes: Option<u64>) -> Self {
        let shown = enabled.then(|| {
            let target = ProgressDrawTarget::stderr();
            Arc::new(Shown::new(target, DELAY, total_bytes))
        });
        Progress { shown }
    }

    /// Tells that so many more bytes were read. Cheap enough to be called for every block.
    pub(crate) fn advance(&self, bytes: u64) {
        if let Some(shown) = &self.shown {
            shown.bar.inc(bytes);
            shown.draw_if_due();
        }
    }

    /// Runs `write` with the bar out of the way, and draws it again behind what was written.
    ///
    /// Other threads that advance meanwhile wait. `write` itself must not use this progress.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        match &self.shown {
            Some(shown) => shown.bar.suspend(write),
            None => write(),
        }
    }

    /// A writer to the same terminal, whose output stays clear of the bar.
    pub(crate) fn beside<W: Write>(&self, out: W) -> Beside<W> {
        Beside {
            progress: self.clone(),
            out,
        }
    }

    /// Removes the bar for good.
    pub(crate) fn finish(&self) {
        if let Some(shown) = &self.shown {
            shown.take_target();
            shown.bar.finish_and_clear();
        }
    }
}

impl Shown {
    fn new(target: ProgressDrawTarget, delay: Duration, total_bytes: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::hidden());
        let template = if total_bytes.is_some() { BAR } else { SPINNER };
        let style = ProgressStyle::with_template(template).expect("the templates are tested");
        bar.set_style(style.progress_chars("=> "));
        Shown {
            bar,
            started: Instant::now(),
            delay,
            target: Mutex::new(Some(target)),
        }
    }

    fn draw_if_due(&self) {
        if self.started.elapsed() < self.delay {
            return;
        }
        if let Some(target) = self.take_target() {
            self.bar.set_draw_target(target);
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn take_target(&self) -> Option<ProgressDrawTarget> {
        self.target
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// See [`Progress::beside`]. What is written is passed on and flushed at once.
pub(crate) struct Beside<W> {
    progress: Progress,
    out: W,
}

impl<W: Write> Write for Beside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let out = &mut self.out;
        self.progress.suspend(|| {
            let written = out.write(bytes)?;
            out.flush()?;
            Ok(written)
        })
    }

    /// Does nothing, so that a flush without a write before does not redraw the bar.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;

    /// A terminal that keeps what is done to it; also as the writer of the output.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn push(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("not poisoned").push_str(text);
            Ok(())
        }

        fn text(&self) -> String {
            self.0.lock().expect("not poisoned").clone()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.push(text)?;
            self.push("\n")
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.push(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.push("<clear>")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.push(std::str::from_utf8(bytes).expect("UTF-8"))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn progress(screen: &Screen, delay: Duration, total_bytes: Option<u64>) -> Progress {
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        Progress {
            shown: Some(Arc::new(Shown::new(target, delay, total_bytes))),
        }
    }

    #[test]
    fn short_runs_show_nothing() {
        let screen = Screen::default();
        let progress = progress(&screen, Duration::from_secs(3600), Some(4_000_000));
        progress.advance(1_000_000);
        progress.suspend(|| ());
        progress.finish();
        progress.advance(1_000_000);
        assert_eq!(screen.text(), "");
    }

    #[test]
    fn long_runs_show_how_far_they_are() {
        let screen = Screen::default();
        let progress = progress(&screen, Duration::ZERO, Some(4_000_000));
        progress.advance(1_000_000);
        progress.suspend(|| ());
        assert!(
            screen.text().contains("]  25%  1.00 MB of 4.00 MB  "),
            "{}",
            screen.text()
        );
        assert!(screen.text().contains(" left"), "{}", screen.text());
        progress.finish();
    }

    #[test]
    fn an_unknown_end_shows_what_was_read() {
        let screen = Screen::default();
        let progress = progress(&screen, Duration::ZERO, None);
        progress.advance(1_500_000);
        progress.suspend(|| ());
        assert!(screen.text().contains(" 1.50 MB  "), "{}", screen.text());
        progress.finish();
    }

    #[test]
    fn output_begins_on_a_clear_line() {
        let screen = Screen::default();
        let progress = progress(&screen, Duration::ZERO, Some(4_000_000));
        let mut out = progress.beside(screen.clone());
        progress.advance(1_000_000);
        progress.suspend(|| ());
        out.write_all(b"finding\n").expect("taken");
        let text = screen.text();
        let (before, behind) = text.split_once("finding\n").expect("written");
        assert!(before.ends_with("<clear>"), "{text}");
        assert!(behind.contains("25%"), "{text}");
        progress.finish();
        assert!(screen.text().ends_with("<clear>"), "{}", screen.text());
        out.write_all(b"summary\n").expect("taken");
        assert!(screen.text().ends_with("summary\n"), "{}", screen.text());
    }

    #[test]
    fn disabled_progress_passes_everything_on() {
        let progress = Progress::new(false, None);
        let mut out = progress.beside(Vec::new());
        progress.advance(1);
        out.write_all(b"text").expect("taken");
        out.flush().expect("nothing to do");
        progress.finish();
        assert_eq!(out.out, b"text");
        assert_eq!(progress.suspend(|| 7), 7);
    }
}
