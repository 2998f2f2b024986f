//! A way to the server that can be cut, frozen, or lose an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Way {
    /// They pass.
    Open = 0,
    /// They get lost, without anybody being told: connections stay, and new ones are taken.
    Frozen = 1,
    /// What is asked passes; the connection is cut when the answer comes.
    AnswerLost = 2,
    /// Connections end, and new ones are refused.
    Closed = 3,
}

/// A proxy on loopback, for one server.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    /// Ends everything when dropped.
    _runtime: tokio::runtime::Runtime,
}

struct State {
    /// The server's port.
    server: AtomicU16,
    way: AtomicU8,
    cut: AtomicU32,
    /// How many connections there are.
    connected: watch::Sender<u32>,
    /// Told when the way changes.
    news: watch::Sender<()>,
}

impl Proxy {
    /// Listens, and passes connections on to a port of this machine.
    pub(crate) fn start(server: u16) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let state = State {
            server: AtomicU16::new(server),
            way: AtomicU8::new(0),
            cut: AtomicU32::new(0),
            connected: watch::channel(0).0,
            news: watch::channel(()).0,
        };
        let state = Arc::new(state);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((inner, _)) = listener.accept().await {
                if shared.way() == Way::Closed {
                    continue;
                }
                let server = shared.server.load(Ordering::SeqCst);
                let Ok(outer) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                shared.carry(inner, outer);
            }
        });
        Self { port, state, _runtime: runtime }
    }

    /// The URL of a server, by this way.
    pub(crate) fn url(&self, url: &str) -> String {
        let (before, after) = url.rsplit_once('@').unwrap();
        let (_, database) = after.split_once('/').unwrap();
        format!("{before}@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) fn set(&self, way: Way) {
        self.state.way.store(way as u8, Ordering::SeqCst);
        self.state.news.send_replace(());
    }

    /// Leads new connections to another server.
    pub(crate) fn lead_to(&self, server: u16) {
        self.state.server.store(server, Ordering::SeqCst);
    }

    /// Waits until all connections have ended on both sides.
    pub(crate) async fn until_nobody_is_connected(&self) {
        let mut connected = self.state.connected.subscribe();
        connected.wait_for(|connected| *connected == 0).await.unwrap();
    }

    /// How many connections were cut.
    pub(crate) fn cut(&self) -> u32 {
        self.state.cut.load(Ordering::SeqCst)
    }
}

impl State {
    fn way(&self) -> Way {
        match self.way.load(Ordering::SeqCst) {
            0 => Way::Open,
            1 => Way::Frozen,
            2 => Way::AnswerLost,
            _ => Way::Closed,
        }
    }

    fn carry(self: &Arc<Self>, inner: TcpStream, outer: TcpStream) {
        let (inner_read, inner_write) = inner.into_split();
        let (outer_read, outer_write) = outer.into_split();
        let (asking, answering, closing) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let both = async move {
            tokio::select! {
                () = asking.pass(inner_read, outer_write, false) => {}
                () = answering.pass(outer_read, inner_write, true) => {}
                () = closing.closed() => {}
            }
        };
        let state = Arc::clone(self);
        state.connected.send_modify(|connected| *connected += 1);
        tokio::spawn(async move {
            both.await;
            state.connected.send_modify(|connected| *connected -= 1);
        });
    }

    /// Waits until the way is closed.
    async fn closed(&self) {
        let mut news = self.news.subscribe();
        while self.way() != Way::Closed && news.changed().await.is_ok() {}
    }

    /// Passes bytes until one side is gone, or the connection is cut.
    async fn pass(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answers: bool) {
        let mut news = self.news.subscribe();
        let mut bytes = vec![0; 64 << 10];
        loop {
            let Ok(length @ 1..) = from.read(&mut bytes).await else { return };
            match self.way() {
                // One answer is lost, then the way is open again.
                Way::AnswerLost if answers => {
                    self.way.store(Way::Open as u8, Ordering::SeqCst);
                    self.cut.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Way::Frozen => {
                    while self.way() == Way::Frozen && news.changed().await.is_ok() {}
                    return; // What got lost cannot be made good.
                }
                _ => {}
            }
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }
}
