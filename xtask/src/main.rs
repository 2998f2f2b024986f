//! Repository checks, run as `cargo xtask <command>`.

mod files;
mod regions;
mod rules;
mod paths;
mod contract;
mod tidy;
mod licences;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <command>

  rules [--max N]      which rules of docs/behaviour.md no test cites; fails above N of them
  paths [--strict]     which items of docs/public-api.txt we lack; strict fails on unexpected ones
  contract [--strict]  whether the documents for authors of stores and the validation suite agree;
                       strict: nothing is named before it exists
  tidy                 sizes, arrows between modules, wording of the files
  licences             whether deny.toml allows the licences of all crates that we build with";

/// What a check found; the text is for people.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Outcome {
    match args {
        ["rules"] => rules::run(None),
        ["rules", "--max", max] => {
            rules::run(Some(max.parse().map_err(|_| format!("not a number: {max}"))?))
        }
        ["paths"] => paths::run(false),
        ["paths", "--strict"] => paths::run(true),
        ["contract"] => contract::run(false),
        ["contract", "--strict"] => contract::run(true),
        ["tidy"] => tidy::run(),
        ["licences"] => licences::run(),
        _ => Err(USAGE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_commands_show_the_usage() {
        for args in [&[][..], &["help"], &["rules", "--max"], &["contract", "now"]] {
            assert_eq!(run(args), Err(USAGE.to_owned()), "{args:?}");
        }
        assert_eq!(run(&["rules", "--max", "x"]), Err("not a number: x".to_owned()));
    }
}
