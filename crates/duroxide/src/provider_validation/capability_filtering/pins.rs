//! What an execution is pinned to, and since when.

use super::super::ProviderFactory;
use super::super::lab::{Promise, lab};
use super::super::words::*;
use super::{SECTION, passed_over, pinned, served};

/// The pin is the one the commit names.
pub async fn test_pinned_version_stored_via_ack_metadata<F: ProviderFactory>(factory: &F) {
    let says = "an execution is pinned to the version its commit names, whatever its events say";
    let lab = lab(factory, Promise { rule: "R7.81", says, section: SECTION }).await.patient();
    // The start event is stamped with this library's version, which is none of these.
    pinned(&lab, &[("a", "3.1.4"), ("b", "4.1.3")]).await;
    passed_over(&lab, &versions("0.0.0", "3.1.3")).await;
    passed_over(&lab, &versions("3.1.5", "4.1.2")).await;
    passed_over(&lab, &versions("4.1.4", "99.0.0")).await;
    served(&lab, &versions("4.1.3", "4.1.3"), "b").await;
    served(&lab, &versions("3.1.4", "3.1.4"), "a").await;
}

/// A commit that names no pin leaves it.
pub async fn test_pinned_version_immutable_across_ack_cycles<F: ProviderFactory>(factory: &F) {
    let says = "a commit that names no version leaves the pin as it is";
    let lab = lab(factory, Promise { rule: "R8.46", says, section: SECTION }).await.patient();
    pinned(&lab, &[("a", "1.0.0")]).await;
    let plain = commit().event(note(2));
    let renamed = commit().named("Orch", "2.0.0").event(note(3));
    let ended = commit().ends("Completed", "out");
    for unpinned in [plain, renamed, ended] {
        passed_over(&lab, &versions("1.0.1", "99.0.0")).await;
        let turn = served(&lab, &versions("1.0.0", "1.0.0"), "a").await;
        lab.committed(&turn, unpinned).await;
        lab.send(raise("a", "x")).await;
    }
    passed_over(&lab, &versions("1.0.1", "99.0.0")).await;
    served(&lab, &versions("1.0.0", "1.0.0"), "a").await;
}

/// Each execution has a pin of its own.
pub async fn test_continue_as_new_execution_gets_own_pinned_version<F: ProviderFactory>(
    factory: &F,
) {
    let says = "an execution has its own pin from its first commit on; until then the ended one's \
                applies";
    let lab =
        lab(factory, Promise { rule: "R7.81, R8.93", says, section: SECTION }).await.patient();
    let (only_1, only_2) = (versions("1.0.0", "1.0.0"), versions("2.0.0", "2.0.0"));
    pinned(&lab, &[("a", "1.0.0")]).await;
    let turn = served(&lab, &only_1, "a").await;
    let handover = commit().ends("ContinuedAsNew", "x").message(continue_as_new("a"));
    lab.committed(&turn, handover).await;
    passed_over(&lab, &only_2).await;
    let turn = served(&lab, &only_1, "a").await;
    let mut first = started("a");
    first.execution_id = 2;
    lab.committed(&turn, commit().in_execution(2).event(first).pinned("2.0.0")).await;
    lab.send(raise("a", "x")).await;
    passed_over(&lab, &only_1).await;
    let turn = served(&lab, &only_2, "a").await;
    // A successor without a pin inherits none.
    lab.committed(&turn, commit().in_execution(2).ends("ContinuedAsNew", "x")).await;
    lab.send(continue_as_new("a")).await;
    let turn = served(&lab, &only_2, "a").await;
    let mut first = started("a");
    first.execution_id = 3;
    lab.committed(&turn, commit().in_execution(3).event(first)).await;
    lab.send(raise("a", "x")).await;
    served(&lab, &only_1, "a").await;
}

/// A later commit can pin an execution that was not pinned.
pub async fn test_ack_stores_pinned_version_via_metadata_update<F: ProviderFactory>(factory: &F) {
    let says = "a later commit can pin an execution that had no pin";
    let lab = lab(factory, Promise { rule: "R8.46", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(note(2)).pinned("1.2.3")).await;
    lab.send(raise("a", "x")).await;
    passed_over(&lab, &versions("0.0.0", "1.2.2")).await;
    passed_over(&lab, &versions("1.2.4", "99.0.0")).await;
    served(&lab, &versions("1.2.3", "1.2.3"), "a").await;
}

/// A later commit can change the pin.
pub async fn test_provider_updates_pinned_version_when_told<F: ProviderFactory>(factory: &F) {
    let says = "a commit that names a version overwrites the pin";
    let lab = lab(factory, Promise { rule: "R8.46", says, section: SECTION }).await.patient();
    pinned(&lab, &[("a", "1.0.0")]).await;
    for (before, after) in [("1.0.0", "2.0.0"), ("2.0.0", "0.5.0")] {
        let turn = served(&lab, &versions(before, before), "a").await;
        lab.committed(&turn, commit().pinned(after)).await;
        lab.send(raise("a", "x")).await;
        passed_over(&lab, &versions(before, before)).await;
    }
    served(&lab, &versions("0.5.0", "0.5.0"), "a").await;
}
