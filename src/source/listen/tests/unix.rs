use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

fn socket(dir: &TempDir) -> (std::path::PathBuf, String) {
    let path = dir.path().join("s");
    let address = format!("unix:{}", path.display());
    (path, address)
}

async fn send(path: &Path, text: &str) {
    let mut client = UnixStream::connect(path).await.unwrap();
    client.write_all(text.as_bytes()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_are_numbered_and_the_file_goes_at_the_stop() {
    let dir = tempfile::tempdir().unwrap();
    let (path, address) = socket(&dir);
    let mut fixture = Fixture::new(&[&address]);
    let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o660);
    send(&path, "one").await;
    fixture.received.ended(1).await;
    send(&path, "two\n").await;
    fixture.received.ended(2).await;
    let received = &fixture.received;
    assert_eq!(received.texts["unix:1"], b"one");
    assert_eq!(received.texts["unix:2"], b"two\n");
    assert_eq!(received.kinds["unix:2"], SourceKind::Unix);
    assert_eq!(fixture.progress.bytes(SourceKind::Unix), 7);
    fixture.stop().await;
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_process_is_refused_and_takes_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    let (path, address) = socket(&dir);
    let mut fixture = Fixture::new(&[&address]);
    let faults = Listeners::bind(options(&[&address]), Activated::default()).unwrap_err();
    let expected = format!("{address}: somebody listens there already");
    assert_eq!(faults[0].to_string(), expected);
    send(&path, "still served\n").await;
    fixture.received.text("still served\n").await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sockets_from_systemd_are_listened_on_besides() {
    let dir = tempfile::tempdir().unwrap();
    let (path, address) = socket(&dir);
    let passed_path = dir.path().join("passed");
    let passed_unix = StdUnixListener::bind(&passed_path).unwrap();
    let passed_tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let activated = Activated::of(vec![
        RawListener::Unix(passed_unix),
        RawListener::Tcp(passed_tcp),
    ]);
    let mut fixture = Fixture::with(options(&[&address]), activated);
    send(&path, "own\n").await;
    send(&passed_path, "passed\n").await;
    let mut client = fixture.connect().await;
    client.write_all(b"passed over TCP\n").await.unwrap();
    for text in ["own\n", "passed\n", "passed over TCP\n"] {
        fixture.received.text(text).await;
    }
    fixture.stop().await;
    assert!(!path.exists());
    assert!(passed_path.exists(), "systemd removes it");
}

#[test]
fn every_fault_is_told_and_nothing_stays_bound() {
    let dir = tempfile::tempdir().unwrap();
    let (path, address) = socket(&dir);
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("tcp:{}", holder.local_addr().unwrap());
    let missing = format!("unix:{}/no/s", dir.path().display());
    let faults =
        Listeners::bind(options(&[&address, &taken, &missing]), Activated::default()).unwrap_err();
    let places: Vec<_> = faults.iter().map(|fault| &*fault.place).collect();
    assert_eq!(places, [&taken, &missing]);
    assert!(faults[0].problem.contains("in use"), "{}", faults[0]);
    assert!(!path.exists());
    drop(holder);

    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let place = format!("tcp:{}", open.local_addr().unwrap());
    let activated = Activated::of(vec![RawListener::Tcp(open)]);
    let faults = Listeners::bind(options(&["tcp:0.0.0.0:0"]), activated).unwrap_err();
    let places: Vec<_> = faults.iter().map(|fault| &*fault.place).collect();
    assert_eq!(places, [&place, "tcp:0.0.0.0:0"]);

    let meant = ListenOptions {
        insecure: true,
        ..options(&["tcp:0.0.0.0:0"])
    };
    assert!(Listeners::bind(meant, Activated::default()).is_ok());
}
