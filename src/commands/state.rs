//! `state DIR`: what a state directory holds, without disturbing the process that uses it.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::{complain, finish_output};
use crate::checkpoint::{
    Damage, Entry, FileEntry, Found, Outline, Reader, State, find_current, unix_seconds,
};
use crate::cli::{OutputOptions, StateOptions};
use crate::config::{Environment, Format};
use crate::emit::quantity::{Count, bytes, grouped};
use crate::emit::sanitise::visible;
use crate::exit::Status;
use crate::source::{FileId, SavedFile};

/// Writes what the directory holds.
pub(super) fn run(options: &StateOptions, environment: &Environment) -> Status {
    let max_traces = match options.all {
        true => usize::MAX,
        false => FEW_TRACES,
    };
    let (holdings, problems) = look_into(&options.dir, max_traces, SystemTime::now());
    for problem in &problems {
        complain(format_args!("error: {problem}"));
    }
    let Some(holdings) = holdings else {
        return Status::Failure;
    };
    let output = OutputOptions {
        format: options.format,
        ..OutputOptions::default()
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match output.resolve(environment) {
        (Format::Json, _) => write_json(&mut out, &holdings),
        (Format::Text | Format::Journald(_), _) => write_text(&mut out, &holdings),
    };
    let written = written.and_then(|()| out.flush());
    if written.is_err() {
        // The buffer would try once more when dropped, and a second time is no better.
        let _ = out.into_parts();
    }
    let status = match problems.is_empty() {
        true => Status::Success,
        false => Status::Failure,
    };
    finish_output(written, status)
}

/// How many traces are shown by default: a screen.
const FEW_TRACES: usize = 20;

/// Longest path or name of a trace that is shown; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

/// What a checkpoint holds, as it is shown. In JSON one object with these members.
#[derive(Debug, Serialize)]
struct Holdings {
    /// The path of the checkpoint.
    checkpoint: String,
    /// How long it is.
    bytes: u64,
    /// When it was taken (RFC 3339, UTC), and how long ago.
    taken: String,
    age_seconds: u64,
    protocol: String,
    trace_key: Option<String>,
    /// By path.
    files: Vec<File>,
    /// How many traces are open, and how many references wait in them.
    traces: u64,
    references_pending: u64,
    /// The ones that wait for most, then the longest idle; `traces` says whether these are all.
    open_traces: Vec<Trace>,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    /// Where reading goes on: number and offset of the line that comes next.
    line: u64,
    offset: u64,
    /// How much of the file is still to be read; null unless the file is there.
    lag_bytes: Option<u64>,
    /// `there`, `gone`, `replaced` (the path leads to another file), `truncated` (the file is
    /// shorter than what was read of it) or `unknown` (it could not be looked at).
    state: &'static str,
    /// When it was last seen (RFC 3339, UTC), and how long ago.
    last_seen: String,
    last_seen_seconds: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Trace {
    trace: String,
    records: u64,
    placements: u64,
    /// References that wait for the placement that explains them.
    references_pending: u64,
    /// Without a record for so long, the time since the checkpoint included.
    idle_seconds: u64,
}

/// What the directory holds, if anything of it can be used, and what is wrong with it.
fn look_into(dir: &Path, max_traces: usize, now: SystemTime) -> (Option<Holdings>, Vec<String>) {
    let Found {
        current,
        mut problems,
    } = match find_current(dir) {
        Ok(found) => found,
        Err(error) => return (None, vec![error.to_string()]),
    };
    let Some((path, reader)) = current else {
        if problems.is_empty() {
            problems.push(format!("there is no checkpoint in {}", shown(dir)));
        }
        return (None, problems);
    };
    match Holdings::read(&path, reader, max_traces, now) {
        Ok(holdings) => (Some(holdings), problems),
        Err(damage) => {
            problems.push(format!("{} is damaged: {damage}", shown(&path)));
            (None, problems)
        }
    }
}

impl Holdings {
    fn read(
        path: &Path,
        mut reader: Reader,
        max_traces: usize,
        now: SystemTime,
    ) -> Result<Holdings, Damage> {
        let meta = reader.meta().clone();
        let now = unix_seconds(now);
        let age_seconds = now.saturating_sub(meta.created);
        let (mut files, mut traces) = (Vec::new(), Traces::new(max_traces));
        let mut whole = None;
        while let Some(entry) = reader.read::<State>()? {
            match entry {
                Entry::File(entry) => files.push(File::new(&entry, now)),
                Entry::State(State::Whole(meta)) => whole = Some(meta),
                Entry::State(state) => {
                    if let Some(outline) = state.outline(whole.as_ref()) {
                        traces.add(outline, age_seconds);
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Holdings {
            checkpoint: path.to_string_lossy().into_owned(),
            bytes: reader.bytes(),
            taken: rfc3339(meta.created),
            age_seconds,
            protocol: meta.identity.protocol,
            trace_key: meta.identity.trace_key,
            files,
            traces: traces.count,
            references_pending: traces.references_pending,
            open_traces: traces.first(),
        })
    }
}

impl File {
    fn new(entry: &FileEntry, now: u64) -> File {
        let file = &entry.file;
        let (state, lag_bytes) = compare(file);
        File {
            path: file.path.to_string_lossy().into_owned(),
            line: file.position.line,
            offset: file.position.offset,
            lag_bytes,
            state,
            last_seen: rfc3339(entry.last_seen),
            last_seen_seconds: now.saturating_sub(entry.last_seen),
        }
    }
}

/// What has become of a file, and how much of it is to be read. Its content is not looked at.
fn compare(file: &SavedFile) -> (&'static str, Option<u64>) {
    match fs::metadata(&file.path) {
        Ok(metadata) if FileId::of(&metadata) != file.generation.file => ("replaced", None),
        Ok(metadata) => match metadata.len().checked_sub(file.position.read_from()) {
            Some(lag) => ("there", Some(lag)),
            None => ("truncated", None),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => ("gone", None),
        Err(_) => ("unknown", None),
    }
}

/// Counts traces and keeps those that are shown: a million may be open.
struct Traces {
    max: usize,
    count: u64,
    references_pending: u64,
    kept: Vec<Trace>,
}

impl Traces {
    fn new(max: usize) -> Traces {
        Traces {
            max,
            count: 0,
            references_pending: 0,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, outline: Outline, age_seconds: u64) {
        self.count += 1;
        self.references_pending += outline.pending;
        self.kept.push(Trace {
            trace: outline.trace,
            records: outline.records,
            placements: outline.placements,
            references_pending: outline.pending,
            idle_seconds: outline.idle.as_secs().saturating_add(age_seconds),
        });
        if self.kept.len() / 2 > self.max {
            self.drop_last();
        }
    }

    fn first(mut self) -> Vec<Trace> {
        self.drop_last();
        self.kept
    }

    fn drop_last(&mut self) {
        let order = |a: &Trace, b: &Trace| {
            let key = |trace: &Trace| Reverse((trace.references_pending, trace.idle_seconds));
            key(a).cmp(&key(b)).then_with(|| a.trace.cmp(&b.trace))
        };
        self.kept.sort_unstable_by(order);
        self.kept.truncate(self.max);
    }
}

fn write_json(out: &mut impl Write, holdings: &Holdings) -> io::Result<()> {
    serde_json::to_writer(&mut *out, holdings)?;
    out.write_all(b"\n")
}

fn write_text(out: &mut impl Write, holdings: &Holdings) -> io::Result<()> {
    writeln!(
        out,
        "{}: {}, taken {} ({} ago)",
        visible(&holdings.checkpoint, MAX_NAME_CHARS),
        bytes(holdings.bytes),
        holdings.taken,
        duration(holdings.age_seconds)
    )?;
    let key = match &holdings.trace_key {
        Some(key) => format!("traces told apart by {}", visible(key, MAX_NAME_CHARS)),
        None => "each source a trace".to_owned(),
    };
    let protocol = visible(&holdings.protocol, MAX_NAME_CHARS);
    writeln!(out, "protocol {protocol}, {key}")?;
    write_files(out, &holdings.files)?;
    write_traces(out, holdings)
}

fn write_files(out: &mut impl Write, files: &[File]) -> io::Result<()> {
    writeln!(out, "\n{}", count(files.len() as u64, "file"))?;
    let lag = |file: &File| match file.lag_bytes {
        Some(lag) => bytes(lag),
        None => file.state.to_owned(),
    };
    let rows = files.iter().map(|file| Row {
        cells: vec![
            grouped(file.line),
            grouped(file.offset),
            lag(file),
            duration(file.last_seen_seconds),
        ],
        name: &file.path,
    });
    let titles = &["LINE", "OFFSET", "LAG", "LAST SEEN", "PATH"];
    write_table(out, titles, rows.collect())
}

fn write_traces(out: &mut impl Write, holdings: &Holdings) -> io::Result<()> {
    let shown = holdings.open_traces.len() as u64;
    write!(
        out,
        "\n{}, {}",
        count(holdings.traces, "open trace"),
        count(holdings.references_pending, "pending reference")
    )?;
    match shown < holdings.traces {
        true => writeln!(out, " (here {shown}, with --all every one)")?,
        false => writeln!(out)?,
    }
    let rows = holdings.open_traces.iter().map(|trace| Row {
        cells: vec![
            grouped(trace.records),
            grouped(trace.placements),
            grouped(trace.references_pending),
            duration(trace.idle_seconds),
        ],
        name: &trace.trace,
    });
    let titles = &["RECORDS", "PLACEMENTS", "PENDING", "IDLE", "TRACE"];
    write_table(out, titles, rows.collect())
}

/// A line of a table. The name comes last, so that a long one puts nothing out of line.
struct Row<'h> {
    cells: Vec<String>,
    name: &'h str,
}

/// Writes a table, if it has any rows. The last title is the one of the names.
fn write_table(out: &mut impl Write, titles: &[&str], rows: Vec<Row<'_>>) -> io::Result<()> {
    let (Some((name_title, titles)), false) = (titles.split_last(), rows.is_empty()) else {
        return Ok(());
    };
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row.cells[column].len());
        cells.max().unwrap_or_default().max(titles[column].len())
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    for (title, width) in titles.iter().zip(&widths) {
        write!(out, "  {title:>width$}")?;
    }
    writeln!(out, "  {name_title}")?;
    for row in &rows {
        for (cell, width) in row.cells.iter().zip(&widths) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out, "  {}", visible(row.name, MAX_NAME_CHARS))?;
    }
    Ok(())
}

fn count(number: u64, noun: &'static str) -> Count {
    Count { number, noun }
}

/// `2h 3m`: the two greatest units.
fn duration(seconds: u64) -> String {
    let whole = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    let units: Vec<&str> = whole.split(' ').take(2).collect();
    units.join(" ")
}

fn rfc3339(unix_seconds: u64) -> String {
    // Later ones than a year of four digits can name are no times of ours.
    let seconds = unix_seconds.min(MAX_RFC3339_SECONDS);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

/// 9999-12-31T23:59:59Z.
const MAX_RFC3339_SECONDS: u64 = 253_402_300_799;

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy(), MAX_NAME_CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use serde_json::{Value, json};
    use tracecheck::framing::Position;
    use tracecheck::{Line, Options, Source, Verifier};

    use super::*;
    use crate::checkpoint::{Identity, Keeper, StateRef, Store};
    use crate::source::{Fingerprint, Generation};

    fn saved_file(path: &Path, offset: u64) -> SavedFile {
        let metadata = fs::metadata(path).expect("there");
        SavedFile {
            path: path.to_owned(),
            generation: Generation::first(FileId::of(&metadata)),
            fingerprint: Fingerprint::default(),
            position: Position {
                line: 1_205,
                offset,
                ..Position::START
            },
        }
    }

    fn keyed() -> Verifier {
        Verifier::new(Options {
            trace_key: Some("/trace".parse().expect("a pointer")),
            ..Options::default()
        })
    }

    /// Has a trace of 1,000 records with three placements, of which so many wait for the one that
    /// explains them.
    fn open_trace(verifier: &mut Verifier, name: &str, pending: usize) {
        let source = Source {
            name: Arc::from("a"),
            origin: 1,
            is_resumable: true,
        };
        for number in 0..1_000 {
            let record = match number {
                _ if number < pending => placement(name, json!({"kind": "task.bound"})),
                0..3 => placement(name, json!({"kind": "task.bound", "seq": 1})),
                _ => json!({"trace": name, "kind": "task.parked"}),
            };
            let bytes = record.to_string().into_bytes();
            let line = Line {
                number: number as u64 + 1,
                offset: 0,
                bytes: &bytes,
                too_long: false,
            };
            verifier.verify(line, &source, &mut Vec::new());
        }
    }

    fn placement(trace: &str, recorded_in: Value) -> Value {
        json!({
            "trace": trace,
            "kind": "task.bound",
            "content": {"resumed": true, "scheduling": {"recorded_in": recorded_in}},
        })
    }

    /// Saves, and gives back the keeper, which goes on using the directory.
    fn save(dir: &Path, files: &[SavedFile], verifier: &Verifier) -> Keeper {
        let identity = Identity {
            protocol: "a3".to_owned(),
            trace_key: Some("/tr\u{1b}ace".to_owned()),
        };
        let now = SystemTime::now();
        let (store, _) = Store::open::<State>(dir, identity, now).expect("opened");
        let mut keeper = Keeper::start(store, Instant::now(), |_, _| true).expect("started");
        keeper.take(0, |writer| {
            let mut files = files.iter();
            files.try_for_each(|file| writer.file(file, unix_seconds(now) - 60))?;
            writer.state(&StateRef::Whole(&verifier.saved_meta()))?;
            verifier.save_traces(|trace| writer.state(&StateRef::Trace(trace)))
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        while !dir.join("checkpoint").exists() {
            assert!(Instant::now() < deadline);
        }
        keeper
    }

    /// What is shown an hour later, with the times and the length taken out.
    fn texts(dir: &Path, max_traces: usize) -> (String, Value) {
        let later = SystemTime::now() + Duration::from_secs(3_600);
        let (holdings, problems) = look_into(dir, max_traces, later);
        assert_eq!(problems, [""; 0]);
        let mut holdings = holdings.expect("a checkpoint");
        assert!((3_600..3_660).contains(&holdings.age_seconds));
        assert!(holdings.taken.ends_with('Z'), "{}", holdings.taken);
        for trace in &mut holdings.open_traces {
            trace.idle_seconds -= holdings.age_seconds;
        }
        (holdings.age_seconds, holdings.taken, holdings.bytes) = (3_600, "T".to_owned(), 1_234);
        for file in &mut holdings.files {
            assert!((3_660..3_720).contains(&file.last_seen_seconds));
            (file.last_seen_seconds, file.last_seen) = (3_660, "S".to_owned());
        }
        let (mut text, mut json) = (Vec::new(), Vec::new());
        write_text(&mut text, &holdings).expect("written");
        write_json(&mut json, &holdings).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        (
            text.replace(dir.to_str().expect("UTF-8"), "DIR"),
            serde_json::from_slice(&json).expect("JSON"),
        )
    }

    #[test]
    fn files_and_traces_are_shown_while_the_directory_is_in_use() {
        let temporary = tempfile::tempdir().expect("created");
        let dir = temporary.path();
        let path = |name: &str| dir.join(name);
        for name in ["a", "b\u{1b}[2J", "c", "d", "e"] {
            fs::write(path(name), [b'x'; 2_000]).expect("written");
        }
        let files = [
            saved_file(&path("d"), 2_000),
            saved_file(&path("c"), 2_000),
            saved_file(&path("b\u{1b}[2J"), 2_000),
            saved_file(&path("a"), 700),
            saved_file(&path("e"), 0),
        ];
        fs::write(path("c"), "shorter").expect("written");
        fs::remove_file(path("d")).expect("removed");
        fs::rename(path("a"), path("e")).expect("renamed");
        fs::write(path("a"), [b'x'; 2_000]).expect("written");
        let mut verifier = keyed();
        for (seconds, name, pending) in [(0, "long\n", 0), (3_995, "short", 0), (3_999, "waits", 2)]
        {
            verifier.set_time(Duration::from_secs(seconds), &mut Vec::new());
            open_trace(&mut verifier, name, pending);
        }
        verifier.set_time(Duration::from_secs(4_000), &mut Vec::new());
        let state_dir = path("state");
        let _keeper = save(&state_dir, &files, &verifier);
        let (text, json) = texts(&state_dir, 2);
        let text = text.replace(dir.to_str().expect("UTF-8"), "TMP");
        assert_eq!(
            text,
            "DIR/checkpoint: 1.2 kB, taken T (1h ago)\n\
             protocol a3, traces told apart by /tr\\u{1b}ace\n\
             \n\
             5 files\n\
            \x20  LINE  OFFSET        LAG  LAST SEEN  PATH\n\
            \x20 1,205     700   replaced      1h 1m  TMP/a\n\
            \x20 1,205   2,000        0 B      1h 1m  TMP/b\\u{1b}[2J\n\
            \x20 1,205   2,000  truncated      1h 1m  TMP/c\n\
            \x20 1,205   2,000       gone      1h 1m  TMP/d\n\
            \x20 1,205       0   replaced      1h 1m  TMP/e\n\
             \n\
             3 open traces, 2 pending references (here 2, with --all every one)\n\
            \x20 RECORDS  PLACEMENTS  PENDING   IDLE  TRACE\n\
            \x20   1,000           3        2     1s  waits\n\
            \x20   1,000           3        0  1h 6m  long\\n\n"
        );
        assert_eq!(json["files"][1]["lag_bytes"], 0);
        assert_eq!(json["files"][0]["lag_bytes"], Value::Null);
        assert_eq!(
            json["files"][1]["path"],
            path("b\u{1b}[2J").to_str().unwrap()
        );
        assert_eq!(
            (&json["traces"], &json["references_pending"]),
            (&3.into(), &2.into())
        );
        assert_eq!(json["open_traces"][1]["trace"], "long\n");
        assert_eq!(
            texts(&state_dir, 3).1["open_traces"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
    }

    #[test]
    fn an_empty_checkpoint_has_no_tables() {
        let dir = tempfile::tempdir().expect("created");
        let _keeper = save(dir.path(), &[], &keyed());
        let (text, _) = texts(dir.path(), 1);
        let end = "\n\n0 files\n\n0 open traces, 0 pending references\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn the_first_traces_are_the_same_however_many_there_are() {
        let outline = |number: u64| Outline {
            trace: number.to_string(),
            records: 1,
            placements: 0,
            pending: number % 7,
            idle: Duration::from_secs(number % 13),
        };
        let first = |max| {
            let mut traces = Traces::new(max);
            (0..1_000).for_each(|number| traces.add(outline(number), 0));
            assert_eq!(traces.count, 1_000);
            assert!(traces.kept.len() <= 2 * max.min(1_000) + 1);
            traces.first()
        };
        let all = first(usize::MAX);
        assert_eq!(all.len(), 1_000);
        assert_eq!((all[0].references_pending, all[0].idle_seconds), (6, 12));
        for max in [0, 1, 20] {
            assert_eq!(first(max), all[..max]);
        }
    }

    #[test]
    fn damage_is_said_and_the_one_before_shown() {
        let dir = tempfile::tempdir().expect("created");
        drop(save(dir.path(), &[], &keyed()));
        fs::rename(
            dir.path().join("checkpoint"),
            dir.path().join("checkpoint.old"),
        )
        .expect("renamed");
        fs::write(dir.path().join("checkpoint"), "").expect("written");
        let (holdings, problems) = look_into(dir.path(), 1, SystemTime::now());
        let path = holdings.expect("the one before").checkpoint;
        assert!(path.ends_with("/checkpoint.old"), "{path}");
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].ends_with("is damaged: it is empty"),
            "{problems:?}"
        );
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (93_784, "1day 2h"),
            (3_601, "1h 1s"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
