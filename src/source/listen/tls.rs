//! Mutual TLS: both sides show a certificate, and nobody without one gets as far as a record.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::fault::Fault;

/// The files that mutual TLS needs, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Our certificate, and what leads from it to a root.
    pub(crate) cert: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
    /// The authorities that clients' certificates come from.
    pub(crate) client_ca: PathBuf,
}

/// Reads the files: TLS 1.2 or 1.3 with clients whose certificate one of the authorities signed.
pub(super) fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut keep = |fault: Fault| faults.push(fault);
    let chain = certificates(&files.cert).map_err(&mut keep).ok();
    let key = private_key(&files.key).map_err(&mut keep).ok();
    let roots = authorities(&files.client_ca).map_err(&mut keep).ok();
    let (Some(chain), Some(key), Some(roots)) = (chain, key, roots) else {
        return Err(faults);
    };
    let config = assemble(files, chain, key, roots).map_err(|fault| vec![fault])?;
    Ok(Arc::new(config))
}

fn assemble(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
) -> Result<ServerConfig, Fault> {
    // Named here, as a default of the whole process could be set by any other part of it.
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| fault(&files.client_ca, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(&files.cert, error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| unusable(files, &error))?;
    // Peers only write. A ticket that they never read would turn their close into a reset, and
    // connections are long, so that nothing is won by resuming one.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let text = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| not_pem(path, &error))?;
    match certificates.is_empty() {
        true => Err(fault(path, "there is no certificate in PEM in it")),
        false => Ok(certificates),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Fault> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => fault(
            path,
            "there is no private key in PEM in it, or it is encrypted",
        ),
        error => not_pem(path, &error),
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| fault(path, format!("a certificate in it cannot be used: {error}")))?;
    }
    Ok(roots)
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| fault(path, format!("cannot read: {error}")))
}

fn not_pem(path: &Path, error: &pem::Error) -> Fault {
    fault(path, format!("not in PEM: {error}"))
}

fn unusable(files: &TlsFiles, error: &rustls::Error) -> Fault {
    match error {
        rustls::Error::InconsistentKeys(_) => fault(
            &files.key,
            format!(
                "the key does not belong to the certificate in {}",
                files.cert.display()
            ),
        ),
        error => fault(
            &files.cert,
            format!("cannot be used with {}: {error}", files.key.display()),
        ),
    }
}

fn fault(path: &Path, problem: impl Into<String>) -> Fault {
    Fault::new(path.display(), problem)
}

#[cfg(test)]
mod tests {
    use super::super::authority::{Authority, Issued};
    use super::*;

    fn problem(files: &TlsFiles) -> String {
        let faults = server_config(files).unwrap_err();
        let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
        faults.join("\n")
    }

    #[test]
    fn every_file_that_cannot_be_used_is_named() {
        let authority = Authority::new("ours");
        let Issued { cert, key } = authority.issue("server");
        let other = authority.issue("other");
        let good = TlsFiles {
            cert,
            key,
            client_ca: authority.certificate(),
        };
        assert!(server_config(&good).is_ok());

        let missing = TlsFiles {
            cert: "no/cert".into(),
            key: "no/key".into(),
            client_ca: "no/ca".into(),
        };
        let all = problem(&missing);
        assert_eq!(all.lines().count(), 3);
        assert!(all.contains("no/ca: cannot read: No such file"), "{all}");

        let mismatched = TlsFiles {
            key: other.key,
            ..good.clone()
        };
        assert!(problem(&mismatched).contains("the key does not belong to the certificate in"));

        let empty = authority.file("empty", "");
        let empty = TlsFiles {
            cert: empty.clone(),
            key: empty.clone(),
            client_ca: empty,
        };
        let all = problem(&empty);
        assert_eq!(all.matches("no certificate in PEM").count(), 2, "{all}");
        assert!(all.contains("no private key in PEM in it"), "{all}");

        let swapped = TlsFiles {
            cert: good.key.clone(),
            key: good.cert.clone(),
            client_ca: authority.file(
                "broken",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            ),
        };
        let all = problem(&swapped);
        assert_eq!(all.lines().count(), 3, "{all}");
        assert!(all.contains("a certificate in it cannot be used"), "{all}");
    }
}
