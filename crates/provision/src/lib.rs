//! The pool of memory that is there before a program asks: its broker, and what the runtime within programs tells of it.
//!
//! [`manage`] makes, changes and removes pools and asks their brokers; [`broker`] is a broker. A pool lives in a directory
//! ([`state`]) and is segments, each a file ([`backing`]) or a device ([`dax`]); who has which is the [`ledger`]'s. The
//! runtime speaks [`protocol`], `bursar pool` speaks [`control`], both on the same [`socket`].
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
pub mod told;
mod worker;

pub use error::Error;
