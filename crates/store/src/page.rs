//! Pages of lists that are ordered by (time, id), newest first.

use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

/// Returns at most `limit` rows after the (time, id) of `after`.
pub(super) fn newest_first<E: EntityTrait>(
    query: Select<E>,
    (time, id): (E::Column, E::Column),
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Select<E> {
    let older = after.map(|(at, last)| {
        // The second condition implies the first, which gives the range of the index.
        let first = Condition::any().add(time.lt(at)).add(id.lt(last));
        Condition::all().add(time.lte(at)).add(first)
    });
    let query = match older {
        Some(older) => query.filter(older),
        None => query,
    };
    query.order_by_desc(time).order_by_desc(id).limit(limit)
}
