//! Time, CPU and bytes that a piece of work took.

use std::ops::Add;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::exit::Failure;

/// A stopwatch for the whole process.
#[derive(Debug)]
pub(crate) struct Meter {
    at: Instant,
    cpu: Duration,
    written: Option<u64>,
}

/// What was spent since a meter started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spent {
    pub(crate) seconds: f64,
    /// Of all threads, in user and kernel mode.
    pub(crate) cpu_us: f64,
    /// Bytes sent towards the disk; unknown where the system does not tell.
    pub(crate) written: Option<f64>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { at: now(), cpu: cpu(), written: written() }
    }

    pub(crate) fn spent(&self) -> Spent {
        let cpu_us = cpu().saturating_sub(self.cpu).as_secs_f64() * 1e6;
        let written = written().zip(self.written).map(|(now, then)| now.saturating_sub(then) as f64);
        Spent { seconds: now().duration_since(self.at).as_secs_f64(), cpu_us, written }
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            cpu_us: self.cpu_us + other.cpu_us,
            written: self.written.zip(other.written).map(|(a, b)| a + b),
        }
    }
}

/// The real time, for measuring.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits for real.
#[expect(clippy::disallowed_methods, reason = "a benchmark runs in real time")]
pub(crate) async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}

/// A figure that does not come to its end in ten minutes is a defect, not a figure.
#[expect(clippy::disallowed_methods, reason = "a benchmark runs in real time")]
pub(crate) async fn bounded<T>(
    figure: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    const LIMIT: Duration = Duration::from_secs(600);
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| {
        Err(Failure::Measurement { figure, why: "it took longer than ten minutes".to_owned() })
    })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine")]
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(spent.tv_nsec).unwrap_or(0))
}

/// Bytes of pages that this process has made the system write: the log, the file, everything.
fn written() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time_and_cpu() {
        let meter = Meter::start();
        let sum = (0..3_000_000_u64).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n.rotate_left(7)));
        let spent = meter.spent();
        assert!(spent.cpu_us > 0.0 && spent.seconds > 0.0, "{spent:?} {sum}");
        let twice = spent + spent;
        assert!((twice.cpu_us - 2.0 * spent.cpu_us).abs() < 1e-6);
    }
}
