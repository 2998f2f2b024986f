//! Looking out: this node's place among the others, what they tell, and whether they live.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_postgres::{Notification, Row};

use crate::connection::Connection;
use crate::error::PgError;
use crate::lanes::Queue;
use crate::news::{Heard, News};
use crate::store::Store;
use crate::sweep::sweep_if_due;
use crate::value::Values;

/// Time at least between notifications: sending one makes other commits of the database wait.
const BREATH: Duration = Duration::from_millis(5);
/// Pause after something went wrong.
const RECOVERY: Duration = Duration::from_millis(200);

const PULSE_CALL: &str = "SELECT * FROM duroxide.pulse($1, $2, $3, $4, $5)";

/// Looks out until the store is closed.
pub(crate) async fn watch(store: Arc<Store>) {
    let _ends = store.membership.ends_when_dropped();
    let settings = store.pool.settings();
    let pulse_interval = settings.pulse_interval;
    if !settings.listen || settings.through_pooler {
        store.membership.end();
        return poll(&store).await;
    }
    let mut node = None;
    while !store.floor.is_closed() {
        let began = Instant::now();
        if let Err(error) = watch_connected(&store, &mut node).await {
            store.membership.end();
            store.floor.drop_bounds();
            tracing::debug!(target: "duroxide::providers::postgres", %error, "not listening");
            // Others take what this node holds at their next pulse, unless it is back before.
            let pause = if pulse_interval < began.elapsed() { Duration::ZERO } else { RECOVERY };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = store.closing.notified() => return,
            }
        }
    }
}

/// Looks out by one connection, which is this node's proof of life.
async fn watch_connected(store: &Arc<Store>, node: &mut Option<i64>) -> Result<(), PgError> {
    const JOIN: &str = "SELECT duroxide.join_node($1, $2, $3)";
    let (ear, mut heard) = mpsc::unbounded_channel();
    let connection = store.pool.connect_listener(ear).await?;
    let (name, now) = (&store.pool.settings().application_name, store.given_time());
    let rows = store.pool.ask(&connection, JOIN, &[node, name, &now]).await?;
    let Some(id) = rows.first().map(|row| row.get::<_, i64>(0)) else {
        return Err(PgError::Connection { reason: "no answer to join_node".to_owned() });
    };
    store.membership.join(id);
    let listen = format!("LISTEN {}", store.channel());
    connection.execute(&listen, store.pool.settings().statement_timeout).await?;
    let pulse_interval = store.pool.settings().pulse_interval;
    let mut first_pulse = Instant::now();
    if node.replace(id).is_some() {
        // What was said meanwhile, here or there, nobody heard.
        store.ring_everything();
        store.outbox.add(News::add_everything);
        // Others may have lost their connections, too, and are about to be back.
        first_pulse += pulse_interval;
    }
    store.outbox.add(|news| news.company = true);

    let mut pulse = tokio::time::interval_at(first_pulse, pulse_interval);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_word = None;
    loop {
        tokio::select! {
            () = store.closing.notified() => {
                sign_off(store, &connection, id).await;
                return Ok(());
            }
            message = heard.recv() => match message {
                Some(message) => listen_to(store, id, &message),
                None => return Err(PgError::Connection { reason: "connection lost".to_owned() }),
            },
            _ = pulse.tick() => {
                look_around(store, &connection, Some(id)).await?;
            }
            () = store.outbox.wait() => {
                if let Some(last) = last_word {
                    tokio::time::sleep_until(last + BREATH).await;
                }
                last_word = Some(Instant::now());
                tell(store, &connection, id).await?;
            }
        }
    }
}

/// Where nobody listens: asks, often while there is something to do, here or elsewhere, seldom otherwise.
async fn poll(store: &Arc<Store>) {
    let longest = store.pool.settings().pulse_interval;
    let shortest = store.pool.settings().poll_interval.min(longest);
    let mut interval = shortest;
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = store.closing.notified() => return,
        }
        let node: Option<i64> = None;
        let [turns, work, due] = store.floor.bounds();
        let values: &Values<'_> = &[&node, &store.given_time(), &turns, &work, &due];
        match store.pool.query(PULSE_CALL, values).await {
            Ok(rows) => {
                let is_news = note_pulse(store, &rows) | store.floor.was_busy();
                if store.board.is_watched() {
                    store.board.ring_all();
                }
                interval = if is_news { shortest } else { (interval * 2).min(longest) };
            }
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "no pulse");
                store.floor.drop_bounds();
                interval = longest;
            }
        }
    }
}

async fn look_around(
    store: &Arc<Store>,
    connection: &Connection,
    node: Option<i64>,
) -> Result<(), PgError> {
    let [turns, work, due] = store.floor.bounds();
    let values: &Values<'_> = &[&node, &store.given_time(), &turns, &work, &due];
    match store.pool.ask(connection, PULSE_CALL, values).await {
        Ok(rows) => {
            note_pulse(store, &rows);
            Ok(())
        }
        Err(error) if error.spoils_connection() || !connection.is_open() => Err(error),
        Err(error) => {
            // Without pulses there are no sweeps, which make good for what bounds leave out.
            store.floor.drop_bounds();
            tracing::debug!(target: "duroxide::providers::postgres", %error, "no pulse");
            Ok(())
        }
    }
}

/// What a look around means for those who wait; whether there is anything for them.
fn note_pulse(store: &Arc<Store>, rows: &[Row]) -> bool {
    let Some(row) = rows.first() else { return false };
    let now: i64 = row.get("now_ms");
    store.note_time(now);
    if let Some(sizes) = row.get("sizes") {
        store.pool.plans().note_sizes(sizes);
    }
    store.note_company(0 < row.get::<_, i64>("others"));
    let has_ended = 0 < row.get::<_, i64>("ended");
    let (mut is_news, mut first_due) = (false, now);
    for (queue, has, due) in
        [(Queue::Turns, "has_turns", "turns_due"), (Queue::Work, "has_work", "work_due")]
    {
        if has_ended || row.get::<_, Option<bool>>(has) == Some(true) {
            is_news = true;
            store.look_properly(queue);
        }
        if let Some(due) = row.get::<_, Option<i64>>(due) {
            first_due = first_due.min(due);
            let until = u64::try_from(due.saturating_sub(now)).unwrap_or(0);
            let until = Duration::from_millis(until);
            if until <= 2 * store.pool.settings().pulse_interval {
                store.floor.expect(queue, Instant::now() + until);
            }
        }
    }
    if store.given_time().is_none() {
        store.floor.note_pulse(first_due, row.get("entries"));
        sweep_if_due(store);
    }
    is_news
}

fn listen_to(store: &Store, own: i64, notification: &Notification) {
    let Some(heard) = Heard::read(notification.payload()) else { return };
    if heard.node == own {
        return;
    }
    if heard.news.company {
        // Somebody came, who may not know of us; or went, and the next pulse tells.
        store.note_company(true);
        store.look_properly(Queue::Turns);
        store.look_properly(Queue::Work);
    }
    if heard.news.turns {
        store.floor.ring(Queue::Turns);
    }
    if heard.news.work {
        store.floor.ring(Queue::Work);
    }
    if heard.news.all_bells {
        store.board.ring_all();
    }
    heard.news.bells.iter().for_each(|bell| store.board.ring(*bell));
}

/// Tells others what has gathered.
async fn tell(store: &Store, connection: &Connection, node: i64) -> Result<(), PgError> {
    const TELL: &str = "SELECT duroxide.tell($1, $2)";
    let news = store.outbox.take();
    if news.is_empty() {
        return Ok(());
    }
    store.pool.ask(connection, TELL, &[&store.channel_name(), &news.to_text(node)]).await?;
    Ok(())
}

/// Gives up what this node still holds, so that nobody has to find out.
async fn sign_off(store: &Store, connection: &Connection, node: i64) {
    const LEAVE: &str = "SELECT duroxide.leave_node($1, $2)";
    store.outbox.add(|news| (news.turns, news.work, news.company) = (true, true, true));
    let left = store.pool.ask(connection, LEAVE, &[&node, &store.given_time()]).await;
    let told = tell(store, connection, node).await;
    if let Err(error) = left.map(drop).and(told) {
        // Others find out by themselves.
        tracing::debug!(target: "duroxide::providers::postgres", %error, "no farewell");
    }
}
