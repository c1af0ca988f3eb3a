//! Certificates for tests, made by the real `openssl`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// No extensions but those that a certificate is asked for with.
const CONFIGURATION: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = unused
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[leaf]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
";

/// An authority with a directory of its own.
pub(super) struct Authority {
    dir: TempDir,
}

/// A certificate and its key.
pub(super) struct Issued {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

impl Authority {
    pub(super) fn new(name: &str) -> Authority {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let authority = Authority { dir };
        authority.file("openssl.cnf", CONFIGURATION);
        authority.request(name, "ca", "root", &[]);
        authority
    }

    /// The authority's own certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A certificate of that name, which it signs.
    pub(super) fn issue(&self, name: &str) -> Issued {
        let (cert, key) = (self.path("ca.pem"), self.path("ca.key"));
        self.request(name, name, "leaf", &[("-CA", &cert), ("-CAkey", &key)]);
        Issued {
            cert: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
        }
    }

    /// A file beside its own.
    pub(super) fn file(&self, name: &str, content: &str) -> PathBuf {
        fs::write(self.path(name), content).expect("the directory is ours");
        self.path(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn request(&self, name: &str, file: &str, extensions: &str, signer: &[(&str, &Path)]) {
        let output = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-newkey", "ec", "-days", "2"])
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-batch"])
            .args(["-subj", &format!("/CN={name}"), "-extensions", extensions])
            .arg("-config")
            .arg(self.path("openssl.cnf"))
            .arg("-out")
            .arg(self.path(&format!("{file}.pem")))
            .arg("-keyout")
            .arg(self.path(&format!("{file}.key")))
            .args(
                signer
                    .iter()
                    .flat_map(|(flag, path)| [Path::new(flag), path]),
            )
            .output()
            .expect("openssl can be run");
        assert!(output.status.success(), "openssl: {output:?}");
    }
}
