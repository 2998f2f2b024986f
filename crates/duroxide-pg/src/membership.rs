//! Whether this store is a node: one whose death others notice.

use tokio::sync::watch;

/// This store's place among the nodes of its database.
#[derive(Debug)]
pub(crate) struct Membership(watch::Sender<Standing>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is about to be known.
    Joining,
    /// It is a node, and this is its id.
    Node(i64),
    /// Nobody would notice its death: what it takes is its own until the lease ends.
    Outside,
}

impl Membership {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Standing::Outside))
    }

    /// Somebody has begun to see to it.
    pub(crate) fn begin(&self) {
        self.0.send_replace(Standing::Joining);
    }

    /// It is a node now.
    pub(crate) fn join(&self, id: i64) {
        self.0.send_replace(Standing::Node(id));
    }

    /// Others may take it for dead: what it takes from now on is not to go with that.
    pub(crate) fn end(&self) {
        self.0.send_replace(Standing::Outside);
    }

    /// Who this node is, if it is one.
    pub(crate) fn node(&self) -> Option<i64> {
        match *self.0.borrow() {
            Standing::Node(id) => Some(id),
            Standing::Joining | Standing::Outside => None,
        }
    }

    /// Returns when it is known whether it is a node: what is taken before that would have to wait for
    /// the end of its lease, should the process die.
    pub(crate) async fn settled(&self) {
        let is_settled = |standing: &Standing| *standing != Standing::Joining;
        if is_settled(&self.0.borrow()) {
            return;
        }
        // Fails only if the sender is gone, which is in here.
        self.0.subscribe().wait_for(is_settled).await.ok();
    }

    /// Sees to it that nobody waits for somebody who is gone.
    pub(crate) fn ends_when_dropped(&self) -> impl Drop + '_ {
        struct End<'a>(&'a Membership);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        End(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_asks_while_it_is_decided_waits() {
        let membership = Membership::new();
        membership.settled().await;
        assert_eq!(membership.node(), None);
        membership.begin();
        let join = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert_eq!(membership.node(), None);
            membership.join(7);
        };
        tokio::join!(membership.settled(), join);
        assert_eq!(membership.node(), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_somebody_who_is_gone() {
        let membership = Membership::new();
        membership.begin();
        let watcher = membership.ends_when_dropped();
        tokio::join!(membership.settled(), async { drop(watcher) });
        assert_eq!(membership.node(), None);
    }
}
