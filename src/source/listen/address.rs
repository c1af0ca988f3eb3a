//! Where connections are taken, as it is written on the command line and in the configuration.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::emit::sanitise::visible;

/// Longest path of a Unix socket: the kernel's `sun_path`, without the NUL at its end.
pub(super) const MAX_UNIX_PATH_BYTES: usize = 107;

/// Longest part of what was given that a message repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// What an address looks like.
const EXPECTED: &str = "tcp:HOST:PORT or unix:PATH, as in tcp:127.0.0.1:7171";

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A name or an IP address, and a port of it; port 0 is one that the kernel chooses.
    Tcp {
        /// An IPv6 address stands here without its brackets.
        host: String,
        port: u16,
    },
    /// The path of a socket in the file system.
    Unix(PathBuf),
}

/// Why a text is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressError {
    /// What is wrong, safe to be shown.
    pub(crate) problem: String,
    /// What should be there.
    pub(crate) expected: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        if let Some(rest) = text.strip_prefix("tcp:") {
            return tcp(text, rest);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(text, path);
        }
        Err(wrong(text, "is no address to listen on", EXPECTED))
    }
}

fn tcp(text: &str, rest: &str) -> Result<Address, AddressError> {
    if rest.starts_with("//") {
        return Err(wrong(text, "is a URL", EXPECTED));
    }
    let (host, port) = match rest.strip_prefix('[') {
        Some(inside) => {
            let Some((host, port)) = inside.split_once("]:") else {
                let expected = "tcp:[ADDRESS]:PORT, as in tcp:[::1]:7171";
                return Err(wrong(text, "has no port after its brackets", expected));
            };
            let address = host.split_once('%').map_or(host, |(address, _)| address);
            if address.parse::<Ipv6Addr>().is_err() {
                let expected = "an IPv6 address there, as in tcp:[::1]:7171";
                return Err(wrong(text, "has no IPv6 address in its brackets", expected));
            }
            (host, port)
        }
        None => {
            let Some((host, port)) = rest.rsplit_once(':') else {
                return Err(wrong(text, "has no port", EXPECTED));
            };
            if host.contains(':') {
                let expected = "an IPv6 address in brackets, as in tcp:[::1]:7171";
                return Err(wrong(text, "has more than one colon", expected));
            }
            (host, port)
        }
    };
    if host.is_empty() {
        let expected = "tcp:127.0.0.1:PORT for this machine alone, tcp:0.0.0.0:PORT for all";
        return Err(wrong(text, "has no host", expected));
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(wrong(text, "has no name of a host", EXPECTED));
    }
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port) if is_number => Ok(Address::Tcp {
            host: host.to_owned(),
            port,
        }),
        _ => Err(wrong(text, "has no such port", "a port from 0 to 65535")),
    }
}

fn unix(text: &str, path: &str) -> Result<Address, AddressError> {
    if path.is_empty() {
        let expected = "unix:PATH, as in unix:/run/tracecheck/socket";
        return Err(wrong(text, "has no path", expected));
    }
    if path.len() > MAX_UNIX_PATH_BYTES {
        let expected = "at most 107 bytes, which is all that the kernel takes";
        return Err(wrong(text, "has too long a path", expected));
    }
    if path.contains('\0') {
        return Err(wrong(text, "has a NUL in its path", "a path without"));
    }
    if path.ends_with('/') {
        let expected = "the path of the socket itself";
        return Err(wrong(text, "ends in a slash", expected));
    }
    Ok(Address::Unix(path.into()))
}

fn wrong(text: &str, problem: &str, expected: &'static str) -> AddressError {
    AddressError {
        problem: format!("`{}` {problem}", visible(text, MAX_SHOWN_CHARS)),
        expected,
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected {}", self.problem, self.expected)
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, host, port) in [
            ("tcp:127.0.0.1:7171", "127.0.0.1", 7171),
            ("tcp:localhost:0", "localhost", 0),
            ("tcp:[::1]:65535", "::1", 65535),
            ("tcp:[fe80::1%2]:1", "fe80::1%2", 1),
        ] {
            let address: Address = text.parse().unwrap();
            let host = host.to_owned();
            assert_eq!(address, Address::Tcp { host, port });
            assert_eq!(address.to_string(), text);
        }
        for path in ["/run/t.sock", "s.sock", "a:b", &"x".repeat(107)] {
            let text = format!("unix:{path}");
            let address: Address = text.parse().unwrap();
            assert_eq!(address, Address::Unix(path.into()));
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_was_expected() {
        for (text, problem) in [
            ("", "`` is no address to listen on"),
            ("127.0.0.1:7171", "is no address to listen on"),
            ("TCP:127.0.0.1:7171", "is no address to listen on"),
            ("udp:127.0.0.1:7171", "is no address to listen on"),
            ("tcp://127.0.0.1:7171", "is a URL"),
            ("tcp:7171", "has no port"),
            ("tcp::7171", "has no host"),
            ("tcp:localhost", "has no port"),
            ("tcp:localhost:", "has no such port"),
            ("tcp:localhost:http", "has no such port"),
            ("tcp:localhost:+80", "has no such port"),
            ("tcp:localhost:65536", "has no such port"),
            ("tcp:::1:7171", "has more than one colon"),
            ("tcp:[::1]", "has no port after its brackets"),
            ("tcp:[::1]7171", "has no port after its brackets"),
            ("tcp:[localhost]:7171", "has no IPv6 address"),
            ("tcp:a b:1", "has no name of a host"),
            ("unix:", "has no path"),
            ("unix:/run/", "ends in a slash"),
            ("unix:a\0b", "`unix:a\\u{0}b` has a NUL in its path"),
            (&format!("unix:{}", "x".repeat(108)), "has too long a path"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.problem.contains(problem), "{text}: {error}");
            assert!(error.to_string().contains("; expected "), "{error}");
        }
    }
}
