//! The custom status: the last update of a commit wins, and a version tells that it changed.

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::words::*;

const SECTION: &str = "custom-status";

/// An update is stored, as version 1.
pub async fn test_custom_status_set<F: ProviderFactory>(factory: &F) {
    let says = "an update in a commit is the custom status from then on";
    let lab = lab(factory, Promise { rule: "R8.50", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    lab.step("a", commit().event(show(2, Some("half way: ½")))).await;
    let status = lab.custom_status("a", 0).await;
    lab.same("status and version", status, Some((Some("half way: ½".into()), 1)));
    lab.same("another instance's", lab.custom_status("b", 0).await, None);
    // In the very first commit, too; and an empty text is a text.
    lab.begin_as("c", first_commit("c").event(show(2, Some("")))).await;
    let status = lab.custom_status("c", 0).await;
    lab.same("the status of a first commit", status, Some((Some(String::new()), 1)));
}

/// A reset stores that there is none, and that is news.
pub async fn test_custom_status_clear<F: ProviderFactory>(factory: &F) {
    let says = "a reset takes the status away and raises the version";
    let lab = lab(factory, Promise { rule: "R4.73", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(show(2, Some("busy")))).await;
    lab.step("a", commit().event(show(3, None))).await;
    lab.same("status and version", lab.custom_status("a", 1).await, Some((None, 2)));
    lab.same("status and version", lab.custom_status("a", 0).await, Some((None, 2)));
}

/// A commit without an update leaves the status alone.
pub async fn test_custom_status_none_preserves<F: ProviderFactory>(factory: &F) {
    let says = "a commit without an update leaves status and version, whatever else it does";
    let lab = lab(factory, Promise { rule: "R8.50", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(show(2, Some("busy")))).await;
    let unchanged = || Some((Some("busy".to_owned()), 1));
    lab.step("a", commit().event(note(3))).await;
    lab.same("after a commit", lab.custom_status("a", 0).await, unchanged());
    lab.continue_as_new("a", 2, commit().named("Orch", "2.0.0").event(started("a"))).await;
    lab.same("in the next execution", lab.custom_status("a", 0).await, unchanged());
    lab.step("a", commit().in_execution(2).ends("Completed", "out")).await;
    lab.same("after the end", lab.custom_status("a", 0).await, unchanged());
}

/// Each commit with an update raises the version by one.
pub async fn test_custom_status_version_increments<F: ProviderFactory>(factory: &F) {
    let says = "each commit with an update raises the version by one, and its last update wins";
    let lab = lab(factory, Promise { rule: "R4.72", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for (id, status) in [(2, Some("one")), (3, Some("two")), (4, None), (5, None), (6, Some("x"))] {
        lab.step("a", commit().event(show(id, status))).await;
        let expected = Some((status.map(str::to_owned), id - 1));
        lab.same("status and version", lab.custom_status("a", 0).await, expected);
    }
    let several = commit().event(show(7, Some("y"))).event(show(8, None));
    lab.step("a", several.event(note(9)).event(show(10, Some("last"))).event(note(11))).await;
    let status = lab.custom_status("a", 0).await;
    lab.same("after three updates in one commit", status, Some((Some("last".into()), 6)));
    lab.step("a", commit().event(show(12, Some("gone"))).event(show(13, None))).await;
    let status = lab.custom_status("a", 0).await;
    lab.same("after an update and a reset in one commit", status, Some((None, 7)));
}

/// There is no news for those who have seen it.
pub async fn test_custom_status_polling_no_change<F: ProviderFactory>(factory: &F) {
    let says = "the status is told to those who have seen an older version only";
    let lab = lab(factory, Promise { rule: "R8.100", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(show(2, Some("one")))).await;
    lab.step("a", commit().event(show(3, Some("two")))).await;
    for (seen, news) in [(0, true), (1, true), (2, false), (3, false)] {
        let expected = news.then(|| (Some("two".to_owned()), 2));
        let what = format!("what is told to one who has seen version {seen}");
        lab.same(&what, lab.custom_status("a", seen).await, expected);
    }
}

/// An unknown instance has no status.
pub async fn test_custom_status_nonexistent_instance<F: ProviderFactory>(factory: &F) {
    let says = "an unknown instance has no custom status, and asking is no error";
    let lab = lab(factory, Promise { rule: "R8.100", says, section: SECTION }).await.patient();
    lab.begin_as("a", first_commit("a").event(show(2, Some("busy")))).await;
    lab.same("the status", lab.custom_status("?", 0).await, None);
}

/// A new instance has version 0: nothing to tell.
pub async fn test_custom_status_default_on_new_instance<F: ProviderFactory>(factory: &F) {
    let says = "an instance without updates is at version 0, which is no news to anyone";
    let lab = lab(factory, Promise { rule: "R8.100", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.same("the status of a new instance", lab.custom_status("a", 0).await, None);
    lab.step("a", commit().event(note(2)).ends("Completed", "out")).await;
    lab.same("the status at its end", lab.custom_status("a", 0).await, None);
}
