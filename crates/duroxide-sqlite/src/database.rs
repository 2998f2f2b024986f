//! A connection with the statements prepared on it.
//!
//! The writer runs dozens of statements for each turn. To find each again by its text took a fifth of
//! its instructions; here it is found by the place of its text in the program.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use rusqlite::{Connection, PrepFlags, Statement};
use self_cell::self_cell;

use crate::tables::Sql;

self_cell! {
    /// A connection that keeps its statements.
    pub(crate) struct Database {
        owner: Connection,
        #[not_covariant]
        dependent: Statements,
    }
}

impl Database {
    pub(crate) fn of(connection: Connection) -> Self {
        Self::new(connection, |connection| Statements::new(connection))
    }

    /// The connection, for what is not done often.
    pub(crate) fn connection(&self) -> &Connection {
        self.borrow_owner()
    }

    /// Works with the database.
    pub(crate) fn with<T>(&self, work: impl FnOnce(Db<'_>) -> T) -> T {
        self.with_dependent(|connection, statements| {
            work(Db { connection, statements: Some(statements) })
        })
    }
}

/// A connection, with its statements if it keeps them.
#[derive(Clone, Copy)]
pub(crate) struct Db<'a> {
    connection: &'a Connection,
    statements: Option<&'a (dyn Keep + 'a)>,
}

impl<'a> Db<'a> {
    /// A connection that is not asked much.
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self { connection, statements: None }
    }

    /// Does something with a statement.
    pub(crate) fn with<T>(
        self,
        sql: &'static str,
        work: impl FnOnce(&mut Statement<'_>) -> Sql<T>,
    ) -> Sql<T> {
        let Some(statements) = self.statements else {
            return work(&mut *self.connection.prepare_cached(sql)?);
        };
        let (mut work, mut result) = (Some(work), Err(rusqlite::Error::InvalidQuery));
        statements.with(sql, &mut |statement| {
            if let Some(work) = work.take() {
                result = work(statement);
            }
        })?;
        result
    }
}

impl Deref for Db<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// Keeps statements, and hides their lifetime from its users.
trait Keep {
    /// Hands out a statement, prepared if it is asked for the first time.
    fn with(&self, sql: &'static str, work: &mut dyn FnMut(&mut Statement<'_>)) -> Sql<()>;
}

type Kept<'c> = Rc<RefCell<Statement<'c>>>;

/// Statements in the order of their place in the program.
struct Statements<'c> {
    connection: &'c Connection,
    prepared: RefCell<Vec<((usize, usize), Kept<'c>)>>,
}

impl<'c> Statements<'c> {
    fn new(connection: &'c Connection) -> Self {
        Self { connection, prepared: RefCell::default() }
    }

    fn get(&self, sql: &'static str) -> Sql<Kept<'c>> {
        let place = (sql.as_ptr().addr(), sql.len());
        let mut prepared = self.prepared.borrow_mut();
        match prepared.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(index) => Ok(Rc::clone(&prepared[index].1)),
            Err(index) => {
                let statement = self.prepare(sql)?;
                let statement = Rc::new(RefCell::new(statement));
                prepared.insert(index, (place, Rc::clone(&statement)));
                Ok(statement)
            }
        }
    }

    fn prepare(&self, sql: &'static str) -> Sql<Statement<'c>> {
        self.connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)
    }
}

impl Keep for Statements<'_> {
    fn with(&self, sql: &'static str, work: &mut dyn FnMut(&mut Statement<'_>)) -> Sql<()> {
        let statement = self.get(sql)?;
        match statement.try_borrow_mut() {
            Ok(mut statement) => work(&mut statement),
            // It is being read at this moment: another one, then.
            Err(_) => work(&mut self.prepare(sql)?),
        }
        Ok(())
    }
}
