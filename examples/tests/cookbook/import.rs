//! A large file in chunks: each is a job, and each is written in one transaction.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::rusqlite::{Connection, TransactionBehavior};
use tenure::{Draft, Error, Failed, Filter, Job, JobId, Name, PageAsk, Run, StateName, Tenure, Worker};

use crate::{Outcome, child};

#[derive(Serialize, Deserialize)]
struct ImportFile {
    file: PathBuf,
}

impl Job for ImportFile {
    const KIND: &'static str = "import_file";
    const QUEUE: &'static str = "imports";
    type Output = JobId;
}

/// The rows between two positions in the file.
#[derive(Serialize, Deserialize)]
struct ImportRows {
    file: PathBuf,
    from: u64,
    to: u64,
}

impl Job for ImportRows {
    const KIND: &'static str = "import_rows";
    const QUEUE: &'static str = "imports";
    type Output = u64;
}

#[derive(Serialize, Deserialize)]
struct FinishImport {
    file: PathBuf,
}

impl Job for FinishImport {
    const KIND: &'static str = "finish_import";
    const QUEUE: &'static str = "imports";
    type Output = ();
}

const ROWS: u32 = 2_000;

/// Finds the chunks: the positions between which there are up to 2,000 lines.
fn chunks(file: &Path) -> io::Result<Vec<(u64, u64)>> {
    let mut reader = BufReader::new(File::open(file)?);
    let (mut chunks, mut line, mut rows) = (Vec::new(), Vec::new(), 0);
    let (mut from, mut at) = (0, 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        (at, rows) = (at + read, rows + 1);
        if at > from && (read == 0 || rows == ROWS) {
            chunks.push((from, at));
            (from, rows) = (at, 0);
        }
        if read == 0 {
            return Ok(chunks);
        }
    }
}

/// Enqueues a job for each chunk, and one that waits for all of them: all or none.
async fn import_file(run: Run<App>, job: ImportFile) -> Result<JobId, Failed> {
    let file = job.file.clone();
    let chunks = tokio::task::spawn_blocking(move || chunks(&file)).await??;
    let tag = format!("import-{}", run.id());
    let (mut batch, mut parts) = (Vec::new(), Vec::new());
    for (number, (from, to)) in (1..).zip(chunks) {
        let part = child(run.id(), number);
        let rows = ImportRows { file: job.file.clone(), from, to };
        batch.push(Draft::of(&rows).derived_id(part).tag(&tag).limited("imports", 4).priority(50));
        parts.push(part);
    }
    let last = child(run.id(), u32::MAX);
    batch.push(Draft::of(&FinishImport { file: job.file }).derived_id(last).after_jobs(parts));
    run.tenure().enqueue_all(batch).await?;
    Ok(last)
}

/// Writes a chunk in one transaction. Writing it twice changes nothing.
fn import_rows(run: Run<App>, job: ImportRows) -> Result<u64, Failed> {
    let text = read(&job)?;
    let mut conn = Connection::open(&run.app().database)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    let txn = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    run.check_in(&txn)?;
    let mut rows = 0;
    for line in text.lines() {
        let Some((id, name)) = line.split_once(',') else {
            run.log(&format!("skipped, there is no comma: {line}"));
            continue;
        };
        let upsert = "INSERT INTO customer (id, name) VALUES (?1, ?2)
            ON CONFLICT (id) DO UPDATE SET name = excluded.name";
        txn.prepare_cached(upsert)?.execute((id, name))?;
        rows += 1;
    }
    txn.commit()?;
    Ok(rows)
}

fn read(rows: &ImportRows) -> io::Result<String> {
    let mut file = File::open(&rows.file)?;
    file.seek(SeekFrom::Start(rows.from))?;
    let mut text = String::new();
    file.take(rows.to - rows.from).read_to_string(&mut text)?;
    Ok(text)
}

/// Counts the chunks of an import that are done, and all of them.
async fn progress(tenure: &Tenure, import: JobId) -> Result<(usize, usize), Error> {
    let tags = vec![Name::new("tag", &format!("import-{import}"))?];
    let filter = Filter { tags, ..Filter::default() };
    let page = tenure.jobs().page(PageAsk { filter, at_most: 1_000, ..PageAsk::default() }).await?;
    let done = page.jobs.iter().filter(|job| job.state.is_finished()).count();
    Ok((done, page.jobs.len()))
}

/// Removes the file when all rows are in the database.
async fn finish_import(_run: Run<App>, job: FinishImport) -> Result<(), Failed> {
    match std::fs::remove_file(&job.file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

struct App {
    database: PathBuf,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_imported_in_chunks() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (file, database) = (folder.path().join("customers.csv"), folder.path().join("jobs.db"));
    let mut text: String = (1..=9_000).map(|id| format!("{id},customer {id}\n")).collect();
    text += "nonsense\n9001,without a line end";
    std::fs::write(&file, text)?;
    let tenure = Tenure::open(&format!("sqlite://{}", database.display())).await?;
    let conn = Connection::open(&database)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    conn.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", ())?;

    let import = tenure.enqueue(ImportFile { file: file.clone() }).await?.id();
    let worker = Worker::new(&tenure, App { database }).queue("imports", 4);
    let worker = worker.job(import_file).blocking_job(import_rows).job(finish_import);
    let finished = async {
        match tenure.wait_for::<ImportFile>(import).await {
            Ok(last) => tenure.wait(last).await.map(|ended| ended.job.id),
            Err(error) => Err(error),
        }
    };
    let mut last = Ok(import);
    worker.run(async { last = finished.await }).await?;

    assert_eq!(tenure.jobs().get(last?).await?.state.name(tenure.now()), StateName::Succeeded);
    assert_eq!(progress(&tenure, import).await?, (5, 5));
    let rows: u32 = conn.query_row("SELECT count(*) FROM customer", (), |row| row.get(0))?;
    assert_eq!((rows, file.exists()), (9_001, false));
    let skipped = tenure.jobs().logs(child(import, 5), (0, 0), 10).await?;
    assert_eq!(skipped[0].text, "skipped, there is no comma: nonsense");
    Ok(())
}
