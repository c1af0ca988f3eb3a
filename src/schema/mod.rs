//! The documents of the schema: identifiers, predicates, requirements, declarations, and the
//! `scheduling` object that records a placement.

pub mod identifier;
pub mod predicate;

pub use predicate::{Predicate, PredicateKind};
