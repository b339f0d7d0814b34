//! `tenure-models`: searches the models, and tells what it found.

use std::process::ExitCode;

use tenure_models::catalogue::{self, Search};

const HELP: &str = "\
Searches the models of Tenure's protocols exhaustively.

Usage: tenure-models [--deep | --bugs] [--threads T] [WORD]...

  --deep       larger searches, which take an hour and some gigabytes
  --bugs       models with a bug planted in each: it has to be found, and the path to it is printed
  --threads T  threads of each search, 2 unless said otherwise; paths are the shortest with 1
  WORD         only searches whose name contains one of these words, such as `leases`

Exit codes: 0 all as it should be, 1 it is not, 2 the command was not understood.
";

struct Asked {
    searches: Vec<Search>,
    threads: Option<usize>,
    words: Vec<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args) {
        Ok(Some(asked)) => run(asked),
        Ok(None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("tenure-models: {complaint}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Option<Asked>, String> {
    let mut asked = Asked { searches: catalogue::usual(), threads: None, words: Vec::new() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--deep" => asked.searches = catalogue::deep(),
            "--bugs" => asked.searches = catalogue::planted(),
            "--threads" => {
                let number = rest.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                asked.threads = Some(number.ok_or("--threads needs a whole number after it")?);
            }
            "--help" | "-h" => return Ok(None),
            option if option.starts_with('-') => return Err(format!("there is no option `{option}`")),
            word => asked.words.push(word.to_owned()),
        }
    }
    Ok(Some(asked))
}

fn run(asked: Asked) -> ExitCode {
    let is_wanted = |name: &str| asked.words.is_empty() || asked.words.iter().any(|word| name.contains(word));
    let (mut states, mut searches, mut bad) = (0, 0, 0);
    for search in asked.searches.into_iter().filter(|search| is_wanted(&search.name)) {
        let (name, breaks) = (search.name.clone(), search.breaks.clone());
        // A planted bug is told by its shortest path.
        let threads = asked.threads.unwrap_or(if breaks.is_empty() { 2 } else { 1 });
        let found = match search.run(threads) {
            Ok(found) => found,
            Err(invalid) => {
                eprintln!("tenure-models: {invalid}");
                return ExitCode::from(2);
            }
        };
        println!("{name}: {found}");
        let is_as_it_should_be = match &found.counterexample {
            None => breaks.is_empty() && found.is_good(),
            Some(counterexample) => breaks.contains(&counterexample.promise),
        };
        if !is_as_it_should_be {
            println!("NOT AS IT SHOULD BE: {name}");
            bad += 1;
        }
        states += found.states;
        searches += 1;
    }
    println!("{searches} searches, {states} states, {bad} not as they should be");
    ExitCode::from(u8::from(bad > 0))
}
