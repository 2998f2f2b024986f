//! Which turns a filter lets through.

use super::super::ProviderFactory;
use super::super::lab::{Promise, lab};
use super::super::words::*;
use super::{SECTION, passed_over, pinned, served};
use crate::providers::DispatcherCapabilityFilter;

/// Without a filter every turn is served.
pub async fn test_fetch_with_filter_none_returns_any_item<F: ProviderFactory>(factory: &F) {
    let says = "a fetch without a filter gets every turn, whatever its execution is pinned to";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    pinned(&lab, &[("ancient", "0.0.1"), ("future", "99.0.0")]).await;
    for instance in ["ancient", "future"] {
        let turn = lab.turn_of(instance).await;
        lab.committed(&turn, commit().event(note(2))).await;
    }
}

/// A pin inside the range is served.
pub async fn test_fetch_with_compatible_filter_returns_item<F: ProviderFactory>(factory: &F) {
    let says = "a turn whose execution is pinned inside the range is served, as a whole";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    pinned(&lab, &[("a", "1.2.3")]).await;
    let turn = served(&lab, &versions("1.0.0", "2.0.0"), "a").await;
    lab.same("the messages", &turn.item.messages, &vec![raise("a", "x")]);
    lab.same("the number of events", turn.item.history.len(), 1);
    lab.committed(&turn, commit().event(note(2))).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2]);
}

/// A pin outside the range is passed over.
pub async fn test_fetch_with_incompatible_filter_skips_item<F: ProviderFactory>(factory: &F) {
    let says = "a turn whose execution is pinned outside the range is not served";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    pinned(&lab, &[("a", "1.2.3")]).await;
    passed_over(&lab, &versions("2.0.0", "3.0.0")).await;
    passed_over(&lab, &versions("0.0.0", "1.2.2")).await;
}

/// What can be served is served past what cannot.
pub async fn test_fetch_filter_skips_incompatible_selects_compatible<F: ProviderFactory>(
    factory: &F,
) {
    let says = "the next compatible turn is served, however many incompatible ones are before it";
    let lab = lab(factory, Promise { rule: "R8.91", says, section: SECTION }).await.patient();
    let newer: Vec<String> = (0..30).map(|number| format!("newer{number}")).collect();
    let mut instances: Vec<(&str, &str)> = newer.iter().map(|id| (id.as_str(), "2.0.0")).collect();
    instances.extend([("old", "1.0.0"), ("older", "0.9.0")]);
    pinned(&lab, &instances).await;
    let up_to_1 = versions("0.0.0", "1.0.0");
    for instance in ["old", "older"] {
        let turn = served(&lab, &up_to_1, instance).await;
        lab.committed(&turn, commit().event(note(2))).await;
    }
    passed_over(&lab, &up_to_1).await;
    served(&lab, &versions("0.0.0", "2.0.0"), "newer0").await;
}

/// Passing over leaves no trace.
pub async fn test_fetch_filter_does_not_lock_skipped_instances<F: ProviderFactory>(factory: &F) {
    let says = "an instance that was passed over is neither locked nor counted nor changed";
    let lab = lab(factory, Promise { rule: "R7.83", says, section: SECTION }).await.patient();
    pinned(&lab, &[("newer", "2.0.0"), ("ours", "1.0.0")]).await;
    let up_to_1 = versions("0.0.0", "1.0.0");
    let ours = served(&lab, &up_to_1, "ours").await;
    lab.committed(&ours, commit().event(note(2))).await;
    passed_over(&lab, &up_to_1).await;
    lab.same("the events", lab.event_ids("newer").await, [1]);
    let turn = served(&lab, &versions("2.0.0", "2.0.0"), "newer").await;
    lab.same("the messages", &turn.item.messages, &vec![raise("newer", "x")]);
}

/// What is not pinned suits everybody.
pub async fn test_fetch_filter_null_pinned_version_always_compatible<F: ProviderFactory>(
    factory: &F,
) {
    let says = "an instance that is new, or whose execution has no pin, passes every range";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    let (low, high) = (versions("0.0.1", "0.0.1"), versions("98.0.0", "99.0.0"));
    for (instance, range) in [("a", low), ("b", high)] {
        lab.send(start(instance)).await;
        let turn = served(&lab, &range, instance).await;
        lab.committed(&turn, first_commit(instance)).await;
        lab.send(raise(instance, "x")).await;
        let turn = served(&lab, &range, instance).await;
        lab.committed(&turn, commit().event(note(2))).await;
    }
}

/// Both ends belong to the range, and versions are in semver order.
pub async fn test_fetch_filter_boundary_versions<F: ProviderFactory>(factory: &F) {
    let says = "a range holds both its ends and what semver puts between them, and nothing else";
    let lab =
        lab(factory, Promise { rule: "R8.90, R8.92", says, section: SECTION }).await.patient();
    let range = versions("1.0.0", "2.0.0");
    let inside = [
        "1.0.0",
        "1.0.1",
        "1.9.99",
        "1.10.0",
        "1.1.1000",
        "1.1000.0",
        "2.0.0-rc.1",
        "2.0.0",
        "2.0.0+7",
    ];
    let outside =
        ["0.0.0", "0.9.99", "0.1000.0", "1.0.0-rc.1", "2.0.1", "2.1.0", "10.0.0", "1000.0.0"];
    for version in inside.into_iter().chain(outside) {
        lab.begin_as(version, first_commit(version).pinned(version)).await;
    }
    for version in outside {
        lab.send(raise(version, "x")).await;
        passed_over(&lab, &range).await;
    }
    for version in inside {
        lab.send(raise(version, "x")).await;
        let turn = served(&lab, &range, version).await;
        lab.committed(&turn, commit().event(note(2))).await;
    }
}

/// A filter without ranges lets nothing through.
pub async fn test_filter_with_empty_supported_versions_returns_nothing<F: ProviderFactory>(
    factory: &F,
) {
    let says = "a filter without a range lets nothing through, not even what has no pin";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: Vec::new() };
    lab.begin("unpinned").await;
    pinned(&lab, &[("a", "1.0.0")]).await;
    lab.send(raise("unpinned", "x")).await;
    lab.send(start("new")).await;
    passed_over(&lab, &nothing).await;
    for instance in ["a", "unpinned", "new"] {
        let turn = lab.turn_of(instance).await;
        lab.same("the attempt, which passing over does not count", turn.attempt, 1);
    }
}

/// Filtered fetches at the same time never get the same instance.
pub async fn test_concurrent_filtered_fetch_no_double_lock<F: ProviderFactory>(factory: &F) {
    let says = "of several fetches with a filter at the same time only one gets an instance";
    let lab = lab(factory, Promise { rule: "R8.91", says, section: SECTION }).await.patient();
    pinned(&lab, &[("newer", "2.0.0"), ("a", "1.0.0"), ("b", "1.0.0")]).await;
    let filter = versions("1.0.0", "1.0.0");
    let fetch = || lab.try_turn(Some(&filter));
    let (one, two, three, four) = tokio::join!(fetch(), fetch(), fetch(), fetch());
    let turns = [one, two, three, four].into_iter().flatten();
    let mut got: Vec<String> = turns.map(|turn| turn.item.instance).collect();
    got.sort();
    lab.same("the fetched instances", got, ["a", "b"]);
    passed_over(&lab, &filter).await;
}

/// Of several ranges only the first counts.
pub async fn test_fetch_single_range_only_uses_first_range<F: ProviderFactory>(factory: &F) {
    let says = "of several ranges only the first counts";
    let lab = lab(factory, Promise { rule: "R8.90", says, section: SECTION }).await.patient();
    pinned(&lab, &[("second", "3.0.0"), ("first", "1.0.0")]).await;
    let mut filter = versions("1.0.0", "1.5.0");
    filter
        .supported_duroxide_versions
        .extend(versions("3.0.0", "3.5.0").supported_duroxide_versions);
    let turn = served(&lab, &filter, "first").await;
    lab.committed(&turn, commit().event(note(2))).await;
    passed_over(&lab, &filter).await;
    filter.supported_duroxide_versions.reverse();
    served(&lab, &filter, "second").await;
}
