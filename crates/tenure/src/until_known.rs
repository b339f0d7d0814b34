//! Repeats of calls whose outcome is unknown.

use std::future::Future;

use tenure_store::Fault;

/// Repeats after the first try.
pub(crate) const REPEATS: u32 = 3;

/// Repeats a call while its outcome is unknown; the caller makes sure that a repeat is harmless.
///
/// A repeat that fails says nothing about the tries before it: their outcome stays unknown.
///
/// # Errors
/// [`Fault::Unknown`] if a try may have been carried out; otherwise the fault of the only try.
pub(crate) async fn until_known<T, F>(mut call: impl FnMut() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut unknown = None;
    for _ in 0..=REPEATS {
        match (call().await, unknown) {
            (Ok(done), _) => return Ok(done),
            (Err(Fault::Unknown(why)), _) => unknown = Some(why),
            (Err(fault), None) => return Err(fault),
            (Err(fault), Some(why)) => return Err(still_unknown(&why, &fault)),
        }
    }
    Err(Fault::Unknown(unknown.unwrap_or_default()))
}

/// Returns the fault of a call whose repeat failed after a try with an unknown outcome.
pub(crate) fn still_unknown(why: &str, repeat: &Fault) -> Fault {
    Fault::Unknown(format!("{why}; the repeat failed: {repeat}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ends(answers: impl IntoIterator<Item = Result<u8, Fault>>) -> Result<u8, Fault> {
        let mut answers = answers.into_iter();
        until_known(|| std::future::ready(answers.next().expect("one more call"))).await
    }

    fn lost() -> Result<u8, Fault> {
        Err(Fault::Unknown("the reply was lost".into()))
    }

    fn down() -> Result<u8, Fault> {
        Err(Fault::Unavailable("no connection".into()))
    }

    #[tokio::test]
    async fn an_outcome_that_was_unknown_stays_unknown_until_a_repeat_is_answered() {
        assert_eq!(ends([Ok(1)]).await, Ok(1));
        assert_eq!(ends([lost(), Ok(1)]).await, Ok(1));
        assert_eq!(ends([down()]).await, down());
        for rest in [down(), Err(Fault::Broken("no table".into())), Err(Fault::Closed)] {
            assert!(matches!(ends([lost(), rest]).await, Err(Fault::Unknown(_))));
        }
        assert_eq!(ends([lost(), lost(), lost(), lost()]).await, lost());
    }
}
