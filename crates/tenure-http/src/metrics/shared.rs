//! A look at the store that simultaneous requests for metrics share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure::Tenure;
use tokio::sync::Mutex;

use super::standing::Standing;

/// The last look at the store. A request uses it if it began after the request, so metrics are never older than their
/// request, and a thousand requests at once cost the store no more than two.
#[derive(Debug, Default)]
pub(super) struct SharedStanding {
    begun: AtomicU64,
    last: Mutex<Option<(u64, Looked)>>,
}

/// The state of the store, or the reason why it is unknown.
type Looked = Result<Arc<Standing>, String>;

impl SharedStanding {
    pub(super) async fn ask(&self, tenure: &Tenure) -> Looked {
        let begun_before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((number, looked)) = &*last
            && *number > begun_before
        {
            return looked.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let looked = Standing::ask(tenure).await.map(Arc::new).map_err(|error| error.to_string());
        *last = Some((number, looked.clone()));
        looked
    }
}
