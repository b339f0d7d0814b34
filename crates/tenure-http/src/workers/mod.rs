//! Workers in any language: they claim jobs, say that they live, and tell how it went.

pub(crate) mod attempt;
pub(crate) mod beat;
mod book;
pub(crate) mod claim;
pub(crate) mod commands;
pub(crate) mod grant;
pub(crate) mod granted;
pub(crate) mod key;
pub(crate) mod large;
mod listed;
pub(crate) mod logs;
pub(crate) mod overdue;
mod owners;
mod places;
pub(crate) mod roll;
pub(crate) mod settle;
pub(crate) mod token;
pub(crate) mod verdict;
pub(crate) mod waiting;
