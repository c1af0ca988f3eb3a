//! Tables in Markdown, and the statistics that stand in them.

use std::fmt;

/// A table, printed with columns in line.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Table {
            rows: vec![head.map(str::to_owned).to_vec()],
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// A target that was measured. `range` has the least and the greatest of what `result` is the
    /// median of.
    pub(crate) fn target(
        &mut self,
        what: &str,
        target: &str,
        result: String,
        range: String,
        met: bool,
    ) {
        let met = if met { "yes" } else { "no" };
        self.row([
            what.to_owned(),
            target.to_owned(),
            result,
            range,
            met.to_owned(),
        ]);
    }

    /// A target that was not measured, and why.
    pub(crate) fn left_out(&mut self, what: &str, target: &str, why: &str) {
        let cell = str::to_owned;
        self.row([
            cell(what),
            cell(target),
            cell(why),
            String::new(),
            String::new(),
        ]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            cells
                .clone()
                .try_for_each(|(cell, width)| write!(f, "| {cell:width$} "))?;
            writeln!(f, "|")?;
            if index == 0 {
                widths
                    .iter()
                    .try_for_each(|width| write!(f, "| {} ", "-".repeat(*width)))?;
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// The median of what was measured, with the least and the greatest of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Spread {
            least: values[0],
            median,
            greatest: values[values.len() - 1],
        }
    }

    pub(crate) fn range(&self, digits: usize, unit: &str) -> String {
        format!(
            "{:.digits$} to {:.digits$}{unit}",
            self.least, self.greatest
        )
    }
}
