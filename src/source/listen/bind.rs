//! From addresses to sockets that listen: names resolved, what is open to strangers refused.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use nix::sys::socket::{Backlog, listen};

use super::address::Address;
use super::fault::Fault;
use super::socket_file::{Access, Removal, listen_at};

/// What is said of a socket that must not be reachable.
pub(super) const REACHABLE: &str = "other machines can reach this, and nothing would tell who sends; \
    give --tls-cert, --tls-key and --tls-client-ca, or --insecure-listen if it is meant";

/// A single place to listen, as it was asked for: its port may be 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The endpoints of one address: several where a name has several IP addresses.
#[derive(Debug)]
pub(super) struct Wanted {
    address: Address,
    pub(super) endpoints: Vec<Endpoint>,
}

/// A socket that listens.
#[derive(Debug)]
pub(super) enum RawListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A socket that listens, and what is known of it.
#[derive(Debug)]
pub(super) struct Bound {
    /// None if it was passed on by systemd.
    pub(super) endpoint: Option<Endpoint>,
    /// Stands before the listener, as the file has to go first.
    pub(super) removal: Option<Removal>,
    pub(super) listener: RawListener,
}

/// What the addresses stand for, each endpoint once; what other machines can reach is a fault unless
/// it `may_be_reachable`.
pub(super) fn resolve(
    addresses: &[Address],
    may_be_reachable: bool,
) -> Result<Vec<Wanted>, Vec<Fault>> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    let mut faults = Vec::new();
    for address in addresses {
        let found = endpoints(address).and_then(|endpoints| {
            match !may_be_reachable && endpoints.iter().any(Endpoint::is_reachable) {
                true => Err(REACHABLE.to_owned()),
                false => Ok(endpoints),
            }
        });
        match found {
            Ok(mut endpoints) => {
                endpoints.retain(|endpoint| seen.insert(endpoint.clone()));
                let address = address.clone();
                all.push(Wanted { address, endpoints });
            }
            Err(problem) => faults.push(Fault::new(address, problem)),
        }
    }
    match faults.is_empty() {
        true => Ok(all),
        false => Err(faults),
    }
}

fn endpoints(address: &Address) -> Result<Vec<Endpoint>, String> {
    match address {
        Address::Unix(path) => Ok(vec![Endpoint::Unix(path.clone())]),
        Address::Tcp { host, port } => {
            let found = (host.as_str(), *port)
                .to_socket_addrs()
                .map_err(|error| format!("cannot find the host: {error}"))?;
            let endpoints: Vec<_> = found.map(Endpoint::Tcp).collect();
            match endpoints.is_empty() {
                true => Err("the host has no IP address".to_owned()),
                false => Ok(endpoints),
            }
        }
    }
}

/// Whether programs on other machines can reach that address.
fn is_reachable_ip(ip: IpAddr) -> bool {
    !ip.to_canonical().is_loopback()
}

impl Endpoint {
    fn is_reachable(&self) -> bool {
        match self {
            Endpoint::Tcp(address) => is_reachable_ip(address.ip()),
            Endpoint::Unix(_) => false,
        }
    }

    fn listen(&self, access: Access) -> Result<Bound, ListenError> {
        let (listener, removal) = match self {
            Endpoint::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                // The standard library lets 128 wait, fewer than may come at once.
                listen(&listener, Backlog::MAXCONN).map_err(io::Error::from)?;
                (RawListener::Tcp(listener), None)
            }
            Endpoint::Unix(path) => {
                let (listener, removal) = listen_at(path, access).map_err(ListenError::Refused)?;
                (RawListener::Unix(listener), Some(removal))
            }
        };
        Ok(Bound {
            endpoint: Some(self.clone()),
            removal,
            listener,
        })
    }
}

impl Wanted {
    /// Listens on the endpoints that are not kept as they are.
    pub(super) fn listen(
        &self,
        is_kept: impl Fn(&Endpoint) -> bool,
        access: Access,
    ) -> Result<Vec<Bound>, Fault> {
        let (kept, new): (Vec<_>, Vec<_>) = self
            .endpoints
            .iter()
            .partition(|endpoint| is_kept(endpoint));
        let mut bound = Vec::new();
        let mut absent = None;
        for endpoint in new {
            match endpoint.listen(access) {
                Ok(listener) => bound.push(listener),
                // `localhost` is also an IPv6 address where the machine has none.
                Err(error) if error.is_absent() => absent = Some(error),
                Err(error) => return Err(Fault::new(&self.address, error.to_string())),
            }
        }
        match absent {
            Some(error) if bound.is_empty() && kept.is_empty() => {
                Err(Fault::new(&self.address, error.to_string()))
            }
            _ => Ok(bound),
        }
    }
}

#[derive(Debug)]
enum ListenError {
    Io(io::Error),
    Refused(String),
}

impl ListenError {
    /// Whether the machine does not have that address.
    fn is_absent(&self) -> bool {
        const NO_SUCH_FAMILY: i32 = nix::errno::Errno::EAFNOSUPPORT as i32;
        match self {
            ListenError::Io(error) => {
                error.kind() == io::ErrorKind::AddrNotAvailable
                    || error.raw_os_error() == Some(NO_SUCH_FAMILY)
            }
            ListenError::Refused(_) => false,
        }
    }
}

impl From<io::Error> for ListenError {
    fn from(error: io::Error) -> Self {
        ListenError::Io(error)
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Io(error) => write!(f, "cannot listen: {error}"),
            ListenError::Refused(problem) => f.write_str(problem),
        }
    }
}

impl Bound {
    /// A socket from systemd, which also sees to its file.
    pub(super) fn passed_on(listener: RawListener) -> Bound {
        Bound {
            endpoint: None,
            removal: None,
            listener,
        }
    }
}

impl RawListener {
    /// Whether programs on other machines can reach it.
    pub(super) fn is_reachable(&self) -> bool {
        match self {
            // One whose address cannot be told is not trusted.
            RawListener::Tcp(listener) => listener
                .local_addr()
                .map_or(true, |address| is_reachable_ip(address.ip())),
            RawListener::Unix(_) => false,
        }
    }
}

impl fmt::Display for RawListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawListener::Tcp(listener) => match listener.local_addr() {
                Ok(address) => write!(f, "tcp:{address}"),
                Err(_) => f.write_str("tcp"),
            },
            RawListener::Unix(listener) => {
                let address = listener.local_addr().ok();
                match address.as_ref().and_then(|address| address.as_pathname()) {
                    Some(path) => write!(f, "unix:{}", path.display()),
                    None => f.write_str("unix"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, may_be_reachable: bool) -> Result<Vec<Wanted>, String> {
        let addresses: Vec<_> = text.split(' ').map(|one| one.parse().unwrap()).collect();
        resolve(&addresses, may_be_reachable).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
            faults.join("\n")
        })
    }

    #[test]
    fn strangers_are_may_be_reachable() {
        for text in [
            "tcp:127.0.0.1:1",
            "tcp:127.9.8.7:1",
            "tcp:[::1]:1",
            "tcp:localhost:1",
            "unix:s",
        ] {
            assert!(resolved(text, false).is_ok(), "{text}");
        }
        for text in [
            "tcp:0.0.0.0:1",
            "tcp:[::]:1",
            "tcp:192.0.2.1:1",
            "tcp:[::ffff:192.0.2.1]:1",
        ] {
            let fault = resolved(text, false).unwrap_err();
            assert!(
                fault.starts_with(&format!("{text}: other machines")),
                "{fault}"
            );
            assert!(fault.contains("--tls-client-ca"), "{fault}");
            assert!(resolved(text, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn every_fault_is_told_and_no_endpoint_comes_twice() {
        let faults = resolved("tcp:0.0.0.0:1 unix:s tcp:192.0.2.1:1", false).unwrap_err();
        assert_eq!(faults.lines().count(), 2, "{faults}");
        let all = resolved("tcp:127.0.0.1:1 unix:s tcp:localhost:1 unix:s", false).unwrap();
        let endpoints: Vec<_> = all.iter().flat_map(|one| &one.endpoints).collect();
        let different: HashSet<_> = endpoints.iter().collect();
        assert_eq!(different.len(), endpoints.len());
    }
}
