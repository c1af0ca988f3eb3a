//! Who may connect to a Unix socket: its mode and owner.

use std::str::FromStr;

use nix::unistd::{Gid, Group, Uid, User};

use crate::emit::sanitise::visible;

/// Longest part of what was given that a message repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// The user and the group that a socket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// None leaves it to the process's own.
    pub(crate) user: Option<u32>,
    /// None leaves it to the process's own, or the directory's if that hands its group down.
    pub(crate) group: Option<u32>,
}

impl FromStr for Owner {
    /// What is wrong, safe to be shown.
    type Err = String;

    /// Reads `USER`, `USER:GROUP` or `:GROUP`, names or numbers. Names win, as with chown.
    fn from_str(text: &str) -> Result<Owner, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        if user.is_empty() && group.is_none_or(str::is_empty) {
            return Err("no user and no group".to_owned());
        }
        let user = Some(user).filter(|user| !user.is_empty());
        let group = group.filter(|group| !group.is_empty());
        Ok(Owner {
            user: user.map(user_id).transpose()?,
            group: group.map(group_id).transpose()?,
        })
    }
}

/// Reads permissions as chmod writes them in digits.
///
/// # Errors
///
/// What is wrong, safe to be shown.
pub(crate) fn parse_mode(text: &str) -> Result<u32, String> {
    let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    match u32::from_str_radix(text, 8) {
        Ok(mode) if is_octal && mode <= 0o777 => Ok(mode),
        _ => Err(format!(
            "`{}` is no mode from 0000 to 0777",
            visible(text, MAX_SHOWN_CHARS)
        )),
    }
}

fn user_id(name: &str) -> Result<u32, String> {
    let found = User::from_name(name).map(|user| user.map(|user| user.uid));
    id("user", name, found.map(|id| id.map(Uid::as_raw)))
}

fn group_id(name: &str) -> Result<u32, String> {
    let found = Group::from_name(name).map(|group| group.map(|group| group.gid));
    id("group", name, found.map(|id| id.map(Gid::as_raw)))
}

fn id(what: &str, name: &str, found: nix::Result<Option<u32>>) -> Result<u32, String> {
    let number = || name.parse().ok().filter(|&id: &u32| id != u32::MAX);
    let shown = visible(name, MAX_SHOWN_CHARS);
    match found {
        Ok(found) => found
            .or_else(number)
            .ok_or_else(|| format!("there is no {what} `{shown}`")),
        Err(error) => {
            number().ok_or_else(|| format!("cannot look up the {what} `{shown}`: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_names_or_numbers() {
        let owner = |text: &str| text.parse::<Owner>();
        let is = |user, group| Ok(Owner { user, group });
        assert_eq!(owner("root"), is(Some(0), None));
        assert_eq!(owner("root:root"), is(Some(0), Some(0)));
        assert_eq!(owner("12345:54321"), is(Some(12345), Some(54321)));
        assert_eq!(owner(":0"), is(None, Some(0)));
        assert_eq!(owner("0:"), is(Some(0), None));
        for wrong in [
            "",
            ":",
            "no-such-user",
            "root:no-such-group",
            "-1",
            "4294967295",
        ] {
            assert!(owner(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            owner("no\u{1b}[m").unwrap_err(),
            "there is no user `no\\u{1b}[m`"
        );
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(parse_mode("0660"), Ok(0o660));
        assert_eq!(parse_mode("600"), Ok(0o600));
        assert_eq!(parse_mode("0"), Ok(0));
        for wrong in ["", "888", "1777", "+600", "0o600", "rw", "77777777777777"] {
            assert!(parse_mode(wrong).is_err(), "{wrong}");
        }
    }
}
