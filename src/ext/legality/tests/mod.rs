//! Tests of fusion: each rule by itself ([`rules`], [`storage`]), and random proposals on random graphs ([`property`]), held against
//! the rules as written down a second time ([`oracle`]), against a simulation of every byte ([`simulate`]), and against computing
//! them ([`compute`]).
#![allow(clippy::unwrap_used)]

pub(in crate::ext) mod compute;
pub(in crate::ext) mod draw;
mod oracle;
mod property;
mod rules;
pub(in crate::ext) mod simulate;
mod storage;
