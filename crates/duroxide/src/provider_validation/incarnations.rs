//! A name that is used again begins anew: nothing of the deleted instance reaches the next one, nor does
//! a child of it begin.

use std::sync::Arc;
use std::time::Duration;

use super::ProviderFactory;
use super::admin_verbs::{Removed, only};
use super::concurrency::{cast, succeeds};
use super::lab::{AT_ONCE, Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::{FetchedTurn, TurnCommit};

const SECTION: &str = "deleting";
const QUEUED: &str = "deleting an instance takes the queued starts of its children along";
const AN_HOUR: Duration = Duration::from_secs(3600);
const ROUNDS: usize = 20;

/// A child whose start is queued never begins, and what was sent to it is gone.
pub async fn queued_children_go_with_their_parent<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, Promise { rule: "R6.68", says: QUEUED, section: SECTION }).await.patient();
    lab.begin("other").await;
    lab.begin("p").await;
    lab.send(raise("other", "x")).await;
    lab.send(raise("p", "x")).await;
    let (other, parent) = (lab.turn_of("other").await, lab.turn_of("p").await);
    let children = commit().message(start_child("others", "other")).message(start("nobody's"));
    lab.committed(&other, children).await;
    lab.committed(&parent, commit().message(start_child("c", "p"))).await;
    lab.send(raise("c", "for the child")).await;
    lab.send(cancel("c")).await;
    let went = Removed { instances: 1, executions: 1, events: 1, messages: 3 };
    lab.same("what went", lab.delete_by_force("p").await, went);
    lab.gone("c").await;
    // Others have their children still.
    lab.begun_child("others", "other").await;
    lab.turn_of("nobody's").await;
    lab.no_turn().await;
    next_life(&lab).await;
}

/// A child whose first turn is running cannot begin.
pub async fn a_child_in_its_first_turn_goes_with_its_parent<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, Promise { rule: "R6.68", says: QUEUED, section: SECTION }).await.patient();
    parent_of_queued(&lab, "p").await;
    let turn = lab.turn_of("c").await;
    lab.send(raise("c", "for the child")).await;
    lab.delete_by_force("p").await;
    let first = || first_commit("c").child_of("p").work(activity("c", 2)).message(child_done("p"));
    lab.refused("ack_orchestration_item", lab.commit(&turn, first()).await, &[]);
    lab.gone("c").await;
    lab.no_turn().await;
    lab.no_job().await;
    next_life(&lab).await;
    lab.refused("ack_orchestration_item", lab.commit(&turn, first()).await, &[]);
}

/// So is one whose start was given back for later.
pub async fn a_delayed_child_goes_with_its_parent<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, Promise { rule: "R6.68", says: QUEUED, section: SECTION }).await.patient();
    parent_of_queued(&lab, "p").await;
    let turn = lab.turn_of("c").await;
    let later = lab.abandon_orchestration_item(&turn.token, Some(AN_HOUR), true).await;
    lab.ok("abandon_orchestration_item", later);
    let went = || Removed { instances: 1, executions: 1, events: 1, messages: 1 };
    lab.same("what went", lab.delete_by_force("p").await, went());
    // Had the start stayed, it would go with the next one of that name.
    parent_of_queued(&lab, "p").await;
    lab.same("what went with the next", lab.delete_by_force("p").await, went());
    next_life(&lab).await;
}

/// Whichever way a parent is deleted, and without force if it has ended: who has not begun does not run.
pub async fn ended_parents_take_queued_children_along<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, Promise { rule: "R6.68", says: QUEUED, section: SECTION }).await.patient();
    for way in ["delete_instance", "delete_instances_atomic", "delete_instance_bulk"] {
        parent_of_queued(&lab, "p").await;
        lab.send(raise("p", "end")).await;
        let child = lab.turn_of("c").await;
        let parent = lab.turn_of("p").await;
        lab.committed(&parent, commit().ends("Completed", "out")).await;
        lab.abandon(&child).await;
        let admin = lab.admin();
        let deleted = match way {
            "delete_instance" => admin.delete_instance("p", false).await,
            "delete_instances_atomic" => {
                admin.delete_instances_atomic(&["p".to_owned()], false).await
            }
            _ => admin.delete_instance_bulk(only(&["p"])).await,
        };
        let went = Removed { instances: 1, executions: 1, events: 1, messages: 1 };
        lab.same("what went", Removed::from(lab.ok(way, deleted)), went);
        lab.no_turn().await;
        lab.same("the instances that are left", lab.instances().await, [""; 0]);
    }
}

/// A start that is for an instance of somebody else goes, and leaves that alone.
pub async fn a_start_for_somebody_else_is_taken_back<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, Promise { rule: "R6.68", says: QUEUED, section: SECTION }).await.patient();
    lab.begin("c").await;
    for is_locked in [false, true] {
        parent_of_queued(&lab, "p").await;
        lab.send(raise("c", "x")).await;
        let turn = if is_locked { Some(lab.turn_of("c").await) } else { None };
        lab.send(raise("c", "y")).await;
        let went = Removed { instances: 1, executions: 1, events: 1, messages: 1 };
        lab.same("what went", lab.delete_by_force("p").await, went);
        if let Some(turn) = turn {
            let late = lab.commit(&turn, commit().message(child_done("p"))).await;
            lab.refused("the commit of a turn that has read the start", late, &[]);
        }
        let left = lab.turn_of("c").await;
        lab.batch(&left, [raise("c", "x"), raise("c", "y")]);
        lab.same("the attempt, of which the deletion made none", left.attempt, 1);
        lab.committed(&left, commit()).await;
        lab.no_turn().await;
        lab.same("the instances that are left", lab.instances().await, ["c"]);
    }
}

/// A child whose parent does not exist can be deleted, by itself or in bulk.
pub async fn a_child_without_parent_is_a_root<F: ProviderFactory>(factory: &F) {
    let says = "a child whose parent does not exist is deleted as a root is";
    let lab = lab(factory, Promise { rule: "R6.69", says, section: SECTION }).await.patient();
    for bulk in [false, true] {
        lab.begin_child("c", "nobody").await;
        lab.begin_child("below", "c").await;
        for id in ["below", "c"] {
            lab.step(id, commit().ends("Completed", "out")).await;
        }
        let refused = lab.admin().delete_instance("below", true).await;
        lab.refused("delete_instance of a child with a parent", refused, &["sub-orchestration"]);
        let went = if bulk {
            let deleted = lab.admin().delete_instance_bulk(only(&["c", "below"])).await;
            Removed::from(lab.ok("delete_instance_bulk", deleted))
        } else {
            lab.delete("c").await
        };
        let both = Removed { instances: 2, executions: 2, events: 2, messages: 0 };
        lab.same("what went", went, both);
        lab.same("the instances that are left", lab.instances().await, [""; 0]);
    }
}

/// Who keeps an instance in memory can tell whether it is another one now.
pub async fn lives_have_different_numbers<F: ProviderFactory>(factory: &F) {
    let says = "all turns of an instance have one number, which no other instance has or had";
    let promise = Promise { rule: "R8.143", says, section: "fetching-a-turn" };
    let lab = lab(factory, promise).await.patient();
    let mut numbers = Vec::new();
    for name in ["a", "a", "b", "a"] {
        lab.send(start(name)).await;
        let first = fetched(&lab, name).await;
        let number = first.incarnation;
        lab.committed(&turn_from(first), first_commit(name)).await;
        for event in 2..4 {
            lab.send(raise(name, "x")).await;
            let next = fetched(&lab, name).await;
            lab.same("the number of a later turn", next.incarnation, number);
            lab.committed(&turn_from(next), commit().event(note(event))).await;
        }
        // A store that cannot tell says so.
        lab.expect(number == 0 || !numbers.contains(&number), "a new number", number);
        numbers.push(number);
        lab.delete_by_force(name).await;
    }
}

/// A commit that starts a child, and a deletion of that parent: no child is left.
pub async fn a_start_that_meets_a_deletion_is_gone<F: ProviderFactory>(factory: &F) {
    let says = "when the start of a child meets the deletion of its parent, none of both is left";
    let lab = lab(factory, Promise { rule: "R6.68", says, section: SECTION }).await.patient();
    for round in 0..ROUNDS {
        lab.begin("p").await;
        lab.send(raise("p", "x")).await;
        let turn = lab.turn_of("p").await;
        let sends = commit().event(note(2)).message(start_child("c", "p"));
        meet(&lab, turn, sends.message(start_child("d", "p")), round).await;
        lab.no_turn().await;
        lab.same("the instances that are left", lab.instances().await, [""; 0]);
    }
}

/// The first commit of a child, and a deletion of its parent: no child is left, and none of its own.
pub async fn a_child_that_meets_a_deletion_is_gone<F: ProviderFactory>(factory: &F) {
    let says = "when the first turn of a child meets the deletion of its parent, no child is left";
    let lab = lab(factory, Promise { rule: "R6.68", says, section: SECTION }).await.patient();
    for round in 0..ROUNDS {
        parent_of_queued(&lab, "p").await;
        let turn = lab.turn_of("c").await;
        let first = first_commit("c").child_of("p").work(activity("c", 2));
        meet(&lab, turn, first.message(start_child("below", "c")), round).await;
        lab.no_turn().await;
        lab.no_job().await;
        lab.same("the instances that are left", lab.instances().await, [""; 0]);
    }
}

/// The last commit of a child, and a deletion of its parent, whose name is used again at once.
pub async fn no_answer_reaches_the_next_life<F: ProviderFactory>(factory: &F) {
    let says = "the answer of a child never reaches an instance that has its parent's name";
    let lab = lab(factory, Promise { rule: "R6.68", says, section: SECTION }).await.patient();
    for round in 0..ROUNDS {
        parent_of_queued(&lab, "p").await;
        lab.begun_child("c", "p").await;
        lab.send(raise("c", "x")).await;
        let turn = Arc::new(lab.turn_of("c").await);
        cast(&lab, 2, move |lab, role| {
            let turn = Arc::clone(&turn);
            async move {
                if (role + round).is_multiple_of(2) {
                    let last = commit().ends("Completed", "out").message(child_done("p"));
                    let commit = || lab.commit(&turn, last.clone());
                    succeeds(&lab, "ack_orchestration_item", commit).await;
                } else {
                    delete_in_the_end(&lab).await;
                    lab.send(start("p")).await;
                }
            }
        })
        .await;
        let fresh = lab.turn_of("p").await;
        lab.batch(&fresh, [start("p")]);
        lab.committed(&fresh, first_commit("p")).await;
        lab.no_turn().await;
        lab.same("the instances that are left", lab.instances().await, ["p"]);
        lab.delete_by_force("p").await;
    }
}

/// A commit and a deletion of `p` by force at the same moment.
async fn meet(lab: &Lab, turn: Turn, sends: TurnCommit, round: usize) {
    let turn = Arc::new(turn);
    cast(lab, 2, move |lab, role| {
        let (turn, sends) = (Arc::clone(&turn), sends.clone());
        async move {
            if (role + round).is_multiple_of(2) {
                let commit = || lab.commit(&turn, sends.clone());
                succeeds(&lab, "ack_orchestration_item", commit).await;
            } else {
                delete_in_the_end(&lab).await;
            }
        }
    })
    .await;
}

/// Deletes `p`; stores may ask to try again, for a child that has appeared (R6.64).
async fn delete_in_the_end(lab: &Lab) {
    let delete = || async { lab.admin().delete_instance("p", true).await.ok() };
    lab.soon("delete_instance to get through", delete).await;
}

/// An instance that has started a child `c`, which nobody has begun.
async fn parent_of_queued(lab: &Lab, parent: &str) {
    lab.begin_as(parent, first_commit(parent).message(start_child("c", parent))).await;
}

/// The names are as good as new: a parent, its child, and what the child is sent.
async fn next_life(lab: &Lab) {
    parent_of_queued(lab, "p").await;
    let turn = lab.turn_of("c").await;
    lab.batch(&turn, [start_child("c", "p")]);
    lab.same("the attempt", turn.attempt, 1);
    lab.committed(&turn, first_commit("c").child_of("p").message(child_done("p"))).await;
    let told = lab.turn_of("p").await;
    lab.batch(&told, [child_done("p")]);
    lab.committed(&told, commit()).await;
    lab.no_turn().await;
}

impl Lab {
    /// The first turn of a child whose start is queued.
    async fn begun_child(&self, instance: &str, parent: &str) {
        let turn = self.turn_of(instance).await;
        self.committed(&turn, first_commit(instance).child_of(parent)).await;
    }
}

async fn fetched(lab: &Lab, instance: &str) -> FetchedTurn {
    let fetched = lab.store.fetch_turn(lab.lock, AT_ONCE, None).await;
    match lab.ok("fetch_turn", fetched) {
        Some(turn) if turn.item.instance == instance => turn,
        other => lab.broken(&format!("a turn of {instance:?}"), other),
    }
}

fn turn_from(turn: FetchedTurn) -> Turn {
    Turn { item: turn.item, token: turn.lock_token, attempt: turn.attempt_count }
}
