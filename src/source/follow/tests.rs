//! Against real files and a clock of their own: each test takes the turns itself.

mod cases;
mod driver;
mod harness;
mod model;
mod resuming;
