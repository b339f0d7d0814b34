//! Collectors of OpenTelemetry: named by a setting, or by the variables that programs with OpenTelemetry have in common.

use tenure_http::{Collector, Traces};

use crate::exit::Failure;

/// Values of the environment, by the name of a variable.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A kind of telemetry, and how its variables and its path are called.
#[derive(Clone, Copy)]
struct Signal {
    variables: &'static str,
    path: &'static str,
}

const TRACES: Signal = Signal { variables: "TRACES", path: "/v1/traces" };
const LOGS: Signal = Signal { variables: "LOGS", path: "/v1/logs" };

/// Returns the settings of trace export; `None` if neither a setting nor a variable names a collector.
pub(crate) fn wanted(flag: Option<&str>) -> Result<Option<Traces>, Failure> {
    read(flag, &variable)
}

/// Returns the collector of the audit log. Only the setting turns it on: a variable for the telemetry of all programs must
/// not send the audit log anywhere.
pub(crate) fn audit_collector(setting: &str) -> Result<Collector, Failure> {
    collector(LOGS, &LOGS.url(setting), &variable)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn read(flag: Option<&str>, said: Environment<'_>) -> Result<Option<Traces>, Failure> {
    let is_off = said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || said("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let Some(endpoint) = endpoint(flag, said).filter(|_| flag.is_some() || !is_off) else { return Ok(None) };
    let mut traces = Traces::to(&endpoint).map_err(|wrong| Failure::Library(wrong.into()))?;
    traces.collector = collector(TRACES, &endpoint, said)?;
    sampled(&mut traces, said)?;
    Ok(Some(traces))
}

/// Returns the collector at a URL, with the headers and the resource that variables name.
fn collector(signal: Signal, endpoint: &str, said: Environment<'_>) -> Result<Collector, Failure> {
    if let Some(protocol) = signal.variable("PROTOCOL", said)
        && !protocol.starts_with("http/")
    {
        return Err(wrong(
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            &protocol,
            "http/json, or http/protobuf at the same address",
        ));
    }
    let mut collector = Collector::at(endpoint).map_err(|wrong| Failure::Library(wrong.into()))?;
    collector.headers = signal.variable("HEADERS", said).map(|text| pairs(&text)).unwrap_or_default();
    collector.attributes = said("OTEL_RESOURCE_ATTRIBUTES").map(|text| pairs(&text)).unwrap_or_default();
    let named = collector.attributes.iter().position(|(name, _)| name == "service.name");
    let named = named.map(|at| collector.attributes.remove(at).1);
    collector.service = said("OTEL_SERVICE_NAME").or(named).unwrap_or(collector.service);
    Ok(collector)
}

/// A flag or a variable of traces is the whole URL; the variable of all signals is the collector's.
fn endpoint(flag: Option<&str>, said: Environment<'_>) -> Option<String> {
    if let Some(flag) = flag {
        return Some(TRACES.url(flag));
    }
    let all = || said("OTEL_EXPORTER_OTLP_ENDPOINT").map(|all| TRACES.below(&all));
    said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(all)
}

impl Signal {
    /// Returns the URL of this signal at a collector, which may be that URL already.
    fn url(self, url: &str) -> String {
        if url.ends_with(self.path) { url.to_owned() } else { self.below(url) }
    }

    fn below(self, base: &str) -> String {
        format!("{}{}", base.trim_end_matches('/'), self.path)
    }

    /// Returns the variable of this signal, or that of all.
    fn variable(self, name: &str, said: Environment<'_>) -> Option<String> {
        let own = said(&format!("OTEL_EXPORTER_OTLP_{}_{name}", self.variables));
        own.or_else(|| said(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }
}

fn sampled(traces: &mut Traces, said: Environment<'_>) -> Result<(), Failure> {
    let Some(sampler) = said("OTEL_TRACES_SAMPLER") else { return Ok(()) };
    let (as_parent, rest) = match sampler.strip_prefix("parentbased_") {
        Some(rest) => (true, rest),
        None => (false, sampler.as_str()),
    };
    let share = match rest {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let text = said("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|| "1".to_owned());
            let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| wrong("OTEL_TRACES_SAMPLER_ARG", &text, "a number from 0 to 1"))?
        }
        _ => {
            let allowed = "always_on, always_off or traceidratio, also with the prefix parentbased_";
            return Err(wrong("OTEL_TRACES_SAMPLER", &sampler, allowed));
        }
    };
    (traces.share, traces.as_parent) = (share, as_parent);
    Ok(())
}

fn wrong(name: &str, found: &str, allowed: &str) -> Failure {
    Failure::Usage(format!("invalid {name} {found:?}; expected {allowed}"))
}

/// `name=value` by commas, each with its signs written as in a URL.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (plain(name.trim()), plain(value.trim()))).collect()
}

fn plain(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        let byte = (*first == b'%')
            .then(|| more.get(..2))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()));
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Traces>, Failure> {
        let found = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        read(flag, &found)
    }

    #[test]
    fn nothing_is_told_unless_somebody_says_where() {
        assert!(of(None, &[]).unwrap().is_none());
        let here = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        let traces = of(None, &[here]).unwrap().unwrap();
        assert_eq!(
            (traces.collector.endpoint.as_str(), traces.collector.service.as_str()),
            ("http://127.0.0.1:4318/v1/traces", "tenure")
        );
        for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert!(of(None, &[here, off]).unwrap().is_none());
        }
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example.com/here");
        assert_eq!(
            of(None, &[here, whole]).unwrap().unwrap().collector.endpoint,
            "https://c.example.com/here"
        );
        assert_eq!(
            of(Some("http://other:1"), &[here]).unwrap().unwrap().collector.endpoint,
            "http://other:1/v1/traces"
        );
        assert_eq!(
            of(Some("http://other:1/v1/traces"), &[]).unwrap().unwrap().collector.endpoint,
            "http://other:1/v1/traces"
        );
    }

    #[test]
    fn the_environment_says_who_tells_what_and_with_which_key() {
        let traces = of(
            Some("http://c:4318"),
            &[
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%2Cc, x=y"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=old,deployment.environment=test"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ],
        );
        let traces = traces.unwrap().unwrap();
        assert_eq!(traces.collector.headers[0], ("api-key".to_owned(), "a b,c".to_owned()));
        assert_eq!(traces.collector.service, "old");
        assert_eq!(traces.collector.attributes, [("deployment.environment".to_owned(), "test".to_owned())]);
        assert_eq!((traces.share, traces.as_parent), (0.25, true));
    }

    #[test]
    fn what_makes_no_sense_is_told_by_its_name() {
        for (variable, value) in
            [("OTEL_TRACES_SAMPLER", "sometimes"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]
        {
            let told = of(Some("http://c:4318"), &[(variable, value)]).unwrap_err().to_string();
            assert!(told.contains(variable) && told.contains(value), "{told}");
        }
        let ratio = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")];
        assert!(of(Some("http://c:4318"), &ratio).is_err());
        assert!(of(Some("c:4318"), &[]).is_err());
    }

    #[test]
    fn the_collector_of_the_audit_log_has_the_headers_of_logs() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=all"),
            ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "api-key=logs"),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://elsewhere.example.com/v1/logs"),
            ("OTEL_SERVICE_NAME", "jobs"),
        ];
        let said = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        for url in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/logs"] {
            let found = collector(LOGS, &LOGS.url(url), &said).unwrap();
            assert_eq!((found.endpoint.as_str(), found.service.as_str()), ("http://c:4318/v1/logs", "jobs"));
            assert_eq!(found.headers, [("api-key".to_owned(), "logs".to_owned())]);
        }
    }
}
