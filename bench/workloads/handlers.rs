//! The orchestrations and the one activity the workloads are made of.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};

use super::signals::Signals;

/// Length of the timers whose lateness is measured.
pub(crate) const TIMER: Duration = Duration::from_secs(1);
/// Longer than any run.
const NAP: Duration = Duration::from_secs(7 * 24 * 3600);

type Answer = Result<String, String>;

/// `Echo` gives its input back.
pub(crate) fn activities(signals: &Arc<Signals>) -> ActivityRegistry {
    let signals = signals.clone();
    ActivityRegistry::builder()
        .register("Echo", move |_: ActivityContext, input: String| {
            let signals = signals.clone();
            async move {
                signals.activity();
                Ok(input)
            }
        })
        .build()
}

/// All orchestrations, by the names used in `cases`.
pub(crate) fn orchestrations(signals: &Arc<Signals>) -> OrchestrationRegistry {
    let with = |body| Orchestration { signals: signals.clone(), body };
    OrchestrationRegistry::builder()
        .register("Hello", with(Body::Hello).handler())
        .register("Child", with(Body::Child).handler())
        .register("Chain", with(Body::Chain).handler())
        .register("FanOut", with(Body::FanOut).handler())
        .register("Parent", with(Body::Parent).handler())
        .register("Timer", with(Body::Timer).handler())
        .register("Waiter", with(Body::Waiter).handler())
        .register("Eternal", with(Body::Eternal).handler())
        .register("Rounds", with(Body::Rounds).handler())
        .register("Once", with(Body::Once).handler())
        .register("Nap", with(Body::Nap).handler())
        .register("Sleeper", with(Body::Sleeper).handler())
        .build()
}

#[derive(Clone, Copy)]
enum Body {
    Hello,
    Child,
    Chain,
    FanOut,
    Parent,
    Timer,
    Waiter,
    Eternal,
    Rounds,
    Once,
    Nap,
    Sleeper,
}

#[derive(Clone)]
struct Orchestration {
    signals: Arc<Signals>,
    body: Body,
}

impl Orchestration {
    fn handler(
        self,
    ) -> impl Fn(OrchestrationContext, String) -> BoxFuture + Clone + Send + Sync + 'static {
        move |ctx, input| {
            let this = self.clone();
            Box::pin(async move { this.run(ctx, input).await })
        }
    }

    async fn run(self, ctx: OrchestrationContext, input: String) -> Answer {
        let signals = &self.signals;
        match self.body {
            Body::Hello => hello(signals, &ctx, input).await,
            Body::Child => ctx.schedule_activity("Echo", input).await,
            Body::Chain => chain(&ctx, &input).await,
            Body::FanOut => {
                let answer = fan_out(&ctx, &input).await;
                signals.done();
                answer
            }
            Body::Parent => {
                let answer = parent(&ctx, &input).await;
                signals.done();
                answer
            }
            Body::Timer => {
                ctx.schedule_timer(TIMER).await;
                signals.resumed(ctx.instance_id());
                Ok(input)
            }
            Body::Waiter => {
                let data = ctx.schedule_wait("Go").await;
                signals.resumed(ctx.instance_id());
                Ok(data)
            }
            Body::Eternal => eternal(&ctx, &input).await,
            Body::Rounds => match number(&input)? {
                0 | 1 => {
                    signals.done();
                    Ok(input)
                }
                left => ctx.continue_as_new((left - 1).to_string()).await,
            },
            Body::Once => {
                signals.done();
                Ok(input)
            }
            Body::Nap => {
                let timer = ctx.schedule_timer(NAP);
                signals.done();
                timer.await;
                Ok(input)
            }
            Body::Sleeper => {
                let never = ctx.schedule_wait("Never");
                signals.done();
                Ok(never.await)
            }
        }
    }
}

type BoxFuture = std::pin::Pin<Box<dyn Future<Output = Answer> + Send>>;

async fn hello(signals: &Signals, ctx: &OrchestrationContext, input: String) -> Answer {
    if !ctx.is_replaying() {
        signals.begin();
    }
    let answer = ctx.schedule_activity("Echo", input).await;
    signals.done();
    answer
}

async fn chain(ctx: &OrchestrationContext, length: &str) -> Answer {
    for step in 0..number(length)? {
        ctx.schedule_activity("Echo", step.to_string()).await?;
    }
    Ok(length.to_owned())
}

async fn fan_out(ctx: &OrchestrationContext, width: &str) -> Answer {
    let all = (0..number(width)?).map(|n| ctx.schedule_activity("Echo", n.to_string())).collect();
    for result in ctx.join(all).await {
        result?;
    }
    Ok(width.to_owned())
}

async fn parent(ctx: &OrchestrationContext, children: &str) -> Answer {
    let all = (0..number(children)?)
        .map(|n| ctx.schedule_sub_orchestration("Child", n.to_string()))
        .collect();
    for result in ctx.join(all).await {
        result?;
    }
    Ok(children.to_owned())
}

/// One activity for each execution, until the count is down to nothing.
async fn eternal(ctx: &OrchestrationContext, left: &str) -> Answer {
    ctx.schedule_activity("Echo", left).await?;
    match number(left)? {
        0 | 1 => Ok("done".to_owned()),
        left => ctx.continue_as_new((left - 1).to_string()).await,
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}
