//! Rotation, and traces and connections that come and go, for as long as one likes: memory,
//! descriptors and the store level off.
//!
//! Half a minute here; for longer: `TRACECHECK_SOAK_SECONDS=1800 cargo test --test daemon soak --
//! --nocapture`.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::place::{Daemon, Place, probe};

/// What is measured again and again.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    resident_kib: u64,
    descriptors: u64,
    store_bytes: u64,
}

impl Sizes {
    fn of(place: &Place, daemon: &Daemon<'_>) -> Sizes {
        let entries = fs::read_dir(place.path("state")).expect("there");
        // A file may be renamed between its listing and the look at it.
        let lengths = entries.flatten().flat_map(|entry| entry.metadata());
        Sizes {
            resident_kib: daemon.resident_kib(),
            descriptors: daemon.descriptors() as u64,
            store_bytes: lengths.map(|metadata| metadata.len()).sum(),
        }
    }

    fn most(self, other: Sizes) -> Sizes {
        Sizes {
            resident_kib: self.resident_kib.max(other.resident_kib),
            descriptors: self.descriptors.max(other.descriptors),
            store_bytes: self.store_bytes.max(other.store_bytes),
        }
    }
}

#[test]
fn soak() {
    let seconds = std::env::var("TRACECHECK_SOAK_SECONDS");
    let seconds = seconds.map_or(30, |text| text.parse().expect("a number"));
    let place = Place::new();
    place.write("a.log", "");
    let arguments = [
        "a.log",
        "--listen=unix:s.sock",
        "--end-kind=end",
        "--max-traces=5000",
    ];
    let daemon = place.start(&arguments);
    let record = |trace: u64, seq: u64, kind: &str| {
        format!("{{\"trace\":\"s{trace}\",\"seq\":{seq},\"kind\":\"{kind}\",\"content\":{{}}}}\n")
    };
    let begun = Instant::now();
    let thirds = [1, 2, 3].map(|third| begun + Duration::from_secs(seconds) * third / 3);
    let mut sizes = [Sizes::default(); 3];
    let mut round = 0_u64;
    for (third, until) in thirds.into_iter().enumerate() {
        while Instant::now() < until {
            round += 1;
            // Most traces end, one in ten is left open.
            let lines = (0..200).map(|n| {
                let trace = round * 200 + n;
                let end = if n % 10 == 0 { "note" } else { "end" };
                record(trace, 1, "note") + &record(trace, 2, end)
            });
            let last = format!("round{round}");
            place.append("a.log", lines.collect::<String>() + &probe(&last));
            let mut stream = UnixStream::connect(place.path("s.sock")).expect("listened on");
            stream
                .write_all(record(round, 1, "end").as_bytes())
                .expect("taken");
            if round.is_multiple_of(5) {
                place.rename("a.log", &format!("a.log.{}", round / 5 % 4));
                place.append("a.log", "");
            }
            place.wait_hit(&last);
            // What was found is not kept either.
            place.write("out", "");
            sizes[third] = sizes[third].most(Sizes::of(&place, &daemon));
        }
    }
    daemon.stop();
    println!("{round} rounds; most in each third: {sizes:?}");
    let [_, second, third] = sizes;
    let levels_off = |before: u64, after: u64, slack: u64| after <= before + before / 10 + slack;
    assert!(
        levels_off(second.resident_kib, third.resident_kib, 2048),
        "{sizes:?}"
    );
    assert!(
        levels_off(second.descriptors, third.descriptors, 4),
        "{sizes:?}"
    );
    assert!(
        levels_off(second.store_bytes, third.store_bytes, 1024),
        "{sizes:?}"
    );
}
