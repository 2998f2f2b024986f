//! The bounds that a node gives its looks, as it tells them with each pulse.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::{TestSchema, stranger};

/// Notes what pulses are told.
const NOTE: &str = "
    CREATE TABLE told (turns bigint, work bigint, due bigint);
    INSERT INTO told SELECT b.b, b.b, b.b FROM (SELECT -9223372036854775808 AS b) b;
    ALTER FUNCTION pulse(bigint, bigint, bigint, bigint, bigint) RENAME TO real_pulse;
    CREATE FUNCTION pulse(
        p_node bigint, p_now bigint, p_turns_from bigint, p_work_from bigint, p_due_from bigint,
        OUT now_ms bigint, OUT others bigint, OUT ended bigint, OUT has_turns boolean,
        OUT has_work boolean, OUT turns_due bigint, OUT work_due bigint, OUT entries bigint,
        OUT sizes bigint[])
    LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        -- Of the first node; the others have none.
        UPDATE told SET (turns, work, due) = (p_turns_from, p_work_from, p_due_from)
        WHERE p_node = (SELECT min(n.id) FROM node n WHERE n.gone_at IS NULL AND n.name = 'told');
        SELECT r.* INTO now_ms, others, ended, has_turns, has_work, turns_due, work_due, entries,
            sizes
        FROM real_pulse(p_node, p_now, p_turns_from, p_work_from, p_due_from) r;
    END $$";

/// The name of the node whose bounds are noted.
pub(crate) const NAME: &str = "told";

/// Prepares a schema so that the bounds of the node named [`NAME`] can be read.
pub(crate) async fn prepare(schema: &TestSchema) {
    drop(schema.open().await);
    stranger(&schema.config()).await.batch_execute(NOTE).await.unwrap();
}

/// Where looks for turns, for activities, and for what is due begin.
pub(crate) async fn bounds(client: &Client) -> [i64; 3] {
    let row = client.query_one("SELECT turns, work, due FROM told", &[]).await.unwrap();
    std::array::from_fn(|place| row.get(place))
}

/// Waits until looks for turns and activities begin behind this place.
pub(crate) async fn wait_for(client: &Client, place: i64) {
    let began = Instant::now();
    loop {
        let [turns, work, due] = bounds(client).await;
        if place <= turns.min(work) && 0 < due {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{turns} {work} {due}, not {place}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
