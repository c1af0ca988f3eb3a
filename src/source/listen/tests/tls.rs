use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::super::authority::{Authority, Issued};
use super::*;

/// A server whose clients must have a certificate of `ours`.
struct Secured {
    fixture: Fixture,
    ours: Authority,
}

fn files(ours: &Authority) -> TlsFiles {
    let Issued { cert, key } = ours.issue("server");
    TlsFiles {
        cert,
        key,
        client_ca: ours.certificate(),
    }
}

fn secured() -> Secured {
    let ours = Authority::new("ours");
    let options = ListenOptions {
        tls: Some(files(&ours)),
        ..options(&["tcp:127.0.0.1:0"])
    };
    let fixture = Fixture::with(options, Activated::default());
    Secured { fixture, ours }
}

impl Secured {
    /// Sends the text through `openssl s_client` and closes.
    async fn send(&self, text: &str, arguments: &[&str], client: Option<&Issued>) -> Output {
        let mut command = Command::new("openssl");
        command
            .args(["s_client", "-quiet", "-no_ign_eof", "-verify_return_error"])
            .args(["-connect", &self.fixture.ports[0].to_string()])
            .arg("-CAfile")
            .arg(self.ours.certificate())
            .args(arguments);
        if let Some(Issued { cert, key }) = client {
            command.arg("-cert").arg(cert).arg("-key").arg(key);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let text = text.to_owned();
        let sending = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().expect("openssl can be run");
            let mut stdin = child.stdin.take().expect("it was asked for");
            // Whoever is refused may be gone before all is taken.
            let _ = stdin.write_all(text.as_bytes());
            drop(stdin);
            child.wait_with_output().unwrap()
        });
        timeout(DEADLINE, sending)
            .await
            .expect("openssl ends")
            .unwrap()
    }

    /// Whether somebody with the right certificate is served, and nobody else has been.
    async fn only_serves_ours(&mut self, text: &str) {
        let before = self.fixture.received.texts.len();
        let client = self.ours.issue("client");
        let output = self.send(text, &[], Some(&client)).await;
        assert!(output.status.success(), "{output:?}");
        self.fixture.received.text(text).await;
        self.fixture.received.ended(before + 1).await;
        assert_eq!(self.fixture.received.texts.len(), before + 1);
        assert!(self.fixture.received.ends.values().all(Result::is_ok));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_with_the_right_certificate_is_read() {
    let mut secured = secured();
    let client = secured.ours.issue("client");
    for version in ["-tls1_3", "-tls1_2"] {
        let text = format!("{version}\nwithout an end");
        let output = secured.send(&text, &[version], Some(&client)).await;
        assert!(output.status.success(), "{output:?}");
        secured.fixture.received.text(&text).await;
    }
    secured.fixture.received.ended(2).await;
    let received = &secured.fixture.received;
    assert!(
        received.ends.values().all(Result::is_ok),
        "{:?}",
        received.ends
    );
    assert!(
        received
            .kinds
            .keys()
            .all(|name| name.starts_with("tcp:127.0.0.1:"))
    );
    secured.fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nobody_else_gets_in() {
    let mut secured = secured();
    secured.only_serves_ours("first\n").await;

    for version in ["-tls1_3", "-tls1_2"] {
        secured.send("no certificate\n", &[version], None).await;
        let stranger = Authority::new("ours").issue("client");
        secured
            .send("of others\n", &[version], Some(&stranger))
            .await;
    }
    let old = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"];
    let client = secured.ours.issue("old");
    secured.send("old\n", &old, Some(&client)).await;

    let mut plain = secured.fixture.connect().await;
    plain.write_all(b"{\"plain\":\"text\"}\n").await.unwrap();
    let mut rest = Vec::new();
    // An alert or a reset, as it falls out.
    let _ = timeout(DEADLINE, plain.read_to_end(&mut rest))
        .await
        .unwrap();
    let mut silent = secured.fixture.connect().await;
    silent.write_all(b"\x16\x03\x01").await.unwrap();

    secured.only_serves_ours("last\n").await;
    assert_eq!(secured.fixture.received.texts.len(), 2);
    secured.fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn much_arrives_whole() {
    let mut secured = secured();
    let client = secured.ours.issue("client");
    let text: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let mut received = Received::new(mpsc::channel(1).1);
    std::mem::swap(&mut received, &mut secured.fixture.received);
    let sending = secured.send(&text, &[], Some(&client));
    let (output, ()) = tokio::join!(sending, received.text(&text));
    assert!(output.status.success(), "{output:?}");
    received.ended(1).await;
    secured.fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cut_is_no_end_in_good_order() {
    use rustls::RootCertStore;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

    let mut secured = secured();
    let Issued { cert, key } = secured.ours.issue("client");
    let read = |path: PathBuf| std::fs::read(path).unwrap();
    let certificate = |path: PathBuf| CertificateDer::from_pem_slice(&read(path)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(secured.ours.certificate())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![certificate(cert)],
            PrivateKeyDer::from_pem_slice(&read(key)).unwrap(),
        )
        .unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let server = ServerName::try_from("localhost").unwrap();
    let plain = secured.fixture.connect().await;
    let mut client = connector.connect(server, plain).await.unwrap();
    client.write_all(b"whole\n{\"cut").await.unwrap();
    client.flush().await.unwrap();
    secured.fixture.received.text("whole\n{\"cut").await;
    let (mut plain, _) = client.into_inner();
    plain.shutdown().await.unwrap();
    secured.fixture.received.ended(1).await;
    let end = secured.fixture.received.ends.values().next().unwrap();
    let error = end.clone().unwrap_err();
    assert!(error.starts_with("TLS was cut off"), "{error}");
    secured.fixture.stop().await;
}
