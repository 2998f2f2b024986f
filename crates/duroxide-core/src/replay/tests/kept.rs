//! Code that is kept between its turns, and what it takes to keep it.

use super::*;

/// Reads its inbox and remembers nothing.
async fn reads(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    loop {
        ctx.dequeue_event("inbox").await;
        ctx.schedule_activity("A", "x".repeat(1000)).await?;
    }
}

fn resumed(kept: Suspended, messages: &str) -> (TurnOutcome, Option<Suspended>) {
    let messages = notation::messages(messages, 1);
    kept.resume(Resumption { messages, now_ms: 1_000_000, system_calls: None })
}

#[test]
fn r1_66_a_replayed_history_counts_like_one_that_was_lived() {
    let first = turn(&Story::read(""), "start O in", code(reads));
    let (mut outcome, mut kept) = run_turn_and_keep(first);
    for _ in 0..20 {
        let (asked, waits) = resumed(kept.take().unwrap(), r#"queue inbox "m""#);
        let Some(WorkItem::ActivityExecute { id, .. }) = asked.activities.first() else {
            panic!("{outcome:?}")
        };
        let answer = format!("activity-completed {id} \"{}\"", "y".repeat(1000));
        (outcome, kept) = resumed(waits.unwrap(), &answer);
    }
    let lived = kept.unwrap();
    let story = Story { events: lived.history().to_vec(), ..Story::read("") };
    let (_, replayed) = run_turn_and_keep(turn(&story, "", code(reads)));
    assert!(lived.bytes() > 40_000, "{}", lived.bytes());
    assert_eq!(replayed.unwrap().bytes(), lived.bytes());
}
