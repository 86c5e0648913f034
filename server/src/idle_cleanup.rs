//! Frees caches of the database when the server is idle.

use std::{sync::Arc, time::Duration};

use crate::app::App;

/// Time without a request to the API after which caches are freed.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// Frees caches in idle times until the app stops.
pub fn start(app: &Arc<App>) {
    let watcher = Arc::clone(app);
    app.spawn(async move {
        // Each idle time frees the caches once: later reads by background work are small.
        let (mut last_count, mut count_when_freed) = (0, 0);
        while !watcher.pause(IDLE_TIME).await {
            let requests = watcher.telemetry.http.api_requests();
            if requests == last_count && requests != count_when_freed {
                watcher.db.free_caches().await;
                count_when_freed = requests;
            }
            last_count = requests;
        }
    });
}
