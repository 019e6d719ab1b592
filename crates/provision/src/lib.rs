//! A pool of pre-populated memory: its broker, and the statistics of the runtime inside programs.
//!
//! [`manage`] creates, changes and removes pools and sends requests to their brokers; [`broker`] is a broker. A pool has a directory
//! ([`state`]) and consists of segments, each a file ([`backing`]) or a device ([`dax`]); the [`ledger`] records who leases which. The
//! runtime uses [`protocol`] and `bursar pool` uses [`control`], both on the same [`socket`].
#![allow(unsafe_code)]

mod backing;
pub mod broker;
pub mod control;
mod dax;
mod error;
mod ledger;
pub mod manage;
pub mod owner;
pub mod prezero;
mod protocol;
mod reserve;
pub mod sentences;
pub mod size;
mod socket;
pub mod state;
pub mod stats;
mod worker;

pub use error::Error;
