//! Sweeps: looks from the very beginning of all queues, now and then, where other looks have bounds.

use std::sync::Arc;
use std::time::Instant;

use tokio_postgres::Row;

use crate::error::PgError;
use crate::lanes::Swept;
use crate::store::Store;
use crate::text::unpack;

const SWEEP: &str = "SELECT * FROM duroxide.sweep($1)";

/// Begins a sweep if one is due. It reads, by a connection that nobody waits for.
pub(crate) fn sweep_if_due(store: &Arc<Store>) {
    let Some(due_from) = store.floor.begin_sweep() else { return };
    let store = Arc::clone(store);
    store.pool.driver().handle().clone().spawn(async move {
        let began = Instant::now();
        let swept = match sweep(&store, due_from).await {
            Ok(swept) => swept,
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "no sweep");
                None
            }
        };
        store.floor.end_sweep(swept, began.elapsed());
    });
}

async fn sweep(store: &Store, due_from: i64) -> Result<Option<Swept>, PgError> {
    let known_pins = store.known_pins();
    let rows = store.pool.query(SWEEP, &[&due_from]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let tags = pairs(row, "tags", "tag_places").into_iter();
    let tags = tags.map(|(tag, place): (Option<String>, i64)| (tag.map(unpack), place));
    Ok(Some(Swept {
        next_place: row.get("next_place"),
        pins: pairs(row, "pins", "pin_places"),
        known_pins,
        tags: tags.collect(),
        due: row.get("due"),
        entries: row.get("entries"),
    }))
}

/// Two columns of arrays as one.
fn pairs<'r, T>(row: &'r Row, what: &str, places: &str) -> Vec<(T, i64)>
where
    Vec<T>: tokio_postgres::types::FromSql<'r>,
{
    let what: Option<Vec<T>> = row.get(what);
    let places: Option<Vec<i64>> = row.get(places);
    what.unwrap_or_default().into_iter().zip(places.unwrap_or_default()).collect()
}
