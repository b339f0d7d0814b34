//! Metrics as Prometheus reads them: its own text, or that of OpenMetrics.

use std::fmt::Write;

use axum::http::HeaderMap;
use tenure::Histogram;

use super::table::{Metric, Type};
use crate::accept;

/// In whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Prometheus,
    OpenMetrics,
}

/// A page of metrics that is being written.
pub(super) struct Text {
    format: Format,
    page: String,
    metric: Option<&'static Metric>,
}

impl Format {
    /// The one that a client accepts.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let offers = [("text/plain", Self::Prometheus), ("application/openmetrics-text", Self::OpenMetrics)];
        accept::best(headers, &offers, Self::Prometheus)
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Text {
    pub(super) fn new(format: Format) -> Self {
        Self { format, page: String::new(), metric: None }
    }

    /// Begins a metric. What is written from here on is of it.
    pub(super) fn begin(&mut self, metric: &'static Metric) {
        let word = match metric.kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        let family = match self.format {
            Format::Prometheus => metric.name,
            Format::OpenMetrics => metric.name.strip_suffix("_total").unwrap_or(metric.name),
        };
        self.metric = Some(metric);
        // Text grows without failing.
        let _ = writeln!(self.page, "# HELP {family} {}\n# TYPE {family} {word}", metric.help);
    }

    /// One value of it, by what its labels say.
    pub(super) fn value(&mut self, said: &[&str], value: f64) {
        self.line("", said, None, value);
    }

    /// One histogram of it: how many were in each bucket, and the sum of all.
    pub(super) fn histogram(&mut self, said: &[&str], histogram: &Histogram) {
        let mut below = 0_u64;
        for (index, count) in histogram.counts().iter().enumerate() {
            below += count;
            let bound = histogram.bounds().get(index);
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| format!("{bound:?}"));
            self.line("_bucket", said, Some(&bound), below as f64);
        }
        self.line("_sum", said, None, histogram.sum());
        self.line("_count", said, None, below as f64);
    }

    /// The page.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.page.push_str("# EOF\n");
        }
        self.page
    }

    fn line(&mut self, suffix: &str, said: &[&str], bound: Option<&str>, value: f64) {
        let Some(metric) = self.metric else { return };
        debug_assert_eq!(metric.labels.len(), said.len(), "{}", metric.name);
        self.page.push_str(metric.name);
        self.page.push_str(suffix);
        let labels = metric.labels.iter().copied().zip(said.iter().copied());
        let mut before = '{';
        for (label, said) in labels.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.page, "{before}{label}=\"{}\"", escaped(said));
            before = ',';
        }
        let _ = writeln!(self.page, "{} {value}", if before == '{' { "" } else { "}" });
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_the_words_that_its_reader_knows() {
        const JOBS: Metric =
            Metric { name: "jobs_total", kind: Type::Counter, labels: &["queue"], help: "Jobs" };
        const SPAN: Metric =
            Metric { name: "span_seconds", kind: Type::Histogram, labels: &[], help: "Spans" };
        let page = |format| {
            let mut text = Text::new(format);
            text.begin(&JOBS);
            text.value(&["a\"b\n"], 3.0);
            text.begin(&SPAN);
            let mut spans = Histogram::default();
            [0.5, 2.0, 2.5].into_iter().for_each(|span| spans.add(span));
            text.histogram(&[], &spans);
            text.end()
        };
        let told = page(Format::Prometheus);
        let expected = "# HELP jobs_total Jobs\n# TYPE jobs_total counter\njobs_total{queue=\"a\\\"b\\n\"} 3\n\
                        # HELP span_seconds Spans\n# TYPE span_seconds histogram\nspan_seconds_bucket{le=\"0.001\"} 0\n";
        assert!(told.starts_with(expected), "{told}");
        let end = "span_seconds_bucket{le=\"+Inf\"} 3\nspan_seconds_sum 5\nspan_seconds_count 3\n";
        assert!(told.ends_with(end) && told.contains("{le=\"1.0\"} 1\n"), "{told}");
        let open = page(Format::OpenMetrics);
        assert!(open.starts_with("# HELP jobs Jobs\n# TYPE jobs counter\njobs_total{"), "{open}");
        assert!(open.ends_with("# EOF\n"));
    }
}
