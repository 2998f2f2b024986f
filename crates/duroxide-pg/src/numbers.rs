//! Numbers as PostgreSQL stores them: it has no unsigned ones.

/// The largest span of time there is: 34 000 years. Sums with it cannot overflow.
const LONGEST_MS: u64 = 1 << 50;

/// An id as it is stored: the same bits.
pub(crate) fn id_in(id: u64) -> i64 {
    id as i64
}

/// A stored id.
pub(crate) fn id_out(stored: i64) -> u64 {
    stored as u64
}

/// A time as it is stored.
pub(crate) fn ms_in(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A span of time as it is stored.
pub(crate) fn span_in(ms: u64) -> i64 {
    ms.min(LONGEST_MS) as i64
}

/// A stored time or count.
pub(crate) fn ms_out(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// A stored attempt count.
pub(crate) fn attempts_out(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}
