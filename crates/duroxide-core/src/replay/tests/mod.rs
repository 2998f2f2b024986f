//! Replay, case by case.
