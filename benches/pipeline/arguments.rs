//! What is asked for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measure the whole program against its targets
#[derive(Debug, Parser)]
#[command(name = "pipeline", bin_name = "cargo bench --bench pipeline --")]
pub(crate) struct Arguments {
    /// Size of the large files, in MiB
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    mb: u64,
    /// How often each is run, in turns with the others
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where the data is made, and found again the next time
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/pipeline"))]
    data: PathBuf,
    /// The program to measure [default: the one that Cargo built for this]
    #[arg(long)]
    program: Option<PathBuf>,
    /// How long records are sent to measure the latency, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Run everything once on next to nothing, to see that it runs
    #[arg(long)]
    smoke: bool,
    /// Cargo says so
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a file of traces
    Generate(Wanted),
    /// Run a program on so many cores and say what it took
    #[command(hide = true)]
    Measure(Pinned),
    /// Read each line to simd-json's tape
    #[command(hide = true)]
    Tape { file: PathBuf },
    /// Verify with serde_json's values
    #[command(hide = true)]
    Naive {
        #[arg(long)]
        trace_key: Option<String>,
        file: PathBuf,
    },
}

/// A file of traces.
#[derive(Clone, Debug, Args)]
pub(crate) struct Wanted {
    pub(crate) what: What,
    pub(crate) file: PathBuf,
    #[arg(long, default_value_t = 512)]
    pub(crate) mb: u64,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Candidates of a placement (fleet)
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) candidates: u64,
    /// Make one placement in so many faulty (mixed)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) fault_every: Option<u64>,
    /// Cargo says so
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum What {
    /// One trace, as an agent leaves it
    Mixed,
    /// One trace of placements with many candidates
    Fleet,
    /// Short traces interleaved, told apart by /trace
    Many,
}

/// A program to be run, its standard input as given.
#[derive(Clone, Debug, Args)]
pub(crate) struct Pinned {
    #[arg(long)]
    pub(crate) cores: usize,
    /// Where its standard output goes
    #[arg(long)]
    pub(crate) out: PathBuf,
    #[arg(last = true, required = true)]
    pub(crate) call: Vec<OsString>,
}

/// How much is measured, and of what.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) mb: u64,
    pub(crate) rounds: u32,
    pub(crate) data: PathBuf,
    pub(crate) program: PathBuf,
    /// Records that are sent to measure the latency.
    pub(crate) sent: u64,
    /// Starts that are measured.
    pub(crate) starts: usize,
    /// Open traces, and twice as many, to see what one takes.
    pub(crate) open: u64,
    /// Most bytes of one file or stream of the growth tables.
    pub(crate) longest_trace: u64,
    pub(crate) most_open: u64,
    pub(crate) smoke: bool,
}

impl Arguments {
    pub(crate) fn scale(&self) -> Scale {
        let mb = if self.smoke { 1 } else { self.mb };
        Scale {
            mb,
            rounds: if self.smoke { 1 } else { self.rounds },
            data: self.data.clone(),
            program: self
                .program
                .clone()
                .unwrap_or_else(|| env!("CARGO_BIN_EXE_tracecheck").into()),
            sent: if self.smoke {
                1000
            } else {
                10_000 * self.seconds
            },
            starts: if self.smoke { 3 } else { 50 },
            open: if self.smoke { 2000 } else { 100_000 },
            longest_trace: mb * 20_000,
            most_open: mb * 2000,
            smoke: self.smoke,
        }
    }
}
