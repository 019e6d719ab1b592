//! The kernel's memory interfaces, typed.
#![allow(unsafe_code)]

pub mod wait;
