//! Metrics as Prometheus reads them: its own text, or that of OpenMetrics.

use std::fmt::Write;

/// In whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Prometheus,
    OpenMetrics,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// It only grows; its name ends in `_total`.
    Counter,
    /// It is what it is now.
    Gauge,
    /// How often a value was at most so great.
    Histogram,
}

/// A page of metrics that is being written.
pub(super) struct Text {
    format: Format,
    page: String,
    name: &'static str,
}

impl Format {
    /// The one that a client accepts.
    pub(super) fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
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
        Self { format, page: String::new(), name: "" }
    }

    /// Begins a metric. What is written from here on is of it.
    pub(super) fn metric(&mut self, name: &'static str, kind: Type, help: &str) {
        let word = match kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        let family = match self.format {
            Format::Prometheus => name,
            Format::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        self.name = name;
        // Text grows without failing.
        let _ = writeln!(self.page, "# HELP {family} {help}\n# TYPE {family} {word}");
    }

    /// One value of it.
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    /// One histogram of it: how many were in each bucket, and the sum of all.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], bounds: &[f64], counts: &[u64], sum: f64) {
        let mut below = 0_u64;
        for (index, count) in counts.iter().enumerate() {
            below += count;
            let bound = bounds.get(index).map_or_else(|| "+Inf".to_owned(), |bound| format!("{bound:?}"));
            let with_bound: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.line("_bucket", &with_bound, below as f64);
        }
        self.line("_sum", labels, sum);
        self.line("_count", labels, below as f64);
    }

    /// The page.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.page.push_str("# EOF\n");
        }
        self.page
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.page.push_str(self.name);
        self.page.push_str(suffix);
        for (index, (label, said)) in labels.iter().enumerate() {
            let _ = write!(self.page, "{}{label}=\"{}\"", if index == 0 { '{' } else { ',' }, escaped(said));
        }
        let _ = writeln!(self.page, "{} {value}", if labels.is_empty() { "" } else { "}" });
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
        let page = |format| {
            let mut text = Text::new(format);
            text.metric("jobs_total", Type::Counter, "Jobs");
            text.value(&[("queue", "a\"b\n")], 3.0);
            text.metric("span_seconds", Type::Histogram, "Spans");
            text.histogram(&[], &[0.1, 1.0], &[1, 0, 2], 4.5);
            text.end()
        };
        let expected = "# HELP jobs_total Jobs\n# TYPE jobs_total counter\njobs_total{queue=\"a\\\"b\\n\"} 3\n\
                        # HELP span_seconds Spans\n# TYPE span_seconds histogram\nspan_seconds_bucket{le=\"0.1\"} 1\n\
                        span_seconds_bucket{le=\"1.0\"} 1\nspan_seconds_bucket{le=\"+Inf\"} 3\nspan_seconds_sum 4.5\n\
                        span_seconds_count 3\n";
        assert_eq!(page(Format::Prometheus), expected);
        let open = page(Format::OpenMetrics);
        assert!(open.starts_with("# HELP jobs Jobs\n# TYPE jobs counter\njobs_total{"), "{open}");
        assert!(open.ends_with("# EOF\n"));
    }
}
