//! Carries an operation out on one store.

use std::fmt::Debug;
use std::time::Duration;

use super::answer::Answer;
use super::ops::Op;
use crate::providers::{
    DirectTurn, DispatcherCapabilityFilter, FetchedTurn, Provider, ProviderAdmin, ProviderError,
    TurnCommit,
};

/// The lock of the fetch that follows a long time.
const FETCH_AFTERWARDS: Duration = Duration::from_secs(30);

/// Carries an operation out, with this store's token for it.
pub(super) async fn call(store: &dyn Provider, op: &Op, token: &str) -> Answer {
    match op {
        Op::Advance { .. } | Op::Reopen => done(Ok(())),
        Op::OutlastRetention => fetch_turn(store, FETCH_AFTERWARDS, None, false).await,
        Op::FetchTurn { lock, filter, bare } => {
            fetch_turn(store, *lock, filter.as_ref(), *bare).await
        }
        Op::FetchWork { lock, session, tags } => {
            let fetched =
                store.fetch_work_item(*lock, Duration::ZERO, session.as_ref(), tags).await;
            match fetched {
                Ok(Some((item, token, attempt))) => Answer::work(item, token, attempt),
                Ok(None) => nothing(),
                Err(error) => Answer::plain(Err(error)),
            }
        }
        Op::Send { .. }
        | Op::Commit { .. }
        | Op::AbandonTurn { .. }
        | Op::RenewTurn { .. }
        | Op::Append { .. } => turn_call(store, op, token).await,
        Op::QueueWork { .. }
        | Op::AckWork { .. }
        | Op::CommitDirect { .. }
        | Op::CommitTimers { .. }
        | Op::RenewWork { .. }
        | Op::AbandonWork { .. }
        | Op::RenewSessions { .. }
        | Op::CleanSessions { .. } => work_call(store, op, token).await,
        Op::ReadFrom { .. } | Op::CustomStatus { .. } | Op::Value { .. } => read(store, op).await,
        Op::Delete { .. }
        | Op::DeleteExactly { .. }
        | Op::DeleteBulk { .. }
        | Op::Prune { .. }
        | Op::PruneBulk { .. } => match store.as_management_capability() {
            Some(admin) => admin_call(admin, op).await,
            None => Answer::plain(Err(ProviderError::permanent(op.name(), "no management side"))),
        },
    }
}

fn nothing() -> Answer {
    Answer::plain(Ok("nothing".to_owned()))
}

async fn fetch_turn(
    store: &dyn Provider,
    lock: Duration,
    filter: Option<&DispatcherCapabilityFilter>,
    bare: bool,
) -> Answer {
    match try_fetch_turn(store, lock, filter, bare).await {
        Ok(Some(turn)) => Answer::turn(turn),
        Ok(None) => nothing(),
        Err(error) => Answer::plain(Err(error)),
    }
}

/// A turn that has its history in any case.
async fn try_fetch_turn(
    store: &dyn Provider,
    lock: Duration,
    filter: Option<&DispatcherCapabilityFilter>,
    bare: bool,
) -> Result<Option<FetchedTurn>, ProviderError> {
    if !bare {
        let fetched = store.fetch_orchestration_item(lock, Duration::ZERO, filter).await?;
        return Ok(
            fetched.map(|(item, token, attempt)| FetchedTurn::with_history(item, token, attempt))
        );
    }
    let mut fetched = store.fetch_turn(lock, Duration::ZERO, filter).await?;
    if let Some(turn) = fetched.as_mut().filter(|turn| !turn.history_included) {
        let item = &mut turn.item;
        item.history = store.read_history_from(&item.instance, item.execution_id, 0, None).await?;
    }
    Ok(fetched)
}

async fn turn_call(store: &dyn Provider, op: &Op, token: &str) -> Answer {
    let result = match op.clone() {
        Op::Send { item, delay } => store.enqueue_for_orchestrator(item, delay).await,
        Op::Commit { commit, bundled: true, .. } => {
            return bundled_commit(store, token, *commit).await;
        }
        Op::Commit { commit, .. } => {
            let commit = *commit;
            store
                .ack_orchestration_item(
                    token,
                    commit.execution_id,
                    commit.history_delta,
                    commit.worker_items,
                    commit.orchestrator_items,
                    commit.metadata,
                    commit.cancelled_activities,
                )
                .await
        }
        Op::AbandonTurn { delay, ignore_attempt, .. } => {
            store.abandon_orchestration_item(token, delay, ignore_attempt).await
        }
        Op::RenewTurn { extend_for, .. } => {
            store.renew_orchestration_item_lock(token, extend_for).await
        }
        Op::Append { instance, execution_id, events } => {
            store.append_with_execution(&instance, execution_id, events).await
        }
        other => return misplaced(&other),
    };
    done(result)
}

/// A commit that comes back as it was if it is refused (R8.132).
async fn bundled_commit(store: &dyn Provider, token: &str, commit: TurnCommit) -> Answer {
    let sent = format!("{commit:?}");
    match store.commit_turn(token, commit).await {
        Err(rejected) if format!("{:?}", rejected.commit) != sent => {
            Answer::plain(Ok(format!("another commit came back: {:?}", rejected.commit)))
        }
        result => done(result.map_err(|rejected| rejected.error)),
    }
}

async fn work_call(store: &dyn Provider, op: &Op, token: &str) -> Answer {
    let result = match op.clone() {
        Op::QueueWork { item } => store.enqueue_for_worker(item).await,
        Op::AckWork { completion, .. } => store.ack_work_item(token, completion).await,
        Op::CommitDirect { turn, .. } => {
            let work_token = token.to_owned();
            store.commit_direct_turn(DirectTurn { work_token, ..*turn }).await
        }
        Op::CommitTimers { turn } => store.commit_timer_turn(*turn).await,
        Op::RenewWork { extend_for, .. } => store.renew_work_item_lock(token, extend_for).await,
        Op::AbandonWork { delay, ignore_attempt, .. } => {
            store.abandon_work_item(token, delay, ignore_attempt).await
        }
        Op::RenewSessions { owners, extend_for, idle } => {
            let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
            return shown(store.renew_session_lock(&owners, extend_for, idle).await);
        }
        Op::CleanSessions { idle } => return shown(store.cleanup_orphaned_sessions(idle).await),
        other => return misplaced(&other),
    };
    done(result)
}

async fn read(store: &dyn Provider, op: &Op) -> Answer {
    match op {
        Op::ReadFrom { instance, execution_id, from, limit } => {
            shown(store.read_history_from(instance, *execution_id, *from, *limit).await)
        }
        Op::CustomStatus { instance, last_seen } => {
            shown(store.get_custom_status(instance, *last_seen).await)
        }
        Op::Value { instance, key } => shown(store.get_kv_value(instance, key).await),
        other => misplaced(other),
    }
}

async fn admin_call(admin: &dyn ProviderAdmin, op: &Op) -> Answer {
    match op.clone() {
        Op::Delete { instance, force, typed: true } => {
            shown(admin.try_delete_instance(&instance, force).await)
        }
        Op::Delete { instance, force, .. } => shown(admin.delete_instance(&instance, force).await),
        Op::DeleteExactly { ids, force } => shown(admin.delete_instances_atomic(&ids, force).await),
        Op::DeleteBulk { filter } => shown(admin.delete_instance_bulk(filter).await),
        Op::Prune { instance, options } => shown(admin.prune_executions(&instance, options).await),
        Op::PruneBulk { filter, options } => {
            shown(admin.prune_executions_bulk(filter, options).await)
        }
        other => misplaced(&other),
    }
}

fn done(result: Result<(), ProviderError>) -> Answer {
    Answer::plain(result.map(|()| "done".to_owned()))
}

fn shown(result: Result<impl Debug, ProviderError>) -> Answer {
    Answer::plain(result.map(|value| format!("{value:?}")))
}

fn misplaced(op: &Op) -> Answer {
    Answer::plain(Err(ProviderError::permanent(op.name(), "not one of these calls")))
}
