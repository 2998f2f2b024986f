//! Custom status (R8.50, R8.100).

use super::lab::*;
use crate::providers::Provider;

async fn status(lab: &Lab, last_seen: u64) -> Option<(Option<String>, u64)> {
    lab.get_custom_status("a", last_seen).await.unwrap()
}

fn is(text: &str, version: u64) -> Option<(Option<String>, u64)> {
    Some((Some(text.into()), version))
}

#[tokio::test(start_paused = true)]
async fn r8_50_the_last_update_of_a_commit_counts_once() {
    let lab = lab();
    lab.begin_as("a", first_commit("a").event(show(2, Some("x"))).event(show(3, Some("y")))).await;
    assert_eq!(status(&lab, 0).await, is("y", 1));
    lab.step("a", commit().event(show(4, Some("z")))).await;
    assert_eq!(status(&lab, 0).await, is("z", 2));
}

#[tokio::test(start_paused = true)]
async fn r8_50_a_reset_is_an_update_and_silence_is_none() {
    let lab = lab();
    lab.begin_as("a", first_commit("a").event(show(2, Some("x")))).await;
    lab.step("a", commit().event(note(3))).await;
    assert_eq!(status(&lab, 0).await, is("x", 1));
    lab.step("a", commit().event(show(4, Some("y"))).event(show(5, None))).await;
    assert_eq!(status(&lab, 0).await, Some((None, 2)));
}

#[tokio::test(start_paused = true)]
async fn r8_100_only_newer_versions_are_news() {
    let lab = lab();
    assert_eq!(status(&lab, 0).await, None, "no instance");
    lab.begin("a").await;
    assert_eq!(status(&lab, 0).await, None, "no update yet");
    lab.step("a", commit().event(show(2, Some("x")))).await;
    assert_eq!(status(&lab, 0).await, is("x", 1));
    assert_eq!(status(&lab, 1).await, None);
    assert_eq!(status(&lab, 7).await, None);
}

#[tokio::test(start_paused = true)]
async fn r8_50_it_outlives_the_execution() {
    let lab = lab();
    lab.begin_as("a", first_commit("a").event(show(2, Some("x")))).await;
    lab.step("a", commit().ends("ContinuedAsNew", "in")).await;
    lab.step("a", commit().in_execution(2).event(started("a"))).await;
    assert_eq!(status(&lab, 0).await, is("x", 1));
}
