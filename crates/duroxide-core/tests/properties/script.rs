//! Random orchestrations: small programs, run by one handler.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use duroxide_core::context::{
    Either2, FnOrchestration, OrchestrationContext, OrchestrationHandler,
};
use duroxide_core::model::SYSCALL_NEW_GUID;
use futures::channel::mpsc;
use futures::future::FutureExt as _;
use futures::lock::Mutex;
use futures::sink::SinkExt as _;
use futures::stream::{self, FuturesUnordered, StreamExt as _};
use proptest::collection;
use proptest::prelude::*;
use proptest::strategy::Union;

/// Something that can be awaited.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Activity(u8),
    Timer(u8),
    Child(u8),
    Wait(u8),
    Dequeue(u8),
    Guid,
}

/// One step of a program. Places in the list of held futures wrap around.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Await(Op),
    Join(Vec<Op>),
    Select(Op, Op),
    /// Schedules now, awaits later, if ever.
    Hold(Op),
    AwaitHeld(u8),
    DropHeld(u8),
    /// A held future against a new one.
    SelectHeld(u8, Op),
    Detached(u8),
    Set(u8, u8),
    Clear(u8),
    ClearAll,
    /// Removes what is older than this many milliseconds.
    Prune(u8),
    Status(Option<u8>),
    /// Two blocks side by side. The second gets what was held.
    Both(Vec<Step>, Vec<Step>),
    /// An unordered set, read until this many are there; the rest is given up.
    Unordered(Vec<Op>, u8),
    /// A stream of work, this many at a time, in order or as they come.
    Stream(Vec<Op>, u8, bool),
    /// A join in which each branch needs one of a few permits while it works.
    Limited(Vec<Op>, u8),
    /// One branch does the first ops and sends what comes of each through a channel of this size;
    /// another receives, and does the second ops over and over with what it got.
    Pipe(Vec<Op>, Vec<Op>, u8),
    /// Two readers of one future.
    Shared(Op),
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Return,
    Fail,
    /// Twice; the third execution returns.
    Continue,
    /// Asks for it and returns a value all the same.
    ContinueAndReturn,
}

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
}

/// What programs may be made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ingredients {
    /// Waits, whose signals are lost when they come early.
    pub(crate) waits: bool,
    /// Dequeues and system calls, which resolve within a turn.
    pub(crate) in_turn: bool,
    /// Races and blocks side by side.
    pub(crate) races: bool,
    /// Values that depend on the time of the turn.
    pub(crate) time: bool,
    /// What there is most of.
    pub(crate) focus: Focus,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Focus {
    Everything,
    /// One queue and one signal that all tasks wait for.
    Mail,
    Values,
}

impl Ingredients {
    pub(crate) const ALL: Self =
        Self { waits: true, in_turn: true, races: true, time: true, focus: Focus::Everything };
}

pub(crate) fn program(of: Ingredients) -> impl Strategy<Value = Program> {
    let end = prop_oneof![
        4 => Just(End::Return),
        1 => Just(End::Fail),
        3 => Just(End::Continue),
        1 => Just(End::ContinueAndReturn),
    ];
    let focus = prop_oneof![Just(Focus::Everything), Just(Focus::Mail), Just(Focus::Values)];
    let steps = focus
        .prop_flat_map(move |focus| collection::vec(step(Ingredients { focus, ..of }, 2), 0..9));
    (steps, end).prop_map(|(steps, end)| Program { steps, end })
}

fn op(of: Ingredients) -> BoxedStrategy<Op> {
    let plain = prop_oneof![
        3 => (0..3u8).prop_map(Op::Activity),
        1 => (0..3u8).prop_map(Op::Timer),
        2 => (0..3u8).prop_map(Op::Child),
    ];
    let names = if of.focus == Focus::Mail { 0..1u8 } else { 0..2u8 };
    let waits = names.clone().prop_map(Op::Wait);
    let in_turn = prop_oneof![4 => names.prop_map(Op::Dequeue), 1 => Just(Op::Guid)];
    let mut ops = vec![(if of.focus == Focus::Mail { 2 } else { 6 }, plain.boxed())];
    ops.extend(of.waits.then(|| (2, waits.boxed())));
    ops.extend(of.in_turn.then(|| (4, in_turn.boxed())));
    Union::new_weighted(ops).boxed()
}

fn step(of: Ingredients, depth: u32) -> BoxedStrategy<Step> {
    let awaits = prop_oneof![
        3 => op(of).prop_map(Step::Await),
        1 => collection::vec(op(of), 0..4).prop_map(Step::Join),
        1 => any::<u8>().prop_map(Step::Detached),
    ];
    let holds = prop_oneof![
        3 => op(of).prop_map(Step::Hold),
        1 => any::<u8>().prop_map(Step::AwaitHeld),
        2 => any::<u8>().prop_map(Step::DropHeld),
    ];
    let values = prop_oneof![
        3 => (0..3u8, any::<u8>()).prop_map(|(key, value)| Step::Set(key, value)),
        1 => (0..3u8).prop_map(Step::Clear),
        1 => Just(Step::ClearAll),
        1 => any::<Option<u8>>().prop_map(Step::Status),
    ];
    let (holding, keeping) = match of.focus {
        Focus::Everything => (2, 2),
        Focus::Mail => (4, 1),
        Focus::Values => (1, 6),
    };
    let simple = prop_oneof![4 => awaits, holding => holds, keeping => values];
    let simple = match of.time {
        true => prop_oneof![8 => simple, 1 => (0..30u8).prop_map(Step::Prune)].boxed(),
        false => simple.boxed(),
    };
    if !of.races {
        return simple;
    }
    let simple = prop_oneof![8 => simple, 3 => concurrent(of)].boxed();
    let races = prop_oneof![
        2 => (op(of), op(of)).prop_map(|(a, b)| Step::Select(a, b)),
        1 => (any::<u8>(), op(of)).prop_map(|(held, op)| Step::SelectHeld(held, op)),
    ];
    if depth == 0 {
        return prop_oneof![4 => simple, 1 => races].boxed();
    }
    let both =
        (collection::vec(step(of, depth - 1), 0..4), collection::vec(step(of, depth - 1), 0..4))
            .prop_map(|(first, second)| Step::Both(first, second));
    let side_by_side = if of.focus == Focus::Mail { 3 } else { 1 };
    prop_oneof![6 => simple, 2 => races, side_by_side => both].boxed()
}

/// What other libraries offer to put between durable futures.
fn concurrent(of: Ingredients) -> impl Strategy<Value = Step> {
    let ops = || collection::vec(op(of), 1..6);
    let few = 1..4u8;
    prop_oneof![
        (ops(), 0..6u8).prop_map(|(ops, wanted)| Step::Unordered(ops, wanted)),
        (ops(), few.clone(), any::<bool>())
            .prop_map(|(ops, at_once, in_order)| Step::Stream(ops, at_once, in_order)),
        (ops(), few.clone()).prop_map(|(ops, permits)| Step::Limited(ops, permits)),
        (ops(), ops(), few).prop_map(|(made, used, room)| Step::Pipe(made, used, room)),
        op(of).prop_map(Step::Shared),
    ]
}

/// The handler that runs a program. Its output tells everything it has seen.
pub(crate) fn handler(program: &Program) -> Arc<dyn OrchestrationHandler> {
    let program = Arc::new(program.clone());
    Arc::new(FnOrchestration(move |ctx: OrchestrationContext, input: String| {
        let program = program.clone();
        async move {
            let mut block = Block { seen: vec![input], ..Block::new(&ctx) };
            block.run(&program.steps).await;
            let seen = block.seen.join(" ");
            let again = ctx.execution_id() < 3;
            match program.end {
                End::Continue if again => return ctx.continue_as_new(digest(&seen)).await,
                End::ContinueAndReturn if again => drop(ctx.continue_as_new(digest(&seen))),
                End::Fail => return Err(seen),
                _ => {}
            }
            Ok(seen)
        }
    }))
}

type Task = Pin<Box<dyn Future<Output = String> + Send>>;
type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Steps in progress.
struct Block {
    ctx: OrchestrationContext,
    /// What it has seen so far. Inputs of activities depend on it, so that no difference stays
    /// hidden.
    seen: Vec<String>,
    /// What it holds.
    held: Vec<Task>,
}

impl Block {
    fn new(ctx: &OrchestrationContext) -> Self {
        Self { ctx: ctx.clone(), seen: Vec::new(), held: Vec::new() }
    }

    fn run<'a>(&'a mut self, steps: &'a [Step]) -> Running<'a> {
        Box::pin(async move {
            for step in steps {
                self.step(step).await;
            }
        })
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Await(op) => {
                let value = self.start(op).await;
                self.seen.push(value);
            }
            Step::Join(ops) => {
                let tasks = ops.iter().map(|op| self.start(op)).collect();
                let values = self.ctx.join::<String, Task>(tasks).await;
                self.seen.extend(values);
            }
            Step::Select(first, second) => {
                let (first, second) = (self.start(first), self.start(second));
                self.race(first, second).await;
            }
            Step::Hold(op) => {
                let task = self.start(op);
                self.held.push(task);
            }
            Step::AwaitHeld(place) => {
                if let Some(task) = self.take_held(*place) {
                    let value = task.await;
                    self.seen.push(value);
                }
            }
            Step::DropHeld(place) => drop(self.take_held(*place)),
            Step::SelectHeld(place, op) => {
                let held = self.take_held(*place);
                let new = self.start(op);
                match held {
                    Some(held) => self.race(held, new).await,
                    None => drop(new),
                }
            }
            Step::Both(first, second) => self.both(first, second).await,
            Step::Unordered(ops, wanted) => {
                let mut set: FuturesUnordered<Task> = ops.iter().map(|op| self.start(op)).collect();
                for _ in 0..*wanted {
                    let Some(value) = set.next().await else { break };
                    self.seen.push(value);
                }
            }
            Step::Stream(ops, at_once, in_order) => {
                let starter = self.starter();
                let work = stream::iter(ops.clone()).map(|op| starter.start(&op));
                let values: Vec<String> = match in_order {
                    true => work.buffered(usize::from(*at_once)).collect().await,
                    false => work.buffer_unordered(usize::from(*at_once)).collect().await,
                };
                self.seen.extend(values);
            }
            Step::Limited(ops, permits) => self.limited(ops, usize::from(*permits)).await,
            Step::Pipe(made, used, room) => self.pipe(made, used, usize::from(*room)).await,
            Step::Shared(op) => {
                let shared = self.start(op).shared();
                let (one, other) = self.ctx.join2(shared.clone(), shared).await;
                self.seen.push(format!("{one} {other}"));
            }
            note => self.note(note).await,
        }
    }

    async fn race(&mut self, first: Task, second: Task) {
        let winner = match self.ctx.select2(first, second).await {
            Either2::First(value) => format!("first:{value}"),
            Either2::Second(value) => format!("second:{value}"),
        };
        self.seen.push(winner);
    }

    async fn limited(&mut self, ops: &[Op], permits: usize) {
        // Locks handed out in turn are a semaphore that wakes its waiters.
        let places: Vec<Mutex<Vec<String>>> = (0..permits).map(|_| Mutex::default()).collect();
        let starter = self.starter();
        let branches = ops.iter().enumerate().map(|(n, op)| {
            let (starter, place) = (&starter, &places[n % permits]);
            async move {
                let mut seen = place.lock().await;
                let value = starter.start(op).await;
                seen.push(value);
            }
        });
        self.ctx.join(branches.collect()).await;
        self.seen.extend(places.into_iter().flat_map(Mutex::into_inner));
    }

    async fn pipe(&mut self, made: &[Op], used: &[Op], room: usize) {
        let (mut sender, mut receiver) = mpsc::channel(room);
        let starter = &self.starter();
        let producer = async move {
            for op in made {
                let value = starter.start(op).await;
                if sender.send(value).await.is_err() {
                    return;
                }
            }
        };
        let consumer = async {
            let mut seen = Vec::new();
            let mut next = used.iter().cycle();
            while let Some(value) = receiver.next().await {
                if let Some(op) = next.next() {
                    seen.push(format!("{value} {}", starter.start(op).await));
                }
            }
            seen
        };
        let ((), seen) = self.ctx.join2(producer, consumer).await;
        self.seen.extend(seen);
    }

    async fn both(&mut self, first: &[Step], second: &[Step]) {
        let mut a = Block { seen: vec![self.digest()], ..Self::new(&self.ctx) };
        let mut b = Block { seen: vec![self.digest()], ..Self::new(&self.ctx) };
        b.held = std::mem::take(&mut self.held);
        let (first, second) = (a.run(first), b.run(second));
        self.ctx.join2(first, second).await;
        self.seen.push(format!("[{} | {}]", a.seen.join(" "), b.seen.join(" ")));
        self.held = b.held;
        self.held.extend(a.held);
    }

    /// Steps that wait for nothing but the time.
    async fn note(&mut self, step: &Step) {
        match step {
            Step::Detached(n) => self.ctx.schedule_orchestration("D", format!("d{n}"), ""),
            Step::Set(key, value) => self.ctx.set_kv_value(format!("k{key}"), value.to_string()),
            Step::Clear(key) => self.ctx.clear_kv_value(format!("k{key}")),
            Step::ClearAll => self.ctx.clear_all_kv_values(),
            Step::Status(status) => match status {
                Some(status) => self.ctx.set_custom_status(status.to_string()),
                None => self.ctx.reset_custom_status(),
            },
            Step::Prune(age) => {
                let now = self.ctx.utc_now().await.unwrap_or(UNIX_EPOCH);
                let now_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
                let before = now_ms.saturating_sub(u64::from(*age) * 10);
                let pruned = self.ctx.prune_kv_values_updated_before(before);
                self.seen.push(format!("pruned:{pruned}"));
            }
            _ => {}
        }
        let mut values: Vec<_> = self.ctx.get_kv_all_values().into_iter().collect();
        values.sort();
        self.seen.push(format!("{values:?} {:?}", self.ctx.get_custom_status()));
    }

    fn start(&self, op: &Op) -> Task {
        self.starter().start(op)
    }

    /// Starts work in the light of what was seen so far.
    fn starter(&self) -> Starter {
        Starter { ctx: self.ctx.clone(), digest: self.digest() }
    }

    fn take_held(&mut self, place: u8) -> Option<Task> {
        if self.held.is_empty() {
            return None;
        }
        Some(self.held.remove(usize::from(place) % self.held.len()))
    }

    fn digest(&self) -> String {
        digest(&self.seen.join(" "))
    }
}

/// What it takes to start work. Other than a block it can be shared by branches.
struct Starter {
    ctx: OrchestrationContext,
    digest: String,
}

impl Starter {
    fn start(&self, op: &Op) -> Task {
        let ctx = &self.ctx;
        match op {
            Op::Activity(n) => {
                let activity = ctx.schedule_activity(format!("A{n}"), self.digest.clone());
                Box::pin(activity.map(|result| format!("{result:?}")))
            }
            Op::Timer(n) => {
                let timer = ctx.schedule_timer(Duration::from_millis(u64::from(*n) * 100));
                Box::pin(timer.map(|()| "timer".to_owned()))
            }
            Op::Child(0) => {
                let id = format!("child-{}", self.digest);
                let child = ctx.schedule_sub_orchestration_with_id("C", id, "");
                Box::pin(child.map(|result| format!("{result:?}")))
            }
            Op::Child(n) => {
                let child = ctx.schedule_sub_orchestration(format!("C{n}"), self.digest.clone());
                Box::pin(child.map(|result| format!("{result:?}")))
            }
            Op::Wait(n) => Box::pin(ctx.schedule_wait(format!("w{n}"))),
            Op::Dequeue(n) => Box::pin(ctx.dequeue_event(format!("q{n}"))),
            Op::Guid => {
                // What `new_guid` does, without borrowing the context.
                let guid = ctx.schedule_activity(SYSCALL_NEW_GUID, "");
                Box::pin(guid.map(|result| format!("{result:?}")))
            }
        }
    }
}

/// A short text that differs where texts differ.
fn digest(text: &str) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    format!("{:08x}", text.bytes().fold(2_166_136_261, step))
}
