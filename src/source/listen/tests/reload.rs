use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::authority::{Authority, Issued};
use super::*;

/// What `reload` says.
async fn reload(fixture: &mut Fixture, options: ListenOptions) -> Result<(), String> {
    let reloaded = fixture.listening.reload(options).await;
    reloaded.map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
        faults.join("\n")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_stays_goes_on_and_what_is_gone_is_let_go_of() {
    let dir = tempfile::tempdir().unwrap();
    let address = |name: &str| format!("unix:{}/{name}", dir.path().display());
    let (old, kept, new) = (address("old"), address("kept"), address("new"));
    let path = |name: &str| dir.path().join(name);
    let mut fixture = Fixture::new(&[&old, &kept]);
    let mut of_old = UnixStream::connect(path("old")).await.unwrap();
    of_old.write_all(b"one, ").await.unwrap();
    fixture.received.text("one, ").await;
    let kept_before = fs::metadata(path("kept")).unwrap().modified().unwrap();

    let options = ListenOptions {
        unix_mode: 0o600,
        ..options(&[&kept, &new])
    };
    reload(&mut fixture, options.clone()).await.unwrap();
    assert!(!path("old").exists());
    let kept_after = fs::metadata(path("kept")).unwrap();
    assert_eq!(kept_after.modified().unwrap(), kept_before);
    for name in ["kept", "new"] {
        let mode = fs::metadata(path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        let mut client = UnixStream::connect(path(name)).await.unwrap();
        client.write_all(name.as_bytes()).await.unwrap();
        fixture.received.text(name).await;
    }
    of_old.write_all(b"two").await.unwrap();
    fixture.received.text("one, two").await;

    // Somebody tidied up too much.
    fs::remove_file(path("kept")).unwrap();
    reload(&mut fixture, options).await.unwrap();
    let mut client = UnixStream::connect(path("kept")).await.unwrap();
    client.write_all(b"again").await.unwrap();
    fixture.received.text("again").await;
    fixture.stop().await;
    assert!(!path("kept").exists() && !path("new").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_fault_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let address = |name: &str| format!("unix:{}/{name}", dir.path().display());
    let (kept, new) = (address("kept"), address("new"));
    fs::write(dir.path().join("file"), "").unwrap();
    let mut fixture = Fixture::new(&[&kept, "tcp:127.0.0.1:0"]);
    let faulty = ListenOptions {
        unix_mode: 0o600,
        max_connections: 0,
        ..options(&[&new, &address("file")])
    };
    let said = reload(&mut fixture, faulty).await.unwrap_err();
    assert!(said.contains("something else than a socket"), "{said}");
    let open = ListenOptions {
        tls: Some(TlsFiles {
            cert: "no/cert".into(),
            key: "no/key".into(),
            client_ca: "no/ca".into(),
        }),
        ..options(&[&new, "tcp:0.0.0.0:0"])
    };
    assert_eq!(
        reload(&mut fixture, open)
            .await
            .unwrap_err()
            .lines()
            .count(),
        3
    );
    assert!(
        reload(&mut fixture, options(&["tcp:0.0.0.0:0"]))
            .await
            .is_err()
    );

    assert!(!dir.path().join("new").exists());
    let kept = dir.path().join("kept");
    let mode = fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut client = UnixStream::connect(kept).await.unwrap();
    client.write_all(b"unix").await.unwrap();
    let mut client_2 = fixture.connect().await;
    client_2.write_all(b"tcp").await.unwrap();
    fixture.received.text("unix").await;
    fixture.received.text("tcp").await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_socket_keeps_its_port_and_takes_up_tls() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut before = fixture.connect().await;
    before.write_all(b"before, ").await.unwrap();
    fixture.received.text("before, ").await;

    let authority = Authority::new("ours");
    let Issued { cert, key } = authority.issue("server");
    let secured = ListenOptions {
        tls: Some(TlsFiles {
            cert,
            key,
            client_ca: authority.certificate(),
        }),
        ..options(&["tcp:127.0.0.1:0"])
    };
    reload(&mut fixture, secured).await.unwrap();
    let mut plain = fixture.connect().await;
    plain.write_all(b"{\"plain\":\"text\"}\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(DEADLINE, plain.read_to_end(&mut rest))
        .await
        .unwrap();
    before.write_all(b"after").await.unwrap();
    fixture.received.text("before, after").await;
    assert_eq!(fixture.received.texts.len(), 1);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_higher_limit_lets_those_in_that_wait() {
    let limited = |max_connections| ListenOptions {
        max_connections,
        ..options(&["tcp:127.0.0.1:0"])
    };
    let mut fixture = Fixture::with(limited(1), Activated::default());
    let mut clients = Vec::new();
    for text in ["one", "two"] {
        let mut client = fixture.connect().await;
        client.write_all(text.as_bytes()).await.unwrap();
        clients.push(client);
    }
    fixture.received.text("one").await;
    reload(&mut fixture, limited(2)).await.unwrap();
    fixture.received.text("two").await;
    fixture.stop().await;
}
