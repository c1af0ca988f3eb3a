//! The endpoint of `--metrics`: `/metrics`, `/healthz` and `/readyz` over HTTP/1.
//!
//! Whoever reaches the address can read it: there is no password and no TLS, and nothing of a trace
//! is told. Which address that is, is the operator's business. What a peer can take is bounded in
//! every way: connections, time, and the size of its request.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Metrics;
use super::text;
use crate::health::{Health, Phase, STALL};

const LIMITS: Limits = Limits {
    connections: 64,
    head_timeout: Duration::from_secs(5),
    connection_timeout: Duration::from_secs(10),
};
/// For the head of a request: scrapers send a few hundred bytes. The least that hyper takes.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// Where a connection cannot be taken, for want of descriptors or memory, until it is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// What peers can take.
#[derive(Clone, Copy)]
struct Limits {
    /// A few scrapers and probes at once; further ones wait until one is done.
    connections: usize,
    /// For the head of a request, which fits into one packet.
    head_timeout: Duration,
    /// For a connection as a whole, which is closed after one response.
    connection_timeout: Duration,
}

/// Binds the address, so that a run without its endpoint does not begin.
///
/// # Errors
///
/// When the name does not resolve, or the address cannot be bound.
pub(crate) async fn bind(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Answers until it is told to stop. Open connections end with it.
pub(crate) async fn serve(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: CancellationToken,
) {
    serve_within(LIMITS, listener, metrics, health, stop).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut failed = false;
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = accept(&listener, &permits) => accepted,
        };
        // What has ended is forgotten, or the set would grow for ever.
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, permit)) => {
                let (metrics, health) = (Arc::clone(&metrics), Arc::clone(&health));
                connections.spawn(async move {
                    answer(stream, limits, &metrics, &health).await;
                    drop(permit);
                });
            }
            Err(error) => {
                if !failed {
                    tracing::warn!("the metrics endpoint cannot take a connection: {error}");
                }
                failed = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

/// Answers one request.
async fn answer(stream: TcpStream, limits: Limits, metrics: &Metrics, health: &Health) {
    let respond = |request: Request<Incoming>| {
        let response = respond(&request, metrics, health, Instant::now());
        async { Ok::<_, Infallible>(response) }
    };
    let connection = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_header_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    // A peer that sends nonsense or goes away is nobody's concern but its own.
    let _ = tokio::time::timeout(limits.connection_timeout, connection).await;
}

fn respond<B>(
    request: &Request<B>,
    metrics: &Metrics,
    health: &Health,
    now: Instant,
) -> Response<Full<Bytes>> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    match request.uri().path() {
        "/metrics" | "/healthz" | "/readyz" if !is_read => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD only");
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allowed);
            response
        }
        "/metrics" => {
            let text = text::exposition(metrics, now);
            response(StatusCode::OK, text::CONTENT_TYPE, text)
        }
        "/healthz" => match health.standstill(now, STALL) {
            None => plain(StatusCode::OK, "ok"),
            Some(standstill) => plain(StatusCode::SERVICE_UNAVAILABLE, &standstill.to_string()),
        },
        "/readyz" => match health.phase() {
            phase @ Phase::Ready => plain(StatusCode::OK, phase.as_str()),
            phase => plain(StatusCode::SERVICE_UNAVAILABLE, phase.as_str()),
        },
        _ => plain(
            StatusCode::NOT_FOUND,
            "not found; there are /metrics, /healthz and /readyz",
        ),
    }
}

fn plain(status: StatusCode, line: &str) -> Response<Full<Bytes>> {
    response(status, PLAIN_TEXT, format!("{line}\n"))
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::health::Outside;

    struct Endpoint {
        address: SocketAddr,
        health: Arc<Health>,
        stop: CancellationToken,
        task: JoinHandle<()>,
    }

    impl Endpoint {
        async fn start() -> Endpoint {
            Endpoint::start_within(LIMITS).await
        }

        async fn start_within(limits: Limits) -> Endpoint {
            let listener = bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            let now = Instant::now();
            let (metrics, health) = (
                Arc::new(Metrics::new(true, now)),
                Arc::new(Health::new(now)),
            );
            let stop = CancellationToken::new();
            let serving =
                serve_within(limits, listener, metrics, Arc::clone(&health), stop.clone());
            let task = tokio::spawn(serving);
            Endpoint {
                address,
                health,
                stop,
                task,
            }
        }

        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.expect("it listens")
        }

        /// What comes back until the connection is closed.
        async fn exchange(&self, request: &str) -> String {
            let mut stream = self.connect().await;
            stream
                .write_all(request.as_bytes())
                .await
                .expect("it reads");
            rest(&mut stream).await
        }

        async fn call(&self, method: &str, path: &str) -> String {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            self.exchange(&request).await
        }
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        // A reset is as good an end as any.
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8(text).expect("text")
    }

    fn status(response: &str) -> &str {
        response.split(' ').nth(1).unwrap_or_default()
    }

    fn body(response: &str) -> &str {
        response.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    #[tokio::test]
    async fn metrics_are_given() {
        let endpoint = Endpoint::start().await;
        for path in ["/metrics", "/metrics?name=x"] {
            let response = endpoint.call("GET", path).await;
            assert_eq!(status(&response), "200", "{response}");
            let head = response.to_ascii_lowercase();
            assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
            assert!(head.contains("connection: close\r\n"));
            assert!(body(&response).contains("\ntracecheck_records_total 0\n"));
        }
    }

    #[tokio::test]
    async fn a_head_has_no_body() {
        let endpoint = Endpoint::start().await;
        let whole = endpoint.call("GET", "/metrics").await;
        let response = endpoint.call("HEAD", "/metrics").await;
        assert_eq!((status(&response), body(&response)), ("200", ""));
        assert!(!body(&whole).is_empty());
        assert!(response.to_ascii_lowercase().contains("content-length: "));
    }

    #[tokio::test]
    async fn readiness_follows_the_phase() {
        let endpoint = Endpoint::start().await;
        for (phase, code, line) in [
            (Phase::Starting, "503", "starting\n"),
            (Phase::Ready, "200", "ready\n"),
            (Phase::Stopping, "503", "stopping\n"),
        ] {
            endpoint.health.set_phase(phase);
            let response = endpoint.call("GET", "/readyz").await;
            assert_eq!((status(&response), body(&response)), (code, line));
        }
    }

    #[tokio::test]
    async fn health_says_in_a_line_what_stands_still() {
        let start = Instant::now();
        let (metrics, health) = (Metrics::new(false, start), Health::new(start));
        let get = async |after| {
            let request = Request::get("/healthz").body(()).expect("a request");
            let now = start + Duration::from_secs(after);
            let response = respond(&request, &metrics, &health, now);
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.expect("it is whole");
            (status, body.to_bytes())
        };
        let line = |line: &'static str| Bytes::from_static(line.as_bytes());
        assert_eq!(get(1000).await, (200, line("ok\n")));
        let writer = health.part("writer");
        writer.wait_for(Outside::Output, start);
        assert_eq!(get(9).await, (200, line("ok\n")));
        assert_eq!(get(10).await, (503, line("output stalled for 10 s\n")));
        writer.rest();
        assert_eq!(get(10).await, (200, line("ok\n")));
        health.part("engine").beat(start);
        assert_eq!(get(11).await, (503, line("engine stalled for 11 s\n")));
    }

    #[tokio::test]
    async fn everything_else_is_refused() {
        let endpoint = Endpoint::start().await;
        for (method, path, code) in [
            ("GET", "/", "404"),
            ("GET", "/metrics/", "404"),
            ("GET", "/../metrics", "404"),
            ("POST", "/nothing", "404"),
            ("POST", "/metrics", "405"),
            ("DELETE", "/healthz", "405"),
            ("OPTIONS", "/readyz", "405"),
        ] {
            let response = endpoint.call(method, path).await;
            assert_eq!(status(&response), code, "{method} {path}: {response}");
            let allows = response
                .to_ascii_lowercase()
                .contains("allow: get, head\r\n");
            assert_eq!(allows, code == "405", "{response}");
        }
        let response = endpoint.exchange("\x16\x03\x01nonsense\r\n\r\n").await;
        assert!(["", "400"].contains(&status(&response)), "{response}");
    }

    #[tokio::test]
    async fn a_request_has_a_largest_size() {
        let endpoint = Endpoint::start().await;
        let padding = "x".repeat(2 * MAX_HEAD_BYTES);
        let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {padding}\r\n\r\n");
        let response = endpoint.exchange(&request).await;
        assert!(["", "431"].contains(&status(&response)), "{response}");
        assert_eq!(status(&endpoint.call("GET", "/metrics").await), "200");
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error() {
        let endpoint = Endpoint::start().await;
        let error = bind(&endpoint.address.to_string())
            .await
            .expect_err("it is in use");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn it_ends_when_it_is_told_to_with_connections_open() {
        let endpoint = Endpoint::start().await;
        let mut silent = endpoint.connect().await;
        endpoint.call("GET", "/metrics").await;
        endpoint.stop.cancel();
        endpoint.task.await.expect("it does not panic");
        assert_eq!(rest(&mut silent).await, "");
    }

    #[tokio::test]
    async fn silent_peers_keep_nobody_out_for_long() {
        let endpoint = Endpoint::start_within(Limits {
            connections: 3,
            head_timeout: Duration::from_millis(100),
            ..LIMITS
        })
        .await;
        let mut peers = Vec::new();
        for begin in ["", "G", "GET /metrics HTTP/1.1\r\nHost: "] {
            let mut peer = endpoint.connect().await;
            peer.write_all(begin.as_bytes()).await.expect("it reads");
            peers.push(peer);
        }
        // Waits in the kernel's queue until one of them was given up.
        let response = endpoint.call("GET", "/metrics").await;
        assert_eq!(status(&response), "200");
        for peer in &mut peers {
            assert!(["", "408"].contains(&status(&rest(peer).await)));
        }
    }

    #[tokio::test]
    async fn no_more_than_the_limit_are_served_at_once() {
        let endpoint = Endpoint::start_within(Limits {
            connections: 1,
            ..LIMITS
        })
        .await;
        let silent = endpoint.connect().await;
        let mut waiting = endpoint.connect().await;
        let request = b"GET /healthz HTTP/1.0\r\n\r\n";
        waiting
            .write_all(request)
            .await
            .expect("the kernel takes it");
        let early = tokio::time::timeout(Duration::from_millis(50), waiting.readable()).await;
        assert!(early.is_err(), "it was served");
        drop(silent);
        assert_eq!(body(&rest(&mut waiting).await), "ok\n");
    }
}
