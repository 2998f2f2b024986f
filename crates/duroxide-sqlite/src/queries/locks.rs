//! Which locks on activities are gone (R8.148).

use crate::database::Db;
use crate::error::OpError;
use crate::tables::work;
use crate::token::read_work;

/// The ones of these tokens whose activity is gone, or was locked by another worker since.
pub(crate) fn lost_work(c: Db<'_>, tokens: &[String]) -> Result<Vec<String>, OpError> {
    let mut lost = Vec::new();
    for token in tokens {
        let is_held = match read_work(token) {
            Ok((seq, secret)) => work::get(c, seq)?.is_some_and(|work| work.token == Some(secret)),
            Err(_) => false,
        };
        if !is_held {
            lost.push(token.clone());
        }
    }
    Ok(lost)
}
