//! A fleet at work on a server, while something is done to that.

use duroxide_fleet::{
    AT_ONCE, Folder, Line, PATIENT, Process, SEED, SOON, Stage, assert_sound, now_ms,
};
use duroxide_pg_testserver::{Options, Server, shared};

use crate::store::{POSTGRES, URL_FILE, config, on_a_thread};
use crate::support::stranger;

/// If set, how many times longer the faults last.
const SOAK: &str = "DUROXIDE_SOAK_TIMES";

/// A store on a server.
pub(crate) struct Site {
    pub(crate) stage: Stage,
    /// If it is one of its own.
    pub(crate) server: Option<Server>,
    /// Removed in the end.
    _folder: Folder,
}

/// Who is at work.
pub(crate) struct Crew {
    workers: Vec<Process>,
    client: Process,
}

impl Site {
    /// A store on the server of all tests; `None` if there is no server.
    pub(crate) fn shared() -> Option<Self> {
        Some(Self::at(shared()?.url().to_owned(), None))
    }

    /// A store on a server of its own, whose commits wait for the disk.
    pub(crate) fn own(settings: &[&str]) -> Option<Self> {
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let options = Options { settings, ..Options::default() };
        let server = Server::start(&options).unwrap()?;
        Some(Self::at(server.url(), Some(server)))
    }

    fn at(url: String, server: Option<Server>) -> Self {
        let folder = Folder::new();
        std::fs::write(folder.file(URL_FILE), url).unwrap();
        Self { stage: Stage::new(&POSTGRES, folder.path()), server, _folder: folder }
    }

    /// The server, if it is one of its own.
    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Two workers and a client that insists; returns when work is done. `settings` are for the
    /// workers.
    pub(crate) fn start(&self, settings: &[(&str, &str)]) -> Crew {
        let workers = vec![self.stage.start_worker(settings), self.stage.start_worker(settings)];
        let seed = (now_ms() % 1_000_000).to_string();
        let client = [(SEED, seed.as_str()), (AT_ONCE, "16"), (PATIENT, "1")];
        let client = self.stage.start("client", &client);
        let crew = Crew { workers, client };
        self.progress(16);
        crew
    }

    /// Waits until so many more programs have been seen through, and prints how long that took.
    pub(crate) fn progress(&self, programs: usize) {
        let since = now_ms();
        let done = |line: &&Line| line.says(&["DONE"]) && since <= line.at_ms;
        self.stage.journal.wait_for("progress", SOON, |lines| {
            (programs <= lines.iter().filter(done).count()).then_some(())
        });
        println!("{programs} programs were seen through after {} ms", now_ms() - since);
    }

    /// Writes down that something is done to the server now: activities may run again.
    pub(crate) fn fault(&self, what: &str) {
        self.stage.journal.note(format_args!("FAULT {what}"));
    }

    /// Writes down that it is over.
    pub(crate) fn fault_over(&self) {
        self.stage.journal.note("OVER");
    }

    /// Lets everything come to its end, and looks for what is wrong.
    pub(crate) fn finish(&self, crew: Crew, what: &str) {
        crew.client.finish();
        crew.workers.into_iter().for_each(Process::finish);
        let lines = self.stage.journal.read();
        let count = |word: &str| lines.iter().filter(|line| line.says(&[word])).count();
        let (done, again) = (count("DONE"), count("AGAIN"));
        let runs = count("S");
        println!("{what}: {done} programs, {runs} runs of activities, {again} calls made again");
        assert_sound(&self.stage, what);
    }

    /// Ends every connection of this store; how many there were.
    pub(crate) fn end_connections(&self) -> i64 {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name = $1";
        on_a_thread(async {
            let config = config(&self.stage.folder);
            let client = stranger(&config).await;
            client.query_one(end, &[&config.schema]).await.unwrap().get(0)
        })
    }
}

/// How many times a fault is repeated: that often, or more if somebody has the time.
pub(crate) fn times(usual: u32) -> u32 {
    let longer = std::env::var(SOAK).ok().and_then(|times| times.parse::<u32>().ok());
    usual * longer.unwrap_or(1)
}
