//! Verdicts are those of the second verifier.

use crate::{assert_agrees, generate};

#[test]
fn agrees_with_the_reference_on_generated_traces() {
    for seed in 0..3000 {
        assert_agrees(&generate::trace(seed), &format!("seed {seed}"));
    }
}

#[test]
fn agrees_with_the_reference_on_valid_traces() {
    for seed in 0..500 {
        assert_agrees(&generate::valid_trace(seed), &format!("seed {seed}"));
    }
}
