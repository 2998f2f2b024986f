//! How messages reach an instance: delivered, put aside, given up, offered as a turn.
//!
//! After each of these steps the mailbox row says what a look at all the messages would say, so that
//! a fetch finds the next turn by an index and nothing else.

use crate::long_text::whole;
use crate::tables::instances::{self, Instance};
use crate::tables::mailboxes::{self, Mailbox, State};
use crate::tables::messages::{self, Arrival, Kind, Message};
use crate::tables::{Sql, hidden, long_texts, ms_in, ms_out, sessions, starts, work};
use crate::tx::Tx;

/// How much one step of time may bring about; the rest follows at once in the next transaction.
const DUE_AT_ONCE: i64 = 1000;

/// Why messages are given up whose key belongs to no instance.
const NOBODY: &str = "the instance it was for is missing from the store";

/// Puts a message into a mailbox, now or when it is due (R8.10).
pub(crate) fn post(
    tx: &mut Tx<'_>,
    instance: &Instance,
    visible_at: u64,
    message: Message<'_>,
) -> Sql<()> {
    let seq = tx.next_seq()?;
    if tx.now < visible_at {
        hidden::insert(tx.connection, instance.key, seq, visible_at, message)?;
        // A start to come is worth waiting for (R8.28).
        if message.kind == Kind::Start && mailboxes::get(tx.connection, instance.key)?.is_some() {
            settle(tx, instance.key)?;
        }
        return Ok(());
    }
    // What is overdue has not waited here since it was due.
    deliver(tx, instance, seq, visible_at.max(tx.now), message)
}

/// Lets time pass: messages become due, locks and waits end. Once in a transaction is enough.
pub(crate) fn advance(tx: &mut Tx<'_>) -> Sql<()> {
    if std::mem::replace(&mut tx.messages_are_due, true) {
        return Ok(());
    }
    for mut due in hidden::due(tx.connection, tx.now, DUE_AT_ONCE)? {
        hidden::delete(tx.connection, due.visible_at, due.seq)?;
        let Some(instance) = instances::by_key(tx.connection, due.instance)? else {
            long_texts::fetch(tx.connection, due.instance, &mut due.text_reference)?;
            tx.dead_letter("", whole(due.payload, due.text_reference), NOBODY)?;
            continue;
        };
        let message = Message {
            kind: due.kind,
            attempts: due.attempts,
            payload: &due.payload,
            long_text: due.text_reference.map(|text_reference| text_reference.key),
            parent: due.parent.as_deref(),
        };
        deliver(tx, &instance, due.seq, ms_out(due.visible_at), message)?;
    }
    let mut ran_out = Vec::new();
    for (ended_at, key) in mailboxes::due(tx.connection, tx.now, DUE_AT_ONCE)? {
        match mailboxes::get(tx.connection, key)? {
            Some(mailbox) if mailbox.state == State::Locked => {
                let oldest = messages::oldest(tx.connection, key)?.unwrap_or(0);
                ran_out.push((ended_at, mailbox.place(oldest), key, mailbox));
            }
            Some(mailbox) if mailbox.state == State::AwaitingStart => {
                give_up_old(tx, key)?;
                settle(tx, key)?;
            }
            Some(mailbox) if mailbox.state == State::Waiting => settle_from(tx, key, mailbox)?,
            _ => settle(tx, key)?,
        }
    }
    ran_out.sort_unstable_by_key(|(ended_at, place, ..)| (*ended_at, *place));
    for (_, _, key, mailbox) in ran_out {
        // A lock that ended without a commit was an attempt, and what was tried goes behind what can
        // be fetched now (R8.146).
        messages::count_taken(tx.connection, key, mailbox.batch, 1)?;
        let moved_to = Some(tx.next_seq()?);
        settle_from(tx, key, Mailbox { moved_to, ..mailbox })?;
    }
    Ok(())
}

/// The same for activities.
pub(crate) fn advance_work(tx: &mut Tx<'_>) -> Sql<()> {
    if std::mem::replace(&mut tx.work_is_due, true) || !work::is_due(tx.connection, tx.now)? {
        return Ok(());
    }
    let mut awake = work::show(tx.connection, tx.now)? + sessions::lapse(tx.connection, tx.now)?;
    for seq in work::ran_out(tx.connection, tx.now)? {
        let position = tx.next_seq()?;
        work::move_to(tx.connection, seq, position)?; // R8.146
        awake += 1;
    }
    if 0 < awake {
        tx.effects.work_ready = true;
    }
    Ok(())
}

/// Gives up the messages of instances that only queue messages refer to (R8.28), once in a
/// transaction.
pub(crate) fn dead_letter_undeliverable(tx: &mut Tx<'_>) -> Sql<()> {
    if std::mem::replace(&mut tx.has_dead_lettered, true) {
        return Ok(());
    }
    for key in mailboxes::undeliverable(tx.connection, DUE_AT_ONCE)? {
        let reason = "queue message for an instance that does not exist";
        for seq in messages::positions(tx.connection, key, DUE_AT_ONCE)? {
            dead_letter(tx, key, seq, reason)?;
        }
        settle(tx, key)?;
    }
    Ok(())
}

/// Gives up a mailbox whose instance is missing: it must not keep others waiting.
pub(crate) fn dead_letter_all(tx: &mut Tx<'_>, key: i64) -> Sql<()> {
    for seq in messages::positions(tx.connection, key, i64::MAX)? {
        dead_letter(tx, key, seq, NOBODY)?;
    }
    mailboxes::delete(tx.connection, key)
}

/// Takes one message out of its mailbox, for people to look at.
pub(crate) fn dead_letter(tx: &mut Tx<'_>, key: i64, seq: i64, reason: &str) -> Sql<()> {
    let Some((payload, text_reference)) = messages::delete(tx.connection, key, seq)? else {
        return Ok(());
    };
    let instance = instances::by_key(tx.connection, key)?;
    let id = instance.as_ref().map_or("", |instance| &instance.id);
    tx.dead_letter(id, whole(payload, text_reference), reason)
}

/// Opens a mailbox whose lock was given back. It keeps its place.
pub(crate) fn unlock(tx: &mut Tx<'_>, key: i64, moved_to: Option<i64>) -> Sql<()> {
    settle_from(tx, key, Mailbox { moved_to, ..Mailbox::resting() })
}

/// The same after a turn that had left messages behind: nothing can be fetched until then (R8.149).
pub(crate) fn unlock_later(
    tx: &mut Tx<'_>,
    key: i64,
    moved_to: Option<i64>,
    until: u64,
) -> Sql<()> {
    let (state, wake_at) = (State::Waiting, Some(ms_in(until)));
    let waiting = Mailbox { state, wake_at, moved_to, ..Mailbox::resting() };
    mailboxes::put(tx.connection, key, &waiting)
}

/// Opens a mailbox whose lock was used up.
pub(crate) fn unlock_used(tx: &mut Tx<'_>, instance: &Instance) -> Sql<()> {
    let key = instance.key;
    if instance.identity.is_some() && mailboxes::delete_if_empty(tx.connection, key)? {
        return Ok(());
    }
    match messages::oldest(tx.connection, key)? {
        Some(oldest) => put_judged(tx, instance, Mailbox::resting(), oldest),
        None if instance.identity.is_some() => Ok(()), // There was no mailbox.
        None => forget(tx, key),
    }
}

/// Brings a mailbox in line with its messages.
pub(crate) fn settle(tx: &mut Tx<'_>, key: i64) -> Sql<()> {
    match mailboxes::get(tx.connection, key)? {
        // If its time is up, the next fetch sees to it.
        Some(locked) if locked.state == State::Locked => Ok(()),
        // It opens when it is due, or when nothing is left to wait for.
        Some(waiting)
            if waiting.state == State::Waiting
                && messages::oldest(tx.connection, key)?.is_some() =>
        {
            Ok(())
        }
        Some(mailbox) => settle_from(tx, key, mailbox),
        None => settle_from(tx, key, Mailbox::resting()),
    }
}

fn deliver(
    tx: &mut Tx<'_>,
    instance: &Instance,
    seq: i64,
    since: u64,
    message: Message<'_>,
) -> Sql<()> {
    let key = instance.key;
    if instance.is_new && message.kind == Kind::Start {
        // The common case needs no looking.
        tx.effects.turns_ready = true;
        messages::insert(tx.connection, key, Arrival { seq, since, late: false }, message)?;
        return mailboxes::insert_ready(tx.connection, key, seq);
    }
    let c = tx.connection;
    let mailbox = mailboxes::mailbox_summary(c, key)?;
    // The holder of a lock, present or past, must not take it for part of the locked batch.
    let late = mailbox.as_ref().is_some_and(|mailbox| mailbox.was_locked);
    messages::insert(tx.connection, key, Arrival { seq, since, late }, message.behind_others())?;
    match mailbox {
        // It is looked at when the lock is used up or given back.
        Some(mailbox) if mailbox.state == State::Locked => Ok(()),
        // The message waits with the others.
        Some(mailbox) if mailbox.state == State::Waiting => Ok(()),
        Some(mailbox) if mailbox.state == State::Ready => {
            let place = mailbox.place(seq);
            match mailbox.head {
                Some(head) if place < head => mailboxes::set_head(c, key, place),
                _ => Ok(()),
            }
        }
        // One more of what is aside already changes nothing, however many there are.
        Some(mailbox) if mailbox.state == State::AwaitingStart && message.kind != Kind::Start => {
            Ok(())
        }
        Some(mailbox) if mailbox.state == State::Undeliverable && message.kind == Kind::Queue => {
            Ok(())
        }
        Some(_) => settle(tx, key),
        None => put_judged(tx, instance, Mailbox::resting(), seq),
    }
}

fn settle_from(tx: &mut Tx<'_>, key: i64, mailbox: Mailbox) -> Sql<()> {
    let Some(oldest) = messages::oldest(tx.connection, key)? else {
        // A mailbox whose lock ended without a commit stays marked while there are messages to come.
        if mailbox.moved_to.is_some() && hidden::any(tx.connection, key)? {
            let resting = Mailbox { state: State::Resting, head: None, wake_at: None, ..mailbox };
            return mailboxes::put(tx.connection, key, &resting);
        }
        return forget(tx, key);
    };
    let Some(instance) = instances::by_key(tx.connection, key)? else { return Ok(()) };
    put_judged(tx, &instance, mailbox, oldest)
}

fn put_judged(tx: &mut Tx<'_>, instance: &Instance, mailbox: Mailbox, oldest: i64) -> Sql<()> {
    let mailbox = judge(tx, instance, mailbox, oldest)?;
    mailboxes::put(tx.connection, instance.key, &mailbox)
}

/// Removes a mailbox that is empty, and the name with it if nothing else refers to it.
fn forget(tx: &mut Tx<'_>, key: i64) -> Sql<()> {
    mailboxes::delete(tx.connection, key)?;
    if instances::delete_if_mere_name(tx.connection, key)? {
        tx.delete_long_texts(key)?;
    }
    Ok(())
}

/// What can be done with a mailbox that is not locked.
fn judge(tx: &mut Tx<'_>, instance: &Instance, mailbox: Mailbox, oldest: i64) -> Sql<Mailbox> {
    let (c, key) = (tx.connection, instance.key);
    let unlocked = Mailbox { head: None, wake_at: None, ..mailbox };
    let known = tx.is_known(instance)?;
    if known || starts::has_start(c, key)? {
        tx.effects.turns_ready = true;
        // R8.90: no instance row, no pin.
        let pin = if instance.identity.is_some() { instance.pin } else { 0 };
        let head = Some(unlocked.place(oldest));
        return Ok(Mailbox { state: State::Ready, pin, head, ..unlocked });
    }
    if hidden::has_start(c, key)? {
        return Ok(Mailbox { state: State::Resting, ..unlocked });
    }
    if messages::only_queue_messages(c, key)? {
        return Ok(Mailbox { state: State::Undeliverable, ..unlocked });
    }
    let since = messages::oldest_since(c, key)?.unwrap_or_default();
    let wake_at = since.saturating_add(ms_in(tx.settings.orphan_retention_ms));
    Ok(Mailbox { state: State::AwaitingStart, wake_at: Some(wake_at), ..unlocked })
}

/// Gives up messages that have waited for a start long enough (R8.29).
fn give_up_old(tx: &mut Tx<'_>, key: i64) -> Sql<()> {
    let retention_ms = tx.settings.orphan_retention_ms;
    let reason = format!("no such instance appeared within {} s", retention_ms / 1000);
    let limit = ms_in(tx.now.saturating_sub(retention_ms));
    while let Some(since) = messages::oldest_since(tx.connection, key)?
        && since <= limit
        && let Some(seq) = messages::oldest(tx.connection, key)?
    {
        dead_letter(tx, key, seq, &reason)?;
    }
    Ok(())
}
