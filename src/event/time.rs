//! Times as RFC 3339 writes them, in UTC.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
const MIN_MILLIS: i64 = -62_167_219_200_000;
const MAX_MILLIS: i64 = 253_402_300_799_999;

/// Appends `time`, cut to the millisecond, such as `2026-03-01T09:30:00.250Z`.
pub(super) fn push_rfc3339(out: &mut Vec<u8>, time: SystemTime) {
    let millis = unix_millis(time).clamp(MIN_MILLIS, MAX_MILLIS);
    let (year, month, day) = civil_date(millis.div_euclid(MILLIS_PER_DAY));
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    // A `Vec` takes whatever is written to it.
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
    );
}

/// Milliseconds since 1970, rounded down.
fn unix_millis(time: SystemTime) -> i64 {
    let saturated = |nanos: u128| i64::try_from(nanos / 1_000_000).unwrap_or(MAX_MILLIS);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => saturated(since.as_nanos()),
        Err(before) => -saturated(before.duration().as_nanos() + 999_999),
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is a year's last: then a month's first day
/// follows from its number by one division, and 400 years (146,097 days) repeat exactly. The
/// method is Howard Hinnant's `civil_from_days`.
fn civil_date(unix_day: i64) -> (i64, i64, i64) {
    let day = unix_day + 719_468; // counted from 0000-03-01
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rfc3339(time: SystemTime) -> String {
        let mut out = Vec::new();
        push_rfc3339(&mut out, time);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn times_are_written_in_utc() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_772_357_400_250, "2026-03-01T09:30:00.250Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn times_before_1970_round_down() {
        for (nanos, text) in [
            (1, "1969-12-31T23:59:59.999Z"),
            (1_000_000, "1969-12-31T23:59:59.999Z"),
            (1_000_001, "1969-12-31T23:59:59.998Z"),
            (86_400_000_000_000, "1969-12-31T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_nanos(nanos)), text);
        }
        let ancient = UNIX_EPOCH - Duration::from_secs(99_999_999_999);
        assert_eq!(rfc3339(ancient), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_of_400_years_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for unix_day in 0..=146_097 {
            assert_eq!(civil_date(unix_day), expected);
            let (year, month, day) = expected;
            expected = if day < days_in(year, month) {
                (year, month, day + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
    }

    fn days_in(year: i64, month: i64) -> i64 {
        match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}
