//! Every shell block of the book runs: each page in a folder of its own, beside a server.
//!
//! A block marked `sh,ignore` needs another host, a package manager or an endless command. Its `tenure` commands are parsed.

#![expect(clippy::disallowed_methods, reason = "a real shell runs in real time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::program::{Program, command};

const SOON: Duration = Duration::from_secs(60);
const BLOCK: Duration = Duration::from_secs(120);

struct Block {
    line: usize,
    script: String,
}

fn pages() -> Vec<PathBuf> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut pages: Vec<_> = fs::read_dir(book).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

#[test]
fn every_shell_block_of_the_book_runs() {
    let mut ran = 0;
    let mut failures = Vec::new();
    for page in pages() {
        let blocks = blocks(&fs::read_to_string(&page).unwrap(), "```sh");
        ran += blocks.len();
        if let Err(failure) = run_page(&blocks) {
            failures.push(format!("{}:{failure}", page.file_name().unwrap().display()));
        }
    }
    assert!(ran > 10, "the book shows commands");
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

/// An unknown command, option or value is refused before `--help` is reached.
#[test]
fn commands_of_blocks_that_do_not_run_exist() {
    let folder = tempdir().unwrap();
    let mut parsed = 0;
    for page in pages() {
        for block in blocks(&fs::read_to_string(&page).unwrap(), "```sh,ignore") {
            for line in block.script.replace("\\\n", " ").lines().filter(|line| line.starts_with("tenure ")) {
                // A shell splits the words: some are quoted, or variables.
                let split = format!("printf '%s\\n' {}", line.split(" #").next().unwrap());
                let words = Command::new("sh")
                    .args(["-c", &split])
                    .env("DATABASE_URL", "jobs.db")
                    .output()
                    .unwrap()
                    .stdout;
                let words = String::from_utf8(words).unwrap();
                let words: Vec<&str> = words.lines().filter(|word| !word.is_empty()).collect();
                // Words behind these belong to another program.
                let own = words.iter().position(|word| ["--", "--exec"].contains(word));
                let own = match words.starts_with(&["tenure", "app", "run"]) {
                    true => 3,
                    false => own.unwrap_or(words.len()),
                };
                let told = command(&words[1..own], folder.path()).arg("--help").output().unwrap();
                let why = String::from_utf8_lossy(&told.stderr);
                assert!(told.status.success(), "{}:{}: {line}\n{why}", page.display(), block.line);
                parsed += 1;
            }
        }
    }
    assert!(parsed > 30, "{parsed}");
}

/// Returns the blocks that begin with this fence.
fn blocks(page: &str, fence: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (index, line) in page.lines().enumerate() {
        match (is_open, line.trim()) {
            (false, line) if line == fence => blocks.push(Block { line: index + 1, script: String::new() }),
            (true, "```") => {}
            (true, _) => {
                let block = blocks.last_mut().unwrap();
                block.script = format!("{}{line}\n", block.script);
                continue;
            }
            (false, _) => continue,
        }
        is_open = !is_open;
    }
    blocks
}

/// Runs the blocks of a page in order, in one folder.
fn run_page(blocks: &[Block]) -> Result<(), String> {
    if blocks.is_empty() {
        return Ok(());
    }
    let (server, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let args = ["dev", "--port", "0", "--jobs-per-second", "0"];
    let mut program = Program::start(&args, server.path());
    let line = program.line_with("http://127.0.0.1:", SOON);
    let port: String = line
        .split_once("http://127.0.0.1:")
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
        .unwrap();
    blocks.iter().try_for_each(|block| run_block(block, &port, folder.path()))
}

fn run_block(block: &Block, port: &str, folder: &Path) -> Result<(), String> {
    let script = block.script.replace("localhost:8368", &format!("127.0.0.1:{port}"));
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output = folder.join(".output");
    let file = fs::File::create(&output).unwrap();
    // The environment of the program's own tests, for the shell.
    let mut shell = command(&[], folder);
    let mut shell = {
        let mut bash = std::process::Command::new("bash");
        for (name, value) in shell.env("PATH", path).get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        bash
    };
    let mut running = shell
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder)
        .env("TENURE_URL", format!("http://127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let until = Instant::now() + BLOCK;
    loop {
        match running.try_wait().unwrap() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let said = fs::read_to_string(&output).unwrap_or_default();
                return Err(format!("{}: {status}\n{script}{said}", block.line));
            }
            None if Instant::now() > until => {
                running.kill().unwrap();
                running.wait().unwrap();
                return Err(format!("{}: it did not end in {} s\n{script}", block.line, BLOCK.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
