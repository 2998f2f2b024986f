//! PostgreSQL's own limit: one client that writes one row per commit.

use std::error::Error;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

/// Commits before the clock runs: plans, files and caches are there.
const WARM_UP: u32 = 200;

/// Milliseconds of transactions that write one row.
pub(crate) fn commits(url: &str, budget: Duration) -> Result<Vec<f64>, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute("CREATE TABLE one (id bigserial PRIMARY KEY, text text)").await?;
        let insert = client.prepare("INSERT INTO one (text) VALUES ('one row')").await?;
        for _ in 0..WARM_UP {
            client.execute(&insert, &[]).await?;
        }
        let mut samples = Vec::new();
        let end = Instant::now() + budget;
        while Instant::now() < end {
            let began_at = Instant::now();
            client.execute(&insert, &[]).await?;
            samples.push(began_at.elapsed().as_secs_f64() * 1e3);
        }
        drop(client);
        connection.await??;
        Ok(samples)
    })
}
