//! The command line.

use std::path::PathBuf;

use crate::Failure;
use crate::variant::Variant;

/// What `--help` says.
pub(crate) const HELP: &str = "\
bench/run [options] [workload…]

  workloads are names or their beginnings (w2, w3-fan-out, w2-chain:100); none: all
  --quick              one short round (default)
  --full               three longer rounds, all sizes, ours also without fsync
  --rounds N           rounds over all variants
  --store KIND         sqlite (default), postgres (or pg), memory
  --only SIDE          ours or reference
  --retune             look for the reference's best settings again
  --variant SPEC       one more variant, e.g. ours:concurrency=32,poll-ms=1
  --dir DIR            where database files are put while measuring (must be a real disk)
  --out DIR            where results are written (default: bench/results)";

/// What to run.
pub(crate) struct Args {
    pub(crate) cases: Vec<String>,
    pub(crate) full: bool,
    pub(crate) rounds: u32,
    pub(crate) store: String,
    pub(crate) ours: bool,
    pub(crate) reference: bool,
    pub(crate) retune: bool,
    pub(crate) help: bool,
    pub(crate) extra: Vec<Variant>,
    pub(crate) dir: PathBuf,
    pub(crate) out: PathBuf,
    /// Folder of the programs.
    pub(crate) bin: PathBuf,
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut args = Self {
            cases: Vec::new(),
            full: false,
            rounds: 0,
            store: "sqlite".to_owned(),
            ours: true,
            reference: true,
            retune: false,
            help: false,
            extra: Vec::new(),
            dir: std::env::temp_dir(),
            out: PathBuf::from("results"),
            bin: programs()?,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => args.full = false,
                "--full" => args.full = true,
                "--retune" => args.retune = true,
                "-h" | "--help" => args.help = true,
                option if option.starts_with("--") => {
                    let value = words.next().ok_or_else(|| format!("{option}: value missing"))?;
                    args.set(option, &value)?;
                }
                case => args.cases.push(case.to_owned()),
            }
        }
        if args.rounds == 0 {
            args.rounds = if args.full { 3 } else { 1 };
        }
        Ok(args)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), Failure> {
        match option {
            "--rounds" => self.rounds = value.parse()?,
            "--store" => {
                let value = if value == "pg" { "postgres" } else { value };
                if !["sqlite", "postgres", "memory"].contains(&value) {
                    return Err(format!("--store {value}?").into());
                }
                self.store = value.to_owned();
            }
            "--only" => {
                self.ours = value == "ours";
                self.reference = value == "reference";
                if !self.ours && !self.reference {
                    return Err(format!("--only {value}?").into());
                }
            }
            "--variant" => self.extra.push(Variant::parse(value)?),
            "--dir" => self.dir = PathBuf::from(value),
            "--out" => self.out = PathBuf::from(value),
            _ => return Err(format!("{option}?\n\n{HELP}").into()),
        }
        Ok(())
    }
}

/// The other programs lie beside this one.
fn programs() -> Result<PathBuf, Failure> {
    let mut folder = std::env::current_exe()?;
    folder.pop();
    Ok(folder)
}
