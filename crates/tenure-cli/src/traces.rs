//! Where it is told what jobs go through: by a flag, or by the variables that programs with OpenTelemetry have in common.

use tenure_http::Traces;

use crate::exit::Failure;

/// What the environment says, by the name of a variable.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// To which collector, and what; `None` if to none.
pub(crate) fn wanted(flag: Option<&str>) -> Result<Option<Traces>, Failure> {
    read(flag, &|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}

fn read(flag: Option<&str>, said: Environment<'_>) -> Result<Option<Traces>, Failure> {
    let is_off = said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || said("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let Some(endpoint) = endpoint(flag, said).filter(|_| flag.is_some() || !is_off) else { return Ok(None) };
    if let Some(protocol) = of_traces("PROTOCOL", said)
        && !protocol.starts_with("http/")
    {
        return Err(wrong(
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            &protocol,
            "http/json, or http/protobuf at the same address",
        ));
    }
    let mut traces = Traces::to(&endpoint).map_err(|wrong| Failure::Library(wrong.into()))?;
    traces.headers = of_traces("HEADERS", said).map(|text| pairs(&text)).unwrap_or_default();
    traces.attributes = said("OTEL_RESOURCE_ATTRIBUTES").map(|text| pairs(&text)).unwrap_or_default();
    let named = traces.attributes.iter().position(|(name, _)| name == "service.name");
    let named = named.map(|at| traces.attributes.remove(at).1);
    traces.service = said("OTEL_SERVICE_NAME").or(named).unwrap_or(traces.service);
    sampled(&mut traces, said)?;
    Ok(Some(traces))
}

/// A flag or a variable of traces says all of it, that of all signals where the collector is.
fn endpoint(flag: Option<&str>, said: Environment<'_>) -> Option<String> {
    let base = |base: &str| format!("{}/v1/traces", base.trim_end_matches('/'));
    if let Some(flag) = flag {
        return Some(if flag.ends_with("/v1/traces") { flag.to_owned() } else { base(flag) });
    }
    let all = || said("OTEL_EXPORTER_OTLP_ENDPOINT").map(|all| base(&all));
    said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(all)
}

fn of_traces(what: &str, said: Environment<'_>) -> Option<String> {
    said(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}")).or_else(|| said(&format!("OTEL_EXPORTER_OTLP_{what}")))
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
            (traces.endpoint.as_str(), traces.service.as_str()),
            ("http://127.0.0.1:4318/v1/traces", "tenure")
        );
        for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert!(of(None, &[here, off]).unwrap().is_none());
        }
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example.com/here");
        assert_eq!(of(None, &[here, whole]).unwrap().unwrap().endpoint, "https://c.example.com/here");
        assert_eq!(
            of(Some("http://other:1"), &[here]).unwrap().unwrap().endpoint,
            "http://other:1/v1/traces"
        );
        assert_eq!(
            of(Some("http://other:1/v1/traces"), &[]).unwrap().unwrap().endpoint,
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
        assert_eq!(traces.headers[0], ("api-key".to_owned(), "a b,c".to_owned()));
        assert_eq!(traces.service, "old");
        assert_eq!(traces.attributes, [("deployment.environment".to_owned(), "test".to_owned())]);
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
}
