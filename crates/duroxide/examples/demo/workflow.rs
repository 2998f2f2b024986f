//! The orders: what is to be done, in which order, and what the world answers.

use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, BackoffStrategy, Either2, OrchestrationContext, OrchestrationRegistry,
    RetryPolicy,
};

use crate::journal::{Journal, Mark};

/// What is ordered; also the names of the instances.
pub(crate) const ORDERS: [&str; 2] = ["book", "piano"];
/// What an order shows while it waits for its timer and for somebody to approve.
pub(crate) const WAITS: &str = "waits for approval";
/// Everything an order may go through: activities, a timer, an event, a child.
pub(crate) const STEPS: [&str; 9] =
    ["Reserve", "Charge", "timer", "approval", "Pack", "Send", "Ship", "Refund", "Release"];

/// How long the timer of an order is.
pub(crate) const TIME_TO_RECONSIDER: Duration = Duration::from_secs(2);
const TIME_TO_APPROVE: Duration = Duration::from_secs(3600);

/// One order, from the shelf to the door.
async fn process_order(
    ctx: OrchestrationContext,
    journal: Journal,
    order: String,
) -> Result<String, String> {
    ctx.schedule_activity("Reserve", order.as_str()).await?;
    journal.passed(&ctx, "Reserve", &order);

    let patience = RetryPolicy::new(5).with_backoff(BackoffStrategy::Exponential {
        base: Duration::from_millis(100),
        multiplier: 2.0,
        max: Duration::from_secs(1),
    });
    let paid = ctx.schedule_activity_with_retry("Charge", order.as_str(), patience).await?;
    journal.passed(&ctx, "Charge", &order);

    // Status and waits are stored together: whoever sees the one may answer the others.
    ctx.set_custom_status(WAITS);
    let approval = ctx.schedule_wait("Approved");
    let time_to_reconsider = ctx.schedule_timer(TIME_TO_RECONSIDER);
    journal.waits(&ctx, "timer", &order);
    time_to_reconsider.await;
    journal.passed(&ctx, "timer", &order);

    let deadline = ctx.schedule_timer(TIME_TO_APPROVE);
    let Either2::First(by) = ctx.select2(approval, deadline).await else {
        return Err("nobody approved".to_owned());
    };
    journal.passed(&ctx, "approval", &order);

    let shipped = ctx.schedule_sub_orchestration("Ship", order.as_str()).await;
    journal.passed(&ctx, "Ship", &order);
    match shipped {
        Ok(sent) => Ok(format!("{paid}, approved by {by}, {sent}")),
        Err(why) => {
            // Compensation: what was done is undone, the last step first.
            let refunded = ctx.schedule_activity("Refund", order.as_str()).await?;
            journal.passed(&ctx, "Refund", &order);
            let released = ctx.schedule_activity("Release", order.as_str()).await?;
            journal.passed(&ctx, "Release", &order);
            Ok(format!("{refunded}, {released}, because {why}"))
        }
    }
}

/// The child of an order that gets it to the customer.
async fn ship(
    ctx: OrchestrationContext,
    journal: Journal,
    order: String,
) -> Result<String, String> {
    ctx.schedule_activity("Pack", order.as_str()).await?;
    journal.passed(&ctx, "Pack", &order);
    let sent = ctx.schedule_activity("Send", order.as_str()).await?;
    journal.passed(&ctx, "Send", &order);
    Ok(sent)
}

/// An activity asks the world for something: it notes that it begins, and how it ends.
async fn ask(journal: Journal, activity: &str, order: String) -> Result<String, String> {
    let asked = journal.begin(activity, &order);
    let answer = match (activity, order.as_str(), asked) {
        ("Reserve", ..) => Ok("taken from the shelf"),
        ("Charge", _, 1) => Err("the bank is busy"),
        // The line goes dead: no answer, until somebody kills the worker.
        ("Charge", "book", 2) => std::future::pending().await,
        ("Charge", ..) => Ok("paid"),
        ("Pack", ..) => Ok("packed"),
        ("Send", "piano", _) => Err("no courier carries a piano"),
        ("Send", ..) => Ok("sent"),
        ("Refund", ..) => Ok("refunded"),
        ("Release", ..) => Ok("back on the shelf"),
        _ => Err("nobody can do that"),
    };
    match answer {
        Ok(answer) => journal.write(Mark::Ran, activity, &order, answer),
        Err(why) => journal.write(Mark::Failed, activity, &order, why),
    }
    answer.map(str::to_owned).map_err(str::to_owned)
}

/// All orchestrations, by name.
pub(crate) fn orchestrations(journal: &Journal) -> OrchestrationRegistry {
    let (for_order, for_child) = (journal.clone(), journal.clone());
    OrchestrationRegistry::builder()
        .register("ProcessOrder", move |ctx: OrchestrationContext, order: String| {
            process_order(ctx, for_order.clone(), order)
        })
        .register("Ship", move |ctx: OrchestrationContext, order: String| {
            ship(ctx, for_child.clone(), order)
        })
        .build()
}

/// All activities, by name.
pub(crate) fn activities(journal: &Journal) -> ActivityRegistry {
    let names = ["Reserve", "Charge", "Pack", "Send", "Refund", "Release"];
    names
        .into_iter()
        .fold(ActivityRegistry::builder(), |registry, name| {
            let journal = journal.clone();
            registry.register(name, move |_ctx: ActivityContext, order: String| {
                ask(journal.clone(), name, order)
            })
        })
        .build()
}
