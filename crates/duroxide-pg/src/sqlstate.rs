//! SQLSTATEs, sorted: the one place that says what an error of the server means for us.
//!
//! | SQLSTATE | what it is | what we do |
//! | --- | --- | --- |
//! | 22xxx, 54xxx | data that cannot be stored, or is too large | the call fails for good |
//! | 40001, 40P01 | serialization failure, deadlock | the transaction is tried again at once, 10 times |
//! | 0A000, 26000 | outdated plan, statement unknown to this connection | the same on a new connection |
//! | 08xxx, 57P01 – 57P05 | the connection ends: shutdown, crash, start, idle timeout | connect again with growing pauses; what was under way may have happened |
//! | 53300 | no connection is free | connect again with growing pauses |
//! | 53xxx | no memory, no disk | the call fails, to be tried again; fetches wait |
//! | 28xxx, 3D000 | wrong user, password or database | the call fails, to be tried again: somebody may mend it |
//! | 25006 | the server only reads for now (failover) | connect again: another server may answer; the call fails, to be tried again |
//! | 23505 | a key is taken | the op is looked at alone, and the general function says which |
//! | 55P03 | somebody else has a row locked | those who want that row wait for it by themselves (`lanes/blocked.rs`), the others are done |
//! | 57014 | a statement took too long | ops are tried one by one, then the call fails, to be tried again |
//! | all others | unknown | the same: never for good |

/// What an error of the server means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The same call always ends the same way.
    Final,
    /// Undone for the sake of others: nothing has happened, and another try is worth it at once.
    Contention,
    /// The same, but this connection's statements are of no use any more.
    Outdated,
    /// The connection ends, or none can be had.
    Away,
    /// The server wants somebody else.
    Refused,
    /// The server lacks something, whatever it is asked.
    Shortage,
    /// The server is not the one that writes.
    ReadOnly,
    /// A key is taken.
    KeyTaken,
    /// Somebody else has a row locked.
    Locked,
    /// Something that passes, perhaps about one of many things done together.
    Passing,
}

/// What a SQLSTATE means; see the table.
pub(crate) fn meaning(code: &str) -> Meaning {
    match code {
        "40001" | "40P01" => Meaning::Contention,
        "0A000" | "26000" => Meaning::Outdated,
        "53300" | "57P01" | "57P02" | "57P03" | "57P04" | "57P05" => Meaning::Away,
        "3D000" => Meaning::Refused,
        "25006" => Meaning::ReadOnly,
        "23505" => Meaning::KeyTaken,
        "55P03" => Meaning::Locked,
        _ => match code.get(..2) {
            Some("22" | "54") => Meaning::Final,
            Some("08") => Meaning::Away,
            Some("28") => Meaning::Refused,
            Some("53") => Meaning::Shortage,
            _ => Meaning::Passing,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_6_every_sqlstate_has_a_meaning_and_the_unknown_pass() {
        let sorted = [
            (Meaning::Final, "22021 22P05 22003 54000 54001"),
            (Meaning::Contention, "40001 40P01"),
            (Meaning::Outdated, "0A000 26000"),
            (Meaning::Away, "08000 08003 08006 57P01 57P02 57P03 57P05 53300"),
            (Meaning::Refused, "28000 28P01 3D000"),
            (Meaning::Shortage, "53000 53100 53200"),
            (Meaning::ReadOnly, "25006"),
            (Meaning::KeyTaken, "23505"),
            (Meaning::Locked, "55P03"),
            (Meaning::Passing, "57014 42P01 42501 3F000 58030 XX000 23P01 25P02 ZZ999 é"),
        ];
        for (expected, codes) in sorted {
            for code in codes.split_whitespace() {
                assert_eq!(meaning(code), expected, "{code}");
            }
        }
    }
}
