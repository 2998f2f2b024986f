//! The orchestration that runs programs, and the activities it asks for.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, BackoffStrategy, Either2, OrchestrationContext, OrchestrationRegistry,
    RetryPolicy,
};
use serde::{Deserialize, Serialize};

use crate::journal::Journal;
use crate::programs::{Program, Step, mix};
use crate::roles::Stage;

/// If set, a process keeps every activity, or every turn, that it takes, until it is released.
pub const HOLD: &str = "FLEET_HOLD";
/// How often a process that keeps one looks whether it is released.
const LOOK: Duration = Duration::from_millis(5);
/// Longer than any test lasts.
const LONG: Duration = Duration::from_secs(600);

/// What an activity is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Tells it from the other activities of its instance.
    pub(crate) label: String,
    pub(crate) value: u64,
    pub(crate) ms: u64,
    /// How often it fails before it succeeds.
    pub(crate) failures: u64,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) value: u64,
    /// Which run of the activity made it: no two have the same.
    pub(crate) run: String,
}

impl Order {
    fn new(at: usize, n: u64, value: u64) -> Self {
        Self { label: format!("{at}.{n}"), value, ms: 1, failures: 0 }
    }
}

/// The orchestrations of a process.
pub fn orchestrations(stage: &Stage) -> OrchestrationRegistry {
    let (journal, folder) = (stage.journal.clone(), stage.folder.clone());
    let holds = stage.setting(HOLD).as_deref() == Some("turns");
    let turn = move |ctx: OrchestrationContext, input: String| {
        journal.note(format_args!("T {}", ctx.instance_id()));
        while holds && !is_let_go(&folder, std::process::id()) {
            std::thread::sleep(LOOK);
        }
        async move { Ok(format!("{input} by {}", std::process::id())) }
    };
    OrchestrationRegistry::builder().register_typed("Program", run).register("Turn", turn).build()
}

/// Lets a process go on with what it holds.
pub fn let_go(folder: &Path, process: u32) {
    std::fs::write(folder.join(format!("let-go-{process}")), "").unwrap();
}

fn is_let_go(folder: &Path, process: u32) -> bool {
    folder.join(format!("let-go-{process}")).exists()
}

/// The activities of a process.
pub fn activities(stage: &Stage) -> ActivityRegistry {
    let worker = Arc::new(Worker {
        journal: stage.journal.clone(),
        folder: stage.folder.clone(),
        holds: stage.setting(HOLD).as_deref() == Some("activities"),
    });
    let hanging = Arc::clone(&worker);
    ActivityRegistry::builder()
        .register_typed("Work", move |ctx, order| {
            let worker = Arc::clone(&worker);
            async move { worker.work(ctx, order).await }
        })
        .register_typed("Hang", move |ctx, order| {
            let worker = Arc::clone(&hanging);
            async move { worker.hang(ctx, order).await }
        })
        .build()
}

async fn run(ctx: OrchestrationContext, mut program: Program) -> Result<u64, String> {
    while let Some(step) = program.steps.get(program.at).cloned() {
        let at = program.at;
        program.at += 1;
        let value = match step {
            Step::ContinueAsNew => {
                ctx.continue_as_new_typed(&program).await?;
                continue;
            }
            Step::Queue { messages } => read_mail(&ctx, &mut program.read, messages).await?,
            Step::FanOut { value, width } => {
                let orders = (0..width).map(|n| work(&ctx, &Order::new(at, n, value + n)));
                let results = ctx.join(orders.collect()).await;
                results.into_iter().try_fold(0, |sum, result| Ok::<_, String>(mix(sum, result?)))?
            }
            simple => take_step(&ctx, at, simple).await?,
        };
        program.sum = mix(program.sum, value);
    }
    Ok(program.sum)
}

async fn take_step(ctx: &OrchestrationContext, at: usize, step: Step) -> Result<u64, String> {
    match step {
        Step::Work { value, ms } => work(ctx, &Order { ms, ..Order::new(at, 0, value) }).await,
        Step::OnSession { value, session } => {
            let (order, session) = (Order::new(at, 0, value), format!("session-{session}"));
            let done: Delivery =
                ctx.schedule_activity_on_session_typed("Work", &order, session).await?;
            Ok(done.value)
        }
        Step::Tagged { value, tag } => {
            let order = Order::new(at, 0, value);
            let done = ctx.schedule_activity_typed::<_, Delivery>("Work", &order);
            Ok(done.with_tag(format!("tag-{tag}")).await?.value)
        }
        Step::Retry { value, failures } => {
            let order = Order { failures, ..Order::new(at, 0, value) };
            let pause = BackoffStrategy::Fixed { delay: Duration::from_millis(5) };
            let policy = RetryPolicy::new(5).with_backoff(pause);
            let done: Delivery =
                ctx.schedule_activity_with_retry_typed("Work", &order, policy).await?;
            Ok(done.value)
        }
        Step::Race { value } => {
            let racer = work(ctx, &Order::new(at, 0, value));
            match ctx.select2(racer, ctx.schedule_timer(LONG)).await {
                Either2::First(result) => result,
                Either2::Second(()) => Err("the timer was faster".to_owned()),
            }
        }
        Step::Impatience { ms } => {
            let hanging = ctx.schedule_activity_typed("Hang", &Order::new(at, 0, 0));
            match ctx.select2(hanging, ctx.schedule_timer(Duration::from_millis(ms))).await {
                Either2::First(result) => result,
                Either2::Second(()) => Ok(0),
            }
        }
        Step::Timer { ms } => {
            ctx.schedule_timer(Duration::from_millis(ms)).await;
            Ok(0)
        }
        Step::Event { .. } | Step::Never => {
            // Tells the client that the event is waited for from this commit on.
            ctx.set_custom_status(at.to_string());
            let data = ctx.schedule_wait(format!("event-{at}")).await;
            data.parse().map_err(|_| format!("strange event: {data}"))
        }
        Step::Child(steps) => {
            let child = Program::new(steps);
            ctx.schedule_sub_orchestration_typed("Program", &child).await
        }
        Step::Put { key, value } => {
            ctx.set_kv_value_typed(key.to_string(), &value);
            Ok(0)
        }
        Step::Get { key } => Ok(ctx.get_kv_value_typed(&key.to_string())?.unwrap_or(0)),
        Step::Queue { .. } | Step::FanOut { .. } | Step::ContinueAsNew => Ok(0),
    }
}

/// Reads so many messages; some may have been sent twice, by a client that was killed meanwhile.
async fn read_mail(
    ctx: &OrchestrationContext,
    read: &mut u64,
    messages: u64,
) -> Result<u64, String> {
    let mut sum = 0;
    for n in 0..messages {
        let number = loop {
            let message = ctx.dequeue_event("mail").await;
            let number: u64 = message.parse().map_err(|_| format!("strange mail: {message}"))?;
            if *read <= number {
                break number;
            }
        };
        if number != *read {
            return Err(format!("message {number} came before message {read}"));
        }
        *read += 1;
        sum = mix(sum, n);
    }
    Ok(sum)
}

fn work(ctx: &OrchestrationContext, order: &Order) -> duroxide::DurableFuture<Result<u64, String>> {
    let done = ctx.schedule_activity_typed::<_, Delivery>("Work", order);
    done.map(|result| result.map(|delivery| delivery.value))
}

/// The activities of this process.
struct Worker {
    journal: Journal,
    folder: PathBuf,
    holds: bool,
}

impl Worker {
    async fn work(&self, ctx: ActivityContext, order: Order) -> Result<Delivery, String> {
        let run = self.begin(&ctx, &order);
        tokio::time::sleep(Duration::from_millis(order.ms)).await;
        while self.holds && !is_let_go(&self.folder, std::process::id()) {
            tokio::time::sleep(LOOK).await;
        }
        for n in 0..order.failures {
            // Each file is a failure: made once, by whichever run comes first.
            let name = format!("{}-{}-{n}.failed", ctx.instance_id(), order.label);
            let file = self.folder.join(name.replace(':', "_"));
            if OpenOptions::new().write(true).create_new(true).open(file).is_ok() {
                self.end(&ctx, &order, &run);
                return Err(format!("failure {n}"));
            }
        }
        self.end(&ctx, &order, &run);
        Ok(Delivery { value: order.value, run })
    }

    /// Waits to be cancelled.
    async fn hang(&self, ctx: ActivityContext, order: Order) -> Result<u64, String> {
        let run = self.begin(&ctx, &order);
        tokio::select! {
            () = ctx.cancelled() => {}
            () = tokio::time::sleep(LONG) => {}
        }
        self.end(&ctx, &order, &run);
        Err("cancelled".to_owned())
    }

    fn begin(&self, ctx: &ActivityContext, order: &Order) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let run = format!("{}-{number}", std::process::id());
        self.note("S", ctx, order, &run);
        run
    }

    fn end(&self, ctx: &ActivityContext, order: &Order, run: &str) {
        self.note("E", ctx, order, run);
    }

    fn note(&self, what: &str, ctx: &ActivityContext, order: &Order, run: &str) {
        let (instance, execution) = (ctx.instance_id(), ctx.execution_id());
        self.journal.note(format_args!("{what} {instance} {execution} {} {run}", order.label));
    }
}
