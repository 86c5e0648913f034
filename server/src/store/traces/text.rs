//! Reading the texts of traces and spans out of their bodies.

use std::collections::{HashMap, HashSet};

use entities::{body, span, trace};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, sea_query::Expr};
use uuid::Uuid;

use super::{
    super::{
        Db,
        bulk::{self, Bulk},
    },
    BLOCK,
};
use crate::ingest::text::{Entry, unpack};

/// Texts of a trace.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// What went in.
    pub input: Option<String>,
    /// What came out.
    pub output: Option<String>,
    /// JSON object.
    pub metadata: Option<String>,
}

/// Texts of a span.
pub type SpanTexts = Entry;

impl Texts {
    /// Their size together.
    pub fn bytes(&self) -> usize {
        [&self.input, &self.output, &self.metadata].into_iter().flatten().map(String::len).sum()
    }
}

/// The texts of these traces, in their order.
///
/// # Errors
/// When the database fails or a body is damaged.
pub async fn trace_texts(db: &Db, tenant: Uuid, rows: &[trace::Model]) -> Result<Vec<Texts>, DbErr> {
    let packed = PackedTexts::of(db, tenant, rows).await?;
    rows.iter().map(|it| packed.of_trace(it)).collect()
}

/// The packed texts of a block of traces. They are unpacked one by one, because a few packed
/// bytes can be many megabytes and a page may end before the block does.
pub struct PackedTexts(HashMap<Uuid, Vec<u8>>);

impl PackedTexts {
    /// Reads the bodies of these traces.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(db: &Db, tenant: Uuid, rows: &[trace::Model]) -> Result<Self, DbErr> {
        let ids = rows.iter().flat_map(|it| places(it).into_iter().filter_map(|it| it.0));
        Ok(Self(bodies(db, tenant, ids).await?))
    }

    /// The texts of one of them.
    ///
    /// # Errors
    /// When the body is damaged.
    pub fn of_trace(&self, row: &trace::Model) -> Result<Texts, DbErr> {
        let places = places(row);
        // Mostly all places are in one body: it is unpacked once, as far as the last of them.
        let mut open: HashMap<Uuid, Vec<Entry>> = HashMap::with_capacity(1);
        for id in places.iter().filter_map(|it| it.0) {
            // The body of a trace that is being removed may be gone.
            let Some(data) = self.0.get(&id).filter(|_| !open.contains_key(&id)) else { continue };
            let last = places.iter().filter(|it| it.0 == Some(id)).map(|it| it.1).max().unwrap_or(0);
            open.insert(id, unpack(data, last + 1).map_err(damaged)?);
        }
        let mut texts = Texts::default();
        let [own, input, output] = places;
        if let Some(entry) = entry_at(&mut open, own) {
            texts = Texts {
                input: entry.take_input(),
                output: entry.take_output(),
                metadata: entry.metadata.take(),
            };
        }
        if input.0.is_some() {
            texts.input = entry_at(&mut open, input).and_then(Entry::take_input);
        }
        if output.0.is_some() {
            texts.output = entry_at(&mut open, output).and_then(Entry::take_output);
        }
        Ok(texts)
    }
}

/// Where the texts of a trace are, each a body and the entry in it: its own ones, its input and its
/// output where they are not among these.
fn places(row: &trace::Model) -> [(Option<Uuid>, usize); 3] {
    let place = |id, index: Option<i32>| (id, index.and_then(|it| usize::try_from(it).ok()).unwrap_or(0));
    [
        place(row.body_id, Some(row.body_index)),
        place(row.input_body_id, row.input_body_index),
        place(row.output_body_id, row.output_body_index),
    ]
}

fn entry_at(open: &mut HashMap<Uuid, Vec<Entry>>, (id, index): (Option<Uuid>, usize)) -> Option<&mut Entry> {
    open.get_mut(&id?)?.get_mut(index)
}

/// The texts of these spans, in their order.
///
/// # Errors
/// When the database fails or a body is damaged.
pub async fn span_texts(db: &Db, tenant: Uuid, rows: &[span::Model]) -> Result<Vec<SpanTexts>, DbErr> {
    let mut packed = PackedSpans::of(db, tenant, rows).await?;
    rows.iter().map(|it| packed.take(it)).collect()
}

/// The packed texts of a block of spans. A body is unpacked when the first of its spans is asked
/// for, because a few packed bytes can be many megabytes.
pub struct PackedSpans {
    packed: HashMap<Uuid, Vec<u8>>,
    open: HashMap<Uuid, Vec<Entry>>,
}

impl PackedSpans {
    /// Reads the bodies of these spans.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn of(db: &Db, tenant: Uuid, rows: &[span::Model]) -> Result<Self, DbErr> {
        let packed = bodies(db, tenant, rows.iter().filter_map(|it| it.body_id)).await?;
        Ok(Self { packed, open: HashMap::new() })
    }

    /// Reads the bodies of these spans in their order until they are about `most` bytes together,
    /// and that of the span that is `asked` for in any case. The other spans have no texts then.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn some_of(
        db: &Db,
        tenant: Uuid,
        rows: &[span::Model],
        asked: Option<Uuid>,
        most: usize,
    ) -> Result<Self, DbErr> {
        let sizes = sizes(db, tenant, rows.iter().filter_map(|it| it.body_id)).await?;
        let (mut bytes, mut wanted) = (0, HashSet::new());
        for row in rows {
            let Some(id) = row.body_id.filter(|_| bytes < most || asked == Some(row.id)) else { continue };
            if wanted.insert(id) {
                bytes += sizes.get(&id).copied().unwrap_or_default();
            }
        }
        Ok(Self { packed: bodies(db, tenant, wanted.into_iter()).await?, open: HashMap::new() })
    }

    /// Takes the texts of one of them; of a span whose body is gone there are none.
    ///
    /// # Errors
    /// When the body is damaged.
    pub fn take(&mut self, row: &span::Model) -> Result<SpanTexts, DbErr> {
        let Some(id) = row.body_id else { return Ok(SpanTexts::default()) };
        if let Some(data) = self.packed.remove(&id) {
            self.open.insert(id, unpack(&data, usize::MAX).map_err(damaged)?);
        }
        let index = usize::try_from(row.body_index).unwrap_or(usize::MAX);
        let entry = self.open.get_mut(&id).and_then(|it| it.get_mut(index));
        Ok(entry.map(std::mem::take).unwrap_or_default())
    }
}

async fn bodies(
    db: &Db,
    tenant: Uuid,
    ids: impl Iterator<Item = Uuid>,
) -> Result<HashMap<Uuid, Vec<u8>>, DbErr> {
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::with_capacity(ids.len());
    for block in ids.chunks(BLOCK) {
        let places: Vec<String> = (2..block.len() + 2).map(|it| format!("${it}")).collect();
        let (columns, places) = (body::Model::select("b"), places.join(","));
        let sql = format!("SELECT {columns} FROM body b WHERE b.tenant_id = $1 AND b.id IN ({places})");
        let values = std::iter::once(tenant).chain(block.iter().copied()).map(Into::into).collect();
        let rows: Vec<body::Model> = bulk::fetch(&db.read, sql, values).await?;
        found.extend(rows.into_iter().map(|it| (it.id, it.data)));
    }
    Ok(found)
}

/// How many bytes these bodies have, packed.
async fn sizes(
    db: &Db,
    tenant: Uuid,
    ids: impl Iterator<Item = Uuid>,
) -> Result<HashMap<Uuid, usize>, DbErr> {
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::with_capacity(ids.len());
    for block in ids.chunks(BLOCK) {
        let query = body::Entity::find()
            .select_only()
            .column(body::Column::Id)
            .expr(Expr::cust("CAST(length(data) AS BIGINT)"))
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.is_in(block.iter().copied()));
        let rows: Vec<(Uuid, i64)> = query.into_tuple().all(&db.read).await?;
        found.extend(rows.into_iter().map(|(id, size)| (id, usize::try_from(size).unwrap_or(usize::MAX))));
    }
    Ok(found)
}

fn damaged(error: std::io::Error) -> DbErr {
    DbErr::Custom(format!("a stored body can't be read: {error}"))
}
