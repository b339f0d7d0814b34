//! What a program leaves as its result, made into what is kept of it.

use serde_json::{Value, json};
use tenure::Output;

/// JSON as it is, else a text, put into what is kept. It is that which has to fit, not the file: signs that JSON writes in more
/// than one make a text longer.
///
/// # Errors
/// In words, what no store would keep.
pub(crate) fn kept(bytes: &[u8], put_into: impl FnOnce(Value) -> Value) -> Result<Value, String> {
    let kept = put_into(result(bytes));
    let text = serde_json::to_vec(&kept).map_err(|error| error.to_string())?;
    match Output::new(text, None) {
        Ok(_) => Ok(kept),
        Err(wrong) => Err(format!("its result cannot be stored: {wrong}")),
    }
}

/// What is no JSON is a text, and so is what nests deeper or has larger numbers than anybody could read again.
fn result(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&text).unwrap_or_else(|_| json!(text.replace('\0', "\u{fffd}")))
}

#[cfg(test)]
mod tests {
    use tenure::limits;

    use super::*;

    fn kept_of(bytes: &[u8]) -> Result<Value, String> {
        kept(bytes, |result| json!({ "exit": 0, "result": result }))
    }

    #[test]
    fn what_is_kept_is_what_has_to_fit() {
        let room = limits::OUTPUT_BYTES - r#"{"exit":0,"result":""}"#.len();
        assert!(kept_of(&vec![b'x'; room]).is_ok());
        let told = kept_of(&vec![b'x'; room + 1]).unwrap_err();
        assert!(told.contains("its result") && told.contains("262144"), "{told}");
        // Six bytes each once they stand in JSON, and three for each byte that is no UTF-8.
        assert!(kept_of(&vec![1; room / 2]).is_err() && kept_of(&vec![0xff; room / 2]).is_err());
        assert!(kept_of(&vec![1; room / 7]).is_ok());
    }

    #[test]
    fn json_is_kept_as_it_is_and_all_else_as_a_text() {
        let result = |text: &str| kept_of(text.as_bytes()).map(|kept| kept["result"].clone());
        assert_eq!(result(r#"{"rows":7}"#), Ok(json!({ "rows": 7 })));
        assert_eq!(result("rows: 7\0"), Ok(json!("rows: 7\u{fffd}")));
        assert_eq!(result("1e999"), Ok(json!("1e999")), "nobody has such a number, and nothing is lost");
        let nested = |deep: usize| format!("{}{}", "[".repeat(deep), "]".repeat(deep));
        assert!(result(&nested(limits::JSON_DEPTH - 1)).is_ok());
        assert!(result(&nested(limits::JSON_DEPTH)).unwrap_err().contains("deep"));
        assert_eq!(result(&nested(5_000)), Ok(json!(nested(5_000))));
    }
}
