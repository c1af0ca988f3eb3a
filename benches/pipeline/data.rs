//! The files that are measured, made once and kept.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::arguments::{Scale, Wanted, What};
use crate::traces::{Amount, Fleet, Made, Many, Mixed, Records, write};

/// Raised whenever the traces change, so that older files are not taken for newer ones.
const VERSION: u32 = 1;

/// Files of the directory that two cores share.
pub(crate) const FILES: u64 = 64;

/// Most that `jq` is given, in MiB.
const MOST_FOR_JQ: u64 = 64;

/// One placement in so many is faulty where the latency is measured: one record in ten.
const FAULTS_SENT: u64 = 3;

/// Bytes of a record of `mixed`, rather more than less.
const RECORD_BYTES: u64 = 3000;

const MIB: u64 = 1 << 20;

/// The files of one scale.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) mixed: PathBuf,
    pub(crate) fleet: PathBuf,
    pub(crate) many: PathBuf,
    /// As `mixed`, with a finding in every placement, and how many that are.
    pub(crate) faulty: PathBuf,
    pub(crate) faulty_placements: u64,
    /// As the first three, of the size that `jq` is given.
    pub(crate) for_jq: [PathBuf; 3],
    /// `mixed` in so many files.
    pub(crate) directory: PathBuf,
    /// A trace with some faults, long enough to be sent record by record.
    pub(crate) sent: PathBuf,
    /// A few records, the third of which is faulty.
    pub(crate) small: PathBuf,
}

impl Data {
    /// Makes what is not there yet.
    pub(crate) fn make(scale: &Scale) -> io::Result<Self> {
        fs::create_dir_all(&scale.data)?;
        let size = Amount::Bytes(scale.mb * MIB);
        let jq_mb = scale.mb.min(MOST_FOR_JQ);
        let jq_size = Amount::Bytes(jq_mb * MIB);
        let path = |name: String| scale.data.join(format!("v{VERSION}-{name}.jsonl"));
        let file = |name: String, records: &mut dyn Records, amount| {
            let path = path(name);
            announce(&path);
            keep(&path, records, amount).map(|()| path)
        };
        let kinds = |mb: u64, amount| -> io::Result<[PathBuf; 3]> {
            Ok([
                file(format!("mixed-{mb}"), &mut Mixed::new(1, None), amount)?,
                file(format!("fleet-{mb}"), &mut Fleet::new(2, 1000), amount)?,
                file(format!("many-{mb}"), &mut Many::new(3), amount)?,
            ])
        };
        let [mixed, fleet, many] = kinds(scale.mb, size)?;
        let sent = Amount::Bytes(scale.sent * RECORD_BYTES);
        let data = Data {
            mixed,
            fleet,
            many,
            faulty: file(
                format!("faulty-{}", scale.mb),
                &mut Mixed::new(1, Some(1)),
                size,
            )?,
            faulty_placements: write(&mut Mixed::new(1, Some(1)), size, &mut io::sink())?.faulty,
            for_jq: kinds(jq_mb, jq_size)?,
            directory: directory(scale)?,
            sent: file(
                format!("sent-{}", scale.sent),
                &mut Mixed::new(4, Some(FAULTS_SENT)),
                sent,
            )?,
            small: file(
                "small".to_owned(),
                &mut Mixed::new(5, Some(1)),
                Amount::Records(6),
            )?,
        };
        data.warm()?;
        Ok(data)
    }

    /// Reads everything once, so that it is in the page cache.
    fn warm(&self) -> io::Result<()> {
        let [mixed, fleet, many] = &self.for_jq;
        let mut files = vec![
            &self.mixed,
            &self.fleet,
            &self.many,
            &self.faulty,
            &self.sent,
            mixed,
            fleet,
            many,
        ];
        let entries: Vec<_> = fs::read_dir(&self.directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        files.extend(&entries);
        for file in files {
            io::copy(&mut File::open(file)?, &mut io::sink())?;
        }
        Ok(())
    }
}

fn announce(path: &Path) {
    if !path.exists() {
        eprintln!("making {}", path.display());
    }
}

/// Makes a file if it is not there.
fn keep(path: &Path, records: &mut dyn Records, amount: Amount) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    // An unfinished file is never taken for a finished one.
    let unfinished = path.with_extension("unfinished");
    make(&unfinished, records, amount)?;
    fs::rename(&unfinished, path)
}

fn make(path: &Path, records: &mut dyn Records, amount: Amount) -> io::Result<Made> {
    let mut out = BufWriter::new(File::create(path)?);
    let made = write(records, amount, &mut out)?;
    out.flush()?;
    Ok(made)
}

fn directory(scale: &Scale) -> io::Result<PathBuf> {
    let directory = scale
        .data
        .join(format!("v{VERSION}-mixed-{}-in-{FILES}", scale.mb));
    announce(&directory);
    fs::create_dir_all(&directory)?;
    for number in 0..FILES {
        let amount = Amount::Bytes(scale.mb * MIB / FILES);
        let path = directory.join(format!("{number:02}.jsonl"));
        keep(&path, &mut Mixed::new(100 + number, None), amount)?;
    }
    Ok(directory)
}

/// Makes a file that somebody asked for.
pub(crate) fn generate(wanted: &Wanted) -> io::Result<()> {
    let seed = wanted.seed;
    let mut records: Box<dyn Records> = match wanted.what {
        What::Mixed => Box::new(Mixed::new(seed, wanted.fault_every)),
        What::Fleet => Box::new(Fleet::new(seed, wanted.candidates as usize)),
        What::Many => Box::new(Many::new(seed)),
    };
    let made = make(&wanted.file, &mut *records, Amount::Bytes(wanted.mb * MIB))?;
    println!(
        "{} bytes, {} records, {} of them faulty",
        made.bytes, made.records, made.faulty
    );
    Ok(())
}
