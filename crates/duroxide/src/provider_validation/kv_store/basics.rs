//! Setting, clearing and reading.

use super::promise;
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::lab::lab;
use crate::provider_validation::words::*;

/// A value that was set can be read.
pub async fn test_kv_set_and_get<F: ProviderFactory>(factory: &F) {
    let lab = lab(factory, promise("R8.112", "a value set in a commit can be read after it"))
        .await
        .patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", "v")).event(note(3)).event(set(4, "l", "w"))).await;
    lab.values_are("a", &[("k", "v"), ("l", "w")]).await;
    lab.begin_as("b", first_commit("b").event(set(2, "first", "commit"))).await;
    lab.values_are("b", &[("first", "commit")]).await;
}

/// The last value set counts.
pub async fn test_kv_overwrite<F: ProviderFactory>(factory: &F) {
    let says = "of several values set for one key the last counts";
    let lab = lab(factory, promise("R8.112", says)).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", "zebra")).event(set(3, "l", "kept"))).await;
    lab.step("a", commit().event(set(4, "k", "ant"))).await;
    lab.values_are("a", &[("k", "ant"), ("l", "kept")]).await;
    lab.step("a", commit().event(set(5, "k", "yak")).event(set(6, "k", "bee"))).await;
    lab.values_are("a", &[("k", "bee"), ("l", "kept")]).await;
}

/// Clearing a key removes it and no other.
pub async fn test_kv_clear_single<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, promise("R8.112", "clearing a key removes it and no other")).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.step("a", commit().event(clear(4, "k"))).await;
    lab.values_are("a", &[("l", "w")]).await;
    lab.same("the cleared value", lab.value("a", "k").await, None);
    lab.step("a", commit().event(set(5, "m", "x")).event(clear(6, "m"))).await;
    lab.values_are("a", &[("l", "w")]).await;
    lab.same("a value set and cleared at once", lab.value("a", "m").await, None);
}

/// Clearing all leaves nothing.
pub async fn test_kv_clear_all<F: ProviderFactory>(factory: &F) {
    let lab = lab(factory, promise("R8.112", "clearing all removes every key")).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.step("a", commit().event(set(4, "m", "x")).event(clear_all(5))).await;
    lab.values_are("a", &[]).await;
    for key in ["k", "l", "m"] {
        lab.same("a cleared value", lab.value("a", key).await, None);
    }
}

/// A key that was never set has no value.
pub async fn test_kv_get_nonexistent<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, promise("R6.40", "a key that was never set has no value")).await.patient();
    lab.begin("a").await;
    lab.same("a value of a new instance", lab.value("a", "k").await, None);
    lab.values_are("a", &[]).await;
    lab.step("a", commit().event(set(2, "key", "v"))).await;
    lab.same("a value never set", lab.value("a", "k").await, None);
}

/// Values belong to one instance.
pub async fn test_kv_instance_isolation<F: ProviderFactory>(factory: &F) {
    let says = "one key of two instances has two values, in reads and in snapshots";
    let lab = lab(factory, promise("R8.114", says)).await.patient();
    for id in ["a", "b", "c"] {
        lab.begin(id).await;
    }
    lab.step("a", commit().event(set(2, "k", "of a"))).await;
    lab.step("b", commit().event(set(2, "k", "of b")).event(set(3, "l", "too"))).await;
    lab.values_are("a", &[("k", "of a")]).await;
    lab.values_are("b", &[("k", "of b"), ("l", "too")]).await;
    lab.values_are("c", &[]).await;
    for id in ["a", "b", "c"] {
        lab.step(id, commit().ends("Completed", "out")).await;
    }
    lab.snapshot_is("a", &[("k", "of a")]).await;
    lab.snapshot_is("b", &[("k", "of b"), ("l", "too")]).await;
    lab.snapshot_is("c", &[]).await;
}

/// Clearing what is not there does no harm.
pub async fn test_kv_clear_nonexistent_key<F: ProviderFactory>(factory: &F) {
    let says = "clearing a key that is not there succeeds and changes nothing";
    let lab = lab(factory, promise("R8.112", says)).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(clear(2, "k")).event(clear_all(3))).await;
    lab.values_are("a", &[]).await;
    lab.step("a", commit().event(set(4, "l", "w")).event(clear(5, "k"))).await;
    lab.values_are("a", &[("l", "w")]).await;
    lab.step("a", commit().event(clear(6, "other")).ends("Completed", "out")).await;
    lab.values_are("a", &[("l", "w")]).await;
    lab.snapshot_is("a", &[("l", "w")]).await;
}

/// An unknown instance has no values.
pub async fn test_kv_get_unknown_instance<F: ProviderFactory>(factory: &F) {
    let says = "an unknown instance has no values, and asking is no error";
    let lab = lab(factory, promise("R6.40", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    lab.same("a value of an unknown instance", lab.value("?", "k").await, None);
    lab.values_are("?", &[]).await;
}

/// Changes apply in the order of their events.
pub async fn test_kv_set_after_clear<F: ProviderFactory>(factory: &F) {
    let says = "changes of one commit apply in order: what is set after a clear stays";
    let lab = lab(factory, promise("R8.112", says)).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "old", "v")).event(set(3, "k", "1"))).await;
    lab.step("a", commit().event(clear_all(4)).event(set(5, "k", "2"))).await;
    lab.values_are("a", &[("k", "2")]).await;
    lab.same("what was cleared", lab.value("a", "old").await, None);
    lab.step("a", commit().event(clear(6, "k")).event(set(7, "k", "3"))).await;
    lab.values_are("a", &[("k", "3")]).await;
    lab.step("a", commit().event(set(8, "l", "x")).event(clear_all(9)).event(set(10, "m", "y")))
        .await;
    lab.values_are("a", &[("m", "y")]).await;
}

/// An empty value is a value.
pub async fn test_kv_empty_value<F: ProviderFactory>(factory: &F) {
    let lab = lab(factory, promise("R8.114", "an empty value is a value, not a missing one"))
        .await
        .patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", ""))).await;
    lab.values_are("a", &[("k", "")]).await;
    lab.step("a", commit().ends("Completed", "out")).await;
    lab.values_are("a", &[("k", "")]).await;
    lab.snapshot_is("a", &[("k", "")]).await;
}

/// A value can have 64 KiB.
pub async fn test_kv_large_value<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, promise("R8.114", "a value of 64 KiB comes back as it was")).await.patient();
    let big = "0123456789abcdß".repeat(4096);
    let intact = |value: Option<&str>, how: &str| {
        let expected = format!("{} bytes, unchanged, {how}", big.len());
        lab.expect(value == Some(&big), &expected, value.map(str::len));
    };
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", &big))).await;
    intact(lab.value("a", "k").await.as_deref(), "from get_kv_value");
    intact(lab.kv("a").await.get("k").map(String::as_str), "from get_kv_all_values");
    lab.step("a", commit().ends("Completed", "out")).await;
    intact(lab.value("a", "k").await.as_deref(), "from get_kv_value after the end");
    let snapshot = lab.snapshot("a").await;
    intact(snapshot.get("k").map(|entry| entry.value.as_str()), "in the snapshot");
}

/// A key is any text.
pub async fn test_kv_special_chars_in_key<F: ProviderFactory>(factory: &F) {
    let lab = lab(factory, promise("R8.114", "a key is any text, taken letter by letter"))
        .await
        .patient();
    let keys = "two words| two words|schlüssel|鍵|🔑|a.b.c|a/b/c|a\\b|it's|\"quoted\"|line\nbreak|\
                tab\t|key|KEY|k%|k_y|$1|?1|:x|[0]|{}|--|;";
    let keys: Vec<&str> = keys.split('|').collect();
    let all: Vec<(&str, &str)> = keys.iter().map(|key| (*key, *key)).collect();
    lab.begin("a").await;
    let sets = (2..).zip(&keys).map(|(id, key)| set(id, key, key));
    let sets = sets.fold(commit(), |commit, event| commit.event(event));
    lab.step("a", sets).await;
    lab.values_are("a", &all).await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    lab.values_are("a", &all).await;
    lab.snapshot_is("a", &all).await;
    // Patterns are no patterns, and case matters.
    let clears = commit().in_execution(2).event(clear(1, "k%")).event(clear(2, "k_y"));
    lab.step("a", clears.event(clear(3, "KEY")).ends("Completed", "out")).await;
    let cleared = ["k%", "k_y", "KEY"];
    let rest: Vec<_> = all.into_iter().filter(|(key, _)| !cleared.contains(key)).collect();
    lab.values_are("a", &rest).await;
    lab.snapshot_is("a", &rest).await;
}

/// Clearing concerns one instance.
pub async fn test_kv_clear_isolation<F: ProviderFactory>(factory: &F) {
    let says = "clearing values of one instance leaves another's alone";
    let lab = lab(factory, promise("R8.114", says)).await.patient();
    for id in ["a", "b", "c"] {
        lab.begin_as(id, first_commit(id).event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    }
    lab.step("a", commit().event(clear_all(4))).await;
    lab.step("b", commit().event(clear(4, "k"))).await;
    for ends in [false, true] {
        lab.values_are("a", &[]).await;
        lab.values_are("b", &[("l", "w")]).await;
        lab.values_are("c", &[("k", "v"), ("l", "w")]).await;
        for id in ["a", "b", "c"].into_iter().filter(|_| !ends) {
            lab.step(id, commit().ends("Completed", "out")).await;
        }
    }
}
