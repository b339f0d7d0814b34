//! Encrypts and decrypts the values of jobs: args, outputs, errors, progress messages and log lines.
//!
//! An encrypted value is JSON where JSON is expected, `{"$sealed":"…"}`, and the text `$sealed:…` elsewhere. Values that
//! were stored before encryption was on stay readable.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tenure_core::{
    Args, Attempt, Failure, Job, JobId, LogLine, NewJob, NewTimer, Output, Progress, Settlement, Timer,
    TimerJob,
};
use tenure_store::{Event, Fault, Happening, Report};

use super::envelope::{self, Field, Owner, Place, Shut};
use super::keyring::Keyring;

/// The first bytes of an encrypted value in JSON; the second part is the encoded magic number of an envelope.
const JSON_HEAD: &str = Args::ENCRYPTED;
const JSON_TAIL: &str = "\"}";
const TEXT_HEAD: &str = "$sealed:VE5SR";
/// The length of the marks in front of an encoded envelope.
const JSON_MARK: usize = "{\"$sealed\":\"".len();
const TEXT_MARK: usize = "$sealed:".len();

/// Encrypts with the current key of a keyring, and decrypts with all of them.
#[derive(Debug, Clone)]
pub(super) struct Vault {
    pub(super) keys: Keyring,
}

/// An opened job, and the reason if its args could not be decrypted.
pub(super) struct Opened {
    pub(super) job: Job,
    pub(super) shut: Option<Shut>,
}

fn place_of(id: &JobId, field: Field) -> Place<'_> {
    Place { owner: Owner::Job, of: id.as_bytes(), field }
}

/// Returns the envelope of a JSON value; `None` if it is not encrypted.
fn json_envelope(json: &[u8]) -> Option<Vec<u8>> {
    let encoded = json.starts_with(JSON_HEAD.as_bytes()).then(|| &json[JSON_MARK..])?;
    let encoded = encoded.strip_suffix(JSON_TAIL.as_bytes()).unwrap_or(encoded);
    Some(URL_SAFE_NO_PAD.decode(encoded).unwrap_or_default())
}

/// Returns the envelope in a text and the prefix before it, such as a category; `None` if there is none.
fn text_envelope(text: &str) -> Option<(&str, Vec<u8>)> {
    let (before, encoded) = text.split_at(text.find(TEXT_HEAD)?);
    Some((before, URL_SAFE_NO_PAD.decode(&encoded[TEXT_MARK..]).unwrap_or_default()))
}

/// Returns the name of the key that encrypted a JSON value or a text; `None` if it is not encrypted. The name is empty
/// if the envelope is damaged.
pub(super) fn key_of(value: &[u8]) -> Option<String> {
    let text = || Some(text_envelope(std::str::from_utf8(value).ok()?)?.1);
    let envelope = json_envelope(value).or_else(text)?;
    Some(envelope::describe(&envelope).map_or_else(String::new, |(key, _)| key.to_owned()))
}

impl Vault {
    /// Returns `true` if new values are encrypted.
    pub(super) fn seals(&self) -> bool {
        !self.keys.is_empty()
    }

    fn seal(&self, place: Place<'_>, plain: &[u8]) -> Result<Option<String>, Fault> {
        let Some(key) = self.keys.current_key() else { return Ok(None) };
        let envelope = envelope::seal(key, place, plain)
            .map_err(|_| Fault::Broken("a value is too long to encrypt".to_owned()))?;
        Ok(Some(URL_SAFE_NO_PAD.encode(envelope)))
    }

    fn seal_json(&self, place: Place<'_>, plain: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let sealed = self.seal(place, plain)?;
        Ok(sealed.map(|sealed| format!("{}{sealed}{JSON_TAIL}", &JSON_HEAD[..JSON_MARK]).into_bytes()))
    }

    fn seal_text(&self, place: Place<'_>, plain: String) -> Result<String, Fault> {
        if plain.is_empty() {
            return Ok(plain);
        }
        let sealed = self.seal(place, plain.as_bytes())?;
        Ok(sealed.map_or(plain, |sealed| format!("{}{sealed}", &TEXT_HEAD[..TEXT_MARK])))
    }

    pub(super) fn seal_args(&self, id: &JobId, args: Args) -> Result<Args, Fault> {
        let sealed = self.seal_json(place_of(id, Field::Args), args.as_bytes())?;
        Ok(sealed.map_or(args, |sealed| Args::stored(&sealed)))
    }

    /// Encrypts an output. The path of a result may be secret, too, so both go into one value.
    pub(super) fn seal_output(&self, id: &JobId, output: Output) -> Result<Output, Fault> {
        let place = output.place.as_deref().unwrap_or_default();
        let plain = [place.as_bytes(), b"\n", &output.value].concat();
        let sealed = self.seal_json(place_of(id, Field::Output), &plain)?;
        Ok(sealed.map_or(output, |value| Output { value, place: None }))
    }

    pub(super) fn seal_failure(&self, id: &JobId, failure: Failure) -> Result<Failure, Fault> {
        Ok(Failure { message: self.seal_text(place_of(id, Field::Failure), failure.message)?, ..failure })
    }

    pub(super) fn seal_progress(&self, id: &JobId, progress: Progress) -> Result<Progress, Fault> {
        Ok(Progress { message: self.seal_text(place_of(id, Field::Progress), progress.message)?, ..progress })
    }

    pub(super) fn seal_line_text(&self, id: &JobId, text: String) -> Result<String, Fault> {
        self.seal_text(place_of(id, Field::Log), text)
    }

    pub(super) fn seal_line(&self, id: &JobId, line: LogLine) -> Result<LogLine, Fault> {
        Ok(LogLine { text: self.seal_line_text(id, line.text)?, ..line })
    }

    pub(super) fn seal_jobs(&self, jobs: &[NewJob]) -> Result<Vec<NewJob>, Fault> {
        let seal =
            |job: &NewJob| Ok(NewJob { args: self.seal_args(&job.id, job.args.clone())?, ..job.clone() });
        jobs.iter().map(seal).collect()
    }

    pub(super) fn seal_settlement(&self, settlement: Settlement) -> Result<Settlement, Fault> {
        let id = settlement.id();
        settlement.in_form(|failure| self.seal_failure(&id, failure), |output| self.seal_output(&id, output))
    }

    pub(super) fn seal_report(&self, report: Report) -> Result<Report, Fault> {
        let id = report.held.id;
        let progress = report.progress.map(|progress| self.seal_progress(&id, progress)).transpose()?;
        let lines =
            report.lines.into_iter().map(|line| self.seal_line(&id, line)).collect::<Result<_, _>>()?;
        Ok(Report { progress, lines, ..report })
    }

    pub(super) fn seal_timer(&self, timer: NewTimer) -> Result<NewTimer, Fault> {
        let place = Place { owner: Owner::Timer, of: timer.name.as_str().as_bytes(), field: Field::Args };
        let Some(sealed) = self.seal_json(place, timer.job.args.as_bytes())? else { return Ok(timer) };
        Ok(NewTimer { job: TimerJob { args: Args::stored(&sealed), ..timer.job }, ..timer })
    }

    /// Decrypts a text; `None` if it is not encrypted.
    fn text(&self, place: Place<'_>, text: &str) -> Option<Result<String, Shut>> {
        let (before, envelope) = text_envelope(text)?;
        let opened = envelope::open(&self.keys, place, &envelope);
        Some(opened.map(|plain| format!("{before}{}", String::from_utf8_lossy(&plain))))
    }

    fn open_text(&self, place: Place<'_>, text: String) -> String {
        let opened = self.text(place, &text);
        opened.map_or(text, |opened| opened.unwrap_or_else(|shut| shut.to_string()))
    }

    /// Returns the JSON text that replaces a value that cannot be decrypted.
    fn shown(shut: &Shut) -> Vec<u8> {
        serde_json::Value::String(shut.to_string()).to_string().into_bytes()
    }

    /// Decrypts the args of a job; `None` if they are not encrypted.
    pub(super) fn args(&self, job: &Job) -> Option<Result<Args, Shut>> {
        let envelope = json_envelope(job.args.as_bytes())?;
        let of_timer = job.terms.slot.as_ref().map(|slot| slot.timer.as_str().as_bytes());
        let place = match (envelope::describe(&envelope), of_timer) {
            (Some((_, Owner::Timer)), Some(of)) => Place { owner: Owner::Timer, of, field: Field::Args },
            (Some((_, Owner::Timer | Owner::Job)) | None, _) => place_of(&job.id, Field::Args),
        };
        Some(envelope::open(&self.keys, place, &envelope).map(|plain| Args::stored(&plain)))
    }

    /// Decrypts an output; `None` if it is not encrypted.
    pub(super) fn output(&self, id: &JobId, output: &Output) -> Option<Result<Output, Shut>> {
        let envelope = json_envelope(&output.value)?;
        let opened = envelope::open(&self.keys, place_of(id, Field::Output), &envelope);
        Some(opened.map(|plain| {
            let end = plain.iter().position(|byte| *byte == b'\n').unwrap_or_default();
            let place = String::from_utf8_lossy(&plain[..end]).into_owned();
            let value = plain.get(end + 1..).unwrap_or_default().to_vec();
            Output { value, place: Some(place).filter(|place| !place.is_empty()) }
        }))
    }

    /// Decrypts an error; `None` if it is not encrypted.
    pub(super) fn failure(&self, id: &JobId, failure: &Failure) -> Option<Result<Failure, Shut>> {
        let opened = self.text(place_of(id, Field::Failure), &failure.message)?;
        Some(opened.map(|message| Failure { message, ..failure.clone() }))
    }

    /// Decrypts progress; `None` if it is not encrypted.
    pub(super) fn progress(&self, id: &JobId, progress: &Progress) -> Option<Result<Progress, Shut>> {
        let opened = self.text(place_of(id, Field::Progress), &progress.message)?;
        Some(opened.map(|message| Progress { message, ..progress.clone() }))
    }

    /// Decrypts the text of a log line; `None` if it is not encrypted.
    pub(super) fn line(&self, id: &JobId, text: &str) -> Option<Result<String, Shut>> {
        self.text(place_of(id, Field::Log), text)
    }

    /// Decrypts the args of a schedule; `None` if they are not encrypted.
    pub(super) fn timer(&self, timer: &Timer) -> Option<Result<Args, Shut>> {
        let agreed = &timer.agreed;
        let envelope = json_envelope(agreed.job.args.as_bytes())?;
        let place = Place { owner: Owner::Timer, of: agreed.name.as_str().as_bytes(), field: Field::Args };
        Some(envelope::open(&self.keys, place, &envelope).map(|plain| Args::stored(&plain)))
    }

    pub(super) fn open_failure(&self, id: &JobId, failure: Failure) -> Failure {
        Failure { message: self.open_text(place_of(id, Field::Failure), failure.message), ..failure }
    }

    pub(super) fn open_line(&self, id: &JobId, line: LogLine) -> LogLine {
        LogLine { text: self.open_text(place_of(id, Field::Log), line.text), ..line }
    }

    pub(super) fn open_attempt(&self, id: &JobId, attempt: Attempt) -> Attempt {
        Attempt { failure: attempt.failure.map(|failure| self.open_failure(id, failure)), ..attempt }
    }

    /// Returns `true` if a job certainly has no encrypted value: plain args, and nothing else to decrypt.
    pub(super) fn is_plain(job: &Job) -> bool {
        !job.args.as_bytes().starts_with(JSON_HEAD.as_bytes())
            && job.output.is_none()
            && job.failure.is_none()
            && job.progress.is_none()
    }

    pub(super) fn open_job(&self, mut job: Job) -> Opened {
        let id = job.id;
        let mut shut = None;
        match self.args(&job) {
            None => {}
            Some(Ok(args)) => job.args = args,
            Some(Err(why)) => {
                job.args = Args::stored(&Self::shown(&why));
                shut = Some(why);
            }
        }
        if let Some(output) = &mut job.output
            && let Some(opened) = self.output(&id, output)
        {
            *output = opened.unwrap_or_else(|shut| Output { value: Self::shown(&shut), place: None });
        }
        job.failure = job.failure.map(|failure| self.open_failure(&id, failure));
        if let Some(progress) = &mut job.progress {
            let message = std::mem::take(&mut progress.message);
            progress.message = self.open_text(place_of(&id, Field::Progress), message);
        }
        Opened { job, shut }
    }

    pub(super) fn open_timer(&self, mut timer: Timer) -> Timer {
        let Some(opened) = self.timer(&timer) else { return timer };
        let mut agreed = NewTimer::clone(&timer.agreed);
        agreed.job.args = opened.unwrap_or_else(|shut| Args::stored(&Self::shown(&shut)));
        timer.agreed = agreed.into();
        timer
    }

    pub(super) fn open_event(&self, event: &Event) -> Event {
        let open = |field, text: &String| self.open_text(place_of(&event.id, field), text.clone());
        let what = match &event.what {
            Happening::Progressed { fraction, message } => {
                Happening::Progressed { fraction: *fraction, message: open(Field::Progress, message) }
            }
            Happening::Became { state, failure } => {
                let failure = failure.as_ref().map(|failure| open(Field::Failure, failure));
                Happening::Became { state: *state, failure }
            }
            same @ (Happening::Enqueued
            | Happening::Started { .. }
            | Happening::AskedToStop
            | Happening::Deleted) => same.clone(),
        };
        Event { what, ..event.clone() }
    }
}
