//! The same findings on every path into the program: as a file under any name, on standard input,
//! on a pipe in pieces, followed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::program::{Ran, Running, command, run, run_command};
use crate::{generate, reference};

/// A finding without what must differ between two sources, and without its id.
fn sourceless(finding: &Value) -> Value {
    let mut finding = finding.clone();
    let members = finding.as_object_mut().expect("an object");
    for name in ["time", "trace", "source", "id"] {
        members.remove(name).expect(name);
    }
    finding
}

fn sourceless_findings(ran: &Ran) -> Vec<Value> {
    ran.findings().iter().map(sourceless).collect()
}

fn ids(ran: &Ran) -> Vec<String> {
    let id = |finding: &Value| finding["id"].as_str().expect("an id").to_owned();
    ran.findings().iter().map(id).collect()
}

/// A record that begins a trace, so that nobody can take it for a part of one.
const BEGINNING: &[u8] = b"{\"seq\":0,\"kind\":\"note\"}\n";

/// Some traces in one, with findings of many sorts.
fn text(seed: u64) -> Vec<u8> {
    let mut text = BEGINNING.to_vec();
    for seed in 5 * seed..5 * seed + 5 {
        let trace = generate::trace(seed);
        text.extend(trace.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&trace));
        text.push(b'\n');
    }
    text
}

fn in_pieces(arguments: &[&str], text: &[u8], size: usize) -> Ran {
    let mut running = Running::start(command(arguments));
    text.chunks(size).for_each(|piece| running.write(piece));
    running.close();
    running.end()
}

#[test]
fn every_way_into_the_program_gives_the_same_findings() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for seed in 0..6 {
        let text = text(seed);
        let path = dir.path().join("t.jsonl");
        fs::write(&path, &text).expect("written");
        let as_file = run([&path], "");
        let expected = sourceless_findings(&as_file);
        assert_eq!(
            expected.len(),
            reference::verify(&text).len(),
            "seed {seed}"
        );
        let status = as_file.status;

        let mut redirected = command(["-"]);
        redirected.stdin(File::open(&path).expect("there"));
        let redirected = redirected.output().expect("it runs");
        let redirected = Ran {
            status: redirected.status.code(),
            stdout: String::from_utf8(redirected.stdout).expect("UTF-8"),
            stderr: String::new(),
        };
        let size = text.len() / 97 + 1;
        for (what, ran) in [
            ("a pipe", run(["-"], &text)),
            ("no PATH", run::<&str>([], &text)),
            ("followed", run(["--follow"], &text)),
            ("followed as -", run(["--follow", "-"], &text)),
            ("pieces", in_pieces(&["-"], &text, size)),
            ("followed in pieces", in_pieces(&["--follow"], &text, size)),
            ("byte by byte", in_pieces(&["-f"], &text, 1)),
            ("redirected", redirected),
        ] {
            let found = sourceless_findings(&ran);
            assert_eq!(found, expected, "seed {seed}, {what}");
            assert_eq!(ran.status, status, "seed {seed}, {what}");
        }
    }
}

#[test]
fn a_file_has_the_same_ids_by_whatever_name_it_is_read() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t.jsonl"), text(0)).expect("written");
    symlink(at("t.jsonl"), at("soft")).expect("linked");
    fs::hard_link(at("t.jsonl"), at("hard")).expect("linked");
    let expected = ids(&run([at("t.jsonl")], ""));
    assert!(expected.len() > 10);
    let check = |what: &str, ran: &Ran| assert_eq!(ids(ran), expected, "{what}");

    check("again", &run([at("t.jsonl")], ""));
    check("soft link", &run([at("soft")], ""));
    check("hard link", &run([at("hard")], ""));
    check("directory", &run([dir.path()], ""));
    check("glob", &run([at("*.jsonl")], ""));
    let mut relative = command(["./t.jsonl"]);
    relative.current_dir(dir.path());
    check("relative", &run_command(relative, ""));
    let script = "exec \"$0\" - < t.jsonl";
    let mut shell = std::process::Command::new("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_tracecheck"));
    shell
        .args(["-c", script])
        .arg(program)
        .current_dir(dir.path());
    check("standard input", &run_command(shell, ""));
    fs::rename(at("t.jsonl"), at("t.1")).expect("renamed");
    check("renamed", &run([at("t.1")], ""));
    let mut grown = fs::read(at("t.1")).expect("there");
    grown.extend(b"{}\n");
    let file = fs::OpenOptions::new().append(true).open(at("t.1"));
    std::io::Write::write_all(&mut file.expect("there"), b"{}\n").expect("written");
    assert_eq!(
        ids(&run([at("t.1")], ""))[..expected.len()],
        expected,
        "grown"
    );

    fs::copy(at("t.1"), at("copy")).expect("copied");
    let copy = ids(&run([at("copy")], ""));
    assert!(
        copy.iter().all(|id| !expected.contains(id)),
        "a copy is another file"
    );
}
