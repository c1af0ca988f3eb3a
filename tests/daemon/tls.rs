//! Mutual TLS on the sockets of the program, with the real `openssl`.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::authority::{Authority, Issued};
use crate::place::{Place, probe, wait_for};
use crate::sockets::free_port;

/// Sends the text through `openssl s_client` and closes.
fn send(port: u16, authority: &Authority, client: Option<&Issued>, text: &str) -> Output {
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-quiet", "-no_ign_eof", "-verify_return_error"])
        .args(["-connect", &format!("127.0.0.1:{port}")])
        .arg("-CAfile")
        .arg(authority.certificate());
    if let Some(Issued { cert, key }) = client {
        command.arg("-cert").arg(cert).arg("-key").arg(key);
    }
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("openssl can be run");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // Whoever is refused may be gone before all is taken.
    let _ = stdin.write_all(text.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("openssl ends")
}

#[test]
fn with_a_certificate_one_gets_in_and_without_one_nobody() {
    let place = Place::new();
    let port = free_port();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("ours"));
    let Issued { cert, key } = ours.issue("server");
    let configuration = |server: &Issued, authority: &Authority| {
        format!(
            "follow = true\nformat = \"json\"\ntrace_key = \"/trace\"\nstate_dir = \"state\"\n\
             listen = [\"tcp:0.0.0.0:{port}\"]\ntls_cert = {:?}\ntls_key = {:?}\ntls_client_ca = {:?}\n",
            server.cert,
            server.key,
            authority.certificate()
        )
    };
    let server = Issued { cert, key };
    place.write("conf.toml", configuration(&server, &ours));
    let mut command = place.command(["--config=conf.toml"]);
    command.env("RUST_LOG", "info");
    let daemon = place.start_command(command);
    let client = ours.issue("client");
    let sent = send(port, &ours, Some(&client), &probe("in"));
    assert!(sent.status.success(), "{sent:?}");
    place.wait_hit("in");
    send(port, &ours, None, &probe("nobody"));
    let stranger = theirs.issue("client");
    send(port, &ours, Some(&stranger), &probe("stranger"));

    // Another authority lets in others, once the configuration is read again.
    place.write("conf.toml", configuration(&server, &theirs));
    daemon.signal("HUP");
    wait_for("the reload", || place.said("was read again") == 1);
    send(port, &ours, Some(&client), &probe("too_late"));
    let sent = send(port, &ours, Some(&stranger), &probe("now"));
    assert!(sent.status.success(), "{sent:?}");
    place.wait_hit("now");

    // A key that is not that of the certificate changes nothing.
    fs::copy(&stranger.key, &server.key).expect("copied");
    daemon.signal("HUP");
    wait_for("a complaint", || place.said("nothing was reloaded") == 1);
    send(port, &ours, Some(&stranger), &probe("still"));
    place.wait_hit("still");
    daemon.stop();
    place.assert_hits(["in", "now", "still"]);
}
