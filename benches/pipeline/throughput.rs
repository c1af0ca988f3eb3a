//! How fast files are verified, beside what others make of them.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::arguments::Scale;
use crate::data::{Data, FILES};
use crate::measure::{Call, Took, cores};
use crate::table::{Spread, Table};

/// What is run in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Product(Shape),
    Tape(Shape),
    Naive(Shape),
    /// The product and `jq` on the same smaller file.
    ProductForJq(Shape),
    Jq(Shape),
    Directory {
        cores: usize,
    },
    File {
        cores: usize,
    },
    /// With findings written as JSON to a file.
    Findings {
        faulty: bool,
    },
}

/// The files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Mixed,
    Fleet,
    Many,
}

const SHAPES: [Shape; 3] = [Shape::Mixed, Shape::Fleet, Shape::Many];

const FILTER: &str = r#"select(.kind=="task.bound")|.seq"#;

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Shape::Mixed => "mixed",
            Shape::Fleet => "fleet",
            Shape::Many => "many",
        }
    }

    fn file(self, data: &Data) -> &Path {
        match self {
            Shape::Mixed => &data.mixed,
            Shape::Fleet => &data.fleet,
            Shape::Many => &data.many,
        }
    }

    fn trace_key(self) -> &'static [&'static str] {
        match self {
            Shape::Many => &["--trace-key", "/trace"],
            _ => &[],
        }
    }
}

/// All that was run: what each job took, round by round.
#[derive(Debug)]
pub(crate) struct Throughput {
    jobs: Vec<Measured>,
    has_jq: bool,
    has_jobs: bool,
}

#[derive(Debug)]
struct Measured {
    job: Job,
    call: Call,
    bytes: u64,
    status: i32,
    took: Vec<Took>,
}

/// Runs every job once a round, every other round backwards.
pub(crate) fn run(scale: &Scale, data: &Data) -> io::Result<Throughput> {
    let findings = scale.data.join("findings.jsonl");
    let mut throughput = Throughput {
        jobs: Vec::new(),
        has_jq: said(Command::new("jq").arg("--version")).is_some(),
        has_jobs: said(Command::new(&scale.program).arg("--help"))
            .is_some_and(|help| help.contains("--jobs")),
    };
    for job in throughput.wanted() {
        let measured = Measured::new(job, scale, data, &findings)?;
        throughput.jobs.push(measured);
    }
    for round in 0..scale.rounds {
        eprintln!("round {} of {}", round + 1, scale.rounds);
        let count = throughput.jobs.len();
        for index in 0..count {
            let index = if round % 2 == 0 {
                index
            } else {
                count - 1 - index
            };
            throughput.jobs[index].run()?;
        }
    }
    check_findings(scale, data, &findings)?;
    fs::remove_file(findings)?;
    Ok(throughput)
}

/// What a command prints, if it can be run.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Measured {
    fn new(job: Job, scale: &Scale, data: &Data, findings: &Path) -> io::Result<Self> {
        let product = || Call::new(&scale.program);
        let on = |shape: Shape, path: &Path| product().args(shape.trace_key()).arg(path);
        let (call, path) = match job {
            Job::Product(shape) => (on(shape, shape.file(data)), shape.file(data)),
            Job::Tape(shape) => (Call::this("tape")?.arg(shape.file(data)), shape.file(data)),
            Job::Naive(shape) => {
                let call = Call::this("naive")?.args(shape.trace_key());
                (call.arg(shape.file(data)), shape.file(data))
            }
            Job::ProductForJq(shape) => {
                let path = &data.for_jq[shape as usize];
                (on(shape, path), path.as_path())
            }
            Job::Jq(shape) => {
                let path = &data.for_jq[shape as usize];
                (
                    Call::new("jq").args(&["-c", FILTER]).arg(path),
                    path.as_path(),
                )
            }
            Job::Directory { cores } => {
                let path = &data.directory;
                (product().arg(path).on_cores(cores), path.as_path())
            }
            Job::File { cores } => (product().arg(&data.mixed).on_cores(cores), &*data.mixed),
            Job::Findings { faulty } => {
                let path = if faulty { &data.faulty } else { &data.mixed };
                (
                    product().args(&["--format", "json"]).arg(path).to(findings),
                    path.as_path(),
                )
            }
        };
        Ok(Measured {
            bytes: size(path)?,
            status: i32::from(job == Job::Findings { faulty: true }),
            job,
            call,
            took: Vec::new(),
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let took = self
            .call
            .run()?
            .expect(self.status, &format!("{:?}", self.job))?;
        self.took.push(took);
        Ok(())
    }

    fn speed(&self) -> Spread {
        Spread::of(
            self.took
                .iter()
                .map(|took| self.bytes as f64 / took.seconds / 1e6),
        )
    }
}

/// Bytes of a file, or of those in a directory.
fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    fs::read_dir(path)?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum()
}

/// Everybody finds what is there: speed is nothing without it.
fn check_findings(scale: &Scale, data: &Data, findings: &Path) -> io::Result<()> {
    let product = Call::new(&scale.program)
        .args(&["--format", "json"])
        .arg(&data.faulty);
    product.to(findings).run()?.expect(1, "the faulty trace")?;
    let text = fs::read_to_string(findings)?;
    let errors = text
        .lines()
        .filter(|line| line.contains(r#""severity":"error""#))
        .count();
    Call::this("naive")?
        .arg(&data.faulty)
        .to(findings)
        .run()?
        .expect(0, "the naive verifier")?;
    let naive = fs::read_to_string(findings)?;
    if errors as u64 == data.faulty_placements && naive.trim() == errors.to_string() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{errors} errors were found, {} by the naive verifier, and {} made",
        naive.trim(),
        data.faulty_placements
    )))
}

impl Throughput {
    fn wanted(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for shape in SHAPES {
            jobs.extend([Job::Product(shape), Job::Tape(shape), Job::Naive(shape)]);
            if self.has_jq {
                jobs.extend([Job::ProductForJq(shape), Job::Jq(shape)]);
            }
        }
        jobs.extend([
            Job::Findings { faulty: false },
            Job::Findings { faulty: true },
        ]);
        if self.has_jobs && cores() > 1 {
            for cores in [1, 2] {
                jobs.extend([Job::Directory { cores }, Job::File { cores }]);
            }
        }
        jobs
    }

    fn find(&self, job: Job) -> Option<&Measured> {
        self.jobs.iter().find(|measured| measured.job == job)
    }

    /// How many times as fast one job is as another, round by round.
    fn ratio(&self, fast: Job, slow: Job) -> Option<Spread> {
        let (fast, slow) = (self.find(fast)?, self.find(slow)?);
        let bytes = fast.bytes as f64 / slow.bytes as f64;
        let pairs = fast.took.iter().zip(&slow.took);
        Some(Spread::of(
            pairs.map(|(fast, slow)| bytes * slow.seconds / fast.seconds),
        ))
    }

    /// The rows of targets that are about time.
    pub(crate) fn targets(&self, table: &mut Table) {
        for (shape, least) in SHAPES.into_iter().zip([1.0, 1.0, 0.5]) {
            let what = format!("`{}`, one core, against simd-json's tape", shape.name());
            let ratio = self.ratio(Job::Product(shape), Job::Tape(shape));
            add(table, &what, least, ratio, "");
        }
        let no_jobs = if self.has_jobs {
            "one core only"
        } else {
            "no `--jobs` yet"
        };
        let two = self.ratio(Job::Directory { cores: 2 }, Job::Directory { cores: 1 });
        let what = format!("a directory of {FILES} files, two cores against one");
        add(table, &what, 1.7, two, no_jobs);
        let two = self.ratio(Job::File { cores: 2 }, Job::File { cores: 1 });
        add(
            table,
            "one big file, two cores against one",
            1.4,
            two,
            no_jobs,
        );
        for (shape, least) in SHAPES.into_iter().zip([15.0, 15.0, 5.0]) {
            let what = format!("`{}` of up to 64 MiB, against `jq`", shape.name());
            let ratio = self.ratio(Job::ProductForJq(shape), Job::Jq(shape));
            add(table, &what, least, ratio, "no `jq` here");
        }
        let clean = Job::Findings { faulty: false };
        if let Some(times) = self.ratio(clean, Job::Findings { faulty: true }) {
            table.target(
                "a finding in every placement, against none",
                "at most 1.5 times the time",
                format!("{:.2} times", times.median),
                times.range(2, ""),
                times.median <= 1.5,
            );
        }
    }

    /// Most memory that the product took for one of the files.
    pub(crate) fn peak_bytes(&self, shape: Shape) -> Spread {
        let measured = self.find(Job::Product(shape)).expect("always run");
        Spread::of(measured.took.iter().map(|took| took.peak_bytes as f64))
    }

    /// Everybody's speed.
    pub(crate) fn speeds(&self) -> Table {
        let mut table = Table::new(["What", "`mixed`", "`fleet`", "`many`"]);
        let mut row = |what: &str, job: fn(Shape) -> Job| {
            let speed = |shape| match self.find(job(shape)) {
                Some(measured) => format!("{:.0}", measured.speed().median),
                None => "-".to_owned(),
            };
            let [mixed, fleet, many] = SHAPES.map(speed);
            table.row([what.to_owned(), mixed, fleet, many]);
        };
        row("`tracecheck`", Job::Product);
        row(
            "simd-json's tape, buffers reused, verifies nothing",
            Job::Tape,
        );
        row("naive verifier on `serde_json::Value`", Job::Naive);
        row("`tracecheck`, up to 64 MiB", Job::ProductForJq);
        row("`jq`, up to 64 MiB, verifies nothing", Job::Jq);
        table
    }
}

fn add(table: &mut Table, what: &str, least: f64, ratio: Option<Spread>, why_not: &str) {
    let target = format!("{least:.1} times");
    match ratio {
        None => table.left_out(what, &target, why_not),
        Some(ratio) => table.target(
            what,
            &target,
            format!("{:.2} times", ratio.median),
            ratio.range(2, ""),
            ratio.median >= least,
        ),
    }
}
