//! The records of Webhooks for copying and exporting.

use api::client::calls::{self, Page};

use super::state::{Webhooks, WebhooksSection};
use crate::{
    keymap::Action,
    shell::{Export, LoadedIds, ScreenRecords, Shell},
};

impl ScreenRecords for Webhooks {
    fn loaded_ids(&self, ids: &mut LoadedIds) {
        ids.records.extend(self.list.items.iter().map(|it| it.id));
        ids.records.extend(self.log.items.iter().map(|it| it.id));
    }

    fn export_name(&self) -> Option<String> {
        match self.section {
            WebhooksSection::List => (!self.list.items.is_empty()).then(|| "webhooks.ndjson".to_owned()),
            WebhooksSection::Deliveries => {
                (!self.log.items.is_empty()).then(|| "deliveries.ndjson".to_owned())
            }
        }
    }

    fn export(&self, _shell: &Shell) -> Option<Export> {
        Some(match self.section {
            WebhooksSection::List => Export::rows(&self.list.items),
            WebhooksSection::Deliveries => Export::rows(&self.log.items),
        })
    }

    fn copy(&self, shell: &Shell, action: Action) -> Option<(&'static str, String)> {
        let page = Page::default();
        match self.section {
            WebhooksSection::List => {
                if action == Action::CopyCurl {
                    return Some(("the curl command", shell.curl(&calls::webhooks(&page).target())));
                }
                // The record of a webhook holds no secret.
                let it = self.current()?;
                match action {
                    Action::CopyId => Some(("the webhook's id", it.id.to_string())),
                    Action::CopyJson => Some(("the webhook", serde_json::to_string_pretty(it).ok()?)),
                    _ => None,
                }
            }
            WebhooksSection::Deliveries => {
                let webhook = self.current()?.id;
                if action == Action::CopyCurl {
                    let target = calls::webhook_deliveries(webhook, &page).target();
                    return Some(("the curl command", shell.curl(&target)));
                }
                let it = self.delivery()?;
                match action {
                    Action::CopyId => Some(("the delivery's id", it.id.to_string())),
                    Action::CopyJson => Some(("the delivery", serde_json::to_string_pretty(it).ok()?)),
                    Action::CopyText => {
                        let body = it.attempts.last()?.response_body.clone()?;
                        Some(("the response body", body))
                    }
                    _ => None,
                }
            }
        }
    }
}
