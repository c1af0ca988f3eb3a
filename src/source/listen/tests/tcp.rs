use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::task::JoinSet;

use super::*;

fn name(client: &TcpStream) -> String {
    format!("tcp:{}", client.local_addr().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silence_in_the_middle_of_a_line_holds_up_nobody() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut sleepers = Vec::new();
    for number in 0..40 {
        let mut sleeper = fixture.connect().await;
        if number < 20 {
            sleeper.write_all(b"{\"trace\":").await.unwrap();
        }
        sleepers.push(sleeper);
    }
    let mut client = fixture.connect().await;
    client.write_all(b"served\n").await.unwrap();
    let served = |received: &Received| received.has("served\n");
    fixture.received.until(SOON, served).await;
    fixture
        .received
        .until(SOON, |received| received.texts.len() == 41)
        .await;
    assert_eq!(fixture.progress.open(SourceKind::Tcp), 41);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn neither_a_flood_nor_a_long_file_starves_a_connection() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut flood = fixture.connect().await;
    let flood_name = name(&flood);
    let flooding = tokio::spawn(async move {
        let block = vec![b'x'; 1 << 20];
        while flood.write_all(&block).await.is_ok() {}
    });
    let stop_file = Arc::new(AtomicBool::new(false));
    let file = thread::spawn({
        let (messages, stop) = (fixture.messages.clone(), Arc::clone(&stop_file));
        move || {
            while !stop.load(Ordering::Relaxed) {
                messages.blocking_send(Message::Tick).unwrap();
            }
        }
    });
    let flood_runs = |received: &Received| {
        let flood = received.texts.get(&flood_name);
        flood.is_some_and(|text| text.len() > 1 << 20) && received.ticks > 100
    };
    fixture.received.until(DEADLINE, flood_runs).await;
    for number in 0..5 {
        let mut client = fixture.connect().await;
        let line = format!("served {number}\n");
        client.write_all(line.as_bytes()).await.unwrap();
        let served = |received: &Received| received.has(&line);
        fixture.received.until(SOON, served).await;
    }
    stop_file.store(true, Ordering::Relaxed);
    fixture.stop().await;
    while let Ok(message) = fixture.received.receiver.try_recv() {
        fixture.received.take(message);
    }
    file.join().unwrap();
    flooding.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_at_once_are_all_read() {
    const CLIENTS: usize = 500;
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let address = fixture.ports[0];
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            let line = format!("{number}\n").repeat(1000);
            client.write_all(line.as_bytes()).await.unwrap();
        });
    }
    fixture.received.ended(CLIENTS).await;
    clients.join_all().await;
    assert!(fixture.received.ends.values().all(Result::is_ok));
    for number in 0..CLIENTS {
        let text = format!("{number}\n").repeat(1000);
        assert!(fixture.received.has(&text), "{number}");
    }
    let sent: usize = fixture.received.texts.values().map(Vec::len).sum();
    assert_eq!(fixture.progress.bytes(SourceKind::Tcp), sent as u64);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_line_counts_at_a_close_and_at_a_half_close() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut client = fixture.connect().await;
    client.write_all(b"closed").await.unwrap();
    drop(client);
    fixture.received.ended(1).await;
    assert!(fixture.received.has("closed"));

    let mut client = fixture.connect().await;
    let client_name = name(&client);
    client.write_all(b"half closed").await.unwrap();
    client.shutdown().await.unwrap();
    fixture.received.ended(2).await;
    assert!(fixture.received.has("half closed"));
    let end = &fixture.received.ends[&client_name];
    assert_eq!(*end, Ok("the peer closed it".to_owned()));
    let mut rest = Vec::new();
    let seen = timeout(DEADLINE, client.read_to_end(&mut rest)).await;
    assert_eq!(seen.unwrap().unwrap(), 0);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reset_is_no_end_in_good_order() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut client = fixture.connect().await;
    let client_name = name(&client);
    client.write_all(b"whole\n{\"cut").await.unwrap();
    fixture.received.text("whole\n{\"cut").await;
    let at_once = linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&client, sockopt::Linger, &at_once).unwrap();
    drop(client);
    fixture.received.ended(1).await;
    let error = fixture.received.ends[&client_name].clone().unwrap_err();
    assert!(error.contains("reset"), "{error}");

    let mut client = fixture.connect().await;
    client.write_all(b"after\n").await.unwrap();
    fixture.received.text("after\n").await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_comes_again_is_served_again() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    for number in 0..30 {
        let mut client = fixture.connect().await;
        let line = format!("{number}\n");
        client.write_all(line.as_bytes()).await.unwrap();
        drop(client);
        fixture.received.text(&line).await;
    }
    fixture.received.ended(30).await;
    assert_eq!(fixture.received.origins.len(), 30);
    let kinds = &fixture.received.kinds;
    assert!(kinds.values().all(|kind| *kind == SourceKind::Tcp));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn beyond_the_limit_connections_wait_and_are_not_lost() {
    let limited = ListenOptions {
        max_connections: 2,
        ..options(&["tcp:127.0.0.1:0"])
    };
    let mut fixture = Fixture::with(limited, Activated::default());
    let mut clients = Vec::new();
    for number in 0..6 {
        let mut client = fixture.connect().await;
        let line = format!("{number}\n");
        client.write_all(line.as_bytes()).await.unwrap();
        clients.push(client);
    }
    for (number, client) in clients.into_iter().enumerate() {
        let line = format!("{number}\n");
        fixture.received.text(&line).await;
        assert!(fixture.progress.open(SourceKind::Tcp) <= 2);
        assert!(fixture.received.texts.len() <= number + 2);
        drop(client);
    }
    fixture.received.ended(6).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silent_connection_is_closed_and_one_that_is_not_read_is_not() {
    const IDLE: Duration = Duration::from_millis(200);
    const LENGTH: usize = 8 << 20;
    let limited = ListenOptions {
        connection_idle: Some(IDLE),
        ..options(&["tcp:127.0.0.1:0"])
    };
    let mut fixture = Fixture::with(limited, Activated::default());
    let mut silent = fixture.connect().await;
    let silent_name = name(&silent);
    silent.write_all(b"half a li").await.unwrap();
    fixture.received.ended(1).await;
    let error = fixture.received.ends[&silent_name].clone().unwrap_err();
    assert_eq!(error, "no bytes for 200ms (--connection-idle)");
    let mut rest = Vec::new();
    let seen = timeout(DEADLINE, silent.read_to_end(&mut rest)).await;
    assert_eq!(seen.unwrap().unwrap(), 0);

    // The engine takes nothing for longer than that.
    let mut busy = fixture.connect().await;
    let busy_name = name(&busy);
    let sending = tokio::spawn(async move {
        busy.write_all(&vec![b'x'; LENGTH]).await.unwrap();
    });
    tokio::time::sleep(IDLE * 3).await;
    fixture.received.ended(2).await;
    assert!(fixture.received.ends[&busy_name].is_ok());
    assert_eq!(fixture.received.texts[&busy_name].len(), LENGTH);
    sending.await.unwrap();
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_ends_everything_whatever_waits() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = fixture.connect().await;
        client.write_all(b"never taken").await.unwrap();
        clients.push(client);
    }
    // The channel is full now, and everybody waits for a place in it.
    fixture.stop().await;
    let refused = TcpStream::connect(fixture.ports[0]).await;
    assert!(refused.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_end_when_the_engine_is_gone() {
    let mut fixture = Fixture::new(&["tcp:127.0.0.1:0"]);
    let mut client = fixture.connect().await;
    client.write_all(b"heard\n").await.unwrap();
    fixture.received.text("heard\n").await;
    let (_, nobody) = mpsc::channel(1);
    fixture.received = Received::new(nobody);
    client.write_all(b"unheard\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(DEADLINE, client.read_to_end(&mut rest))
        .await
        .unwrap();
    fixture.stop().await;
}
