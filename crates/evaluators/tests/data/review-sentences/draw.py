"""Draws rows.tsv from the source distribution of vaderSentiment 3.3.2.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python draw.py vaderSentiment-3.3.2.tar.gz && zstd -19 --rm rows.tsv

The result depends on the archive and on SEED only.
"""

import hashlib
import io
import pathlib
import random
import sys
import tarfile

ARCHIVE_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
FILES = {
    "products": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
    "films": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
}
SEED = 20261122
ROWS_PER_HALF = 400
# Mean ratings from -4 to 4. From 0.5 up a row is positive, from -0.5 down negative.
BOUNDARY = 0.5


def label(rating):
    if rating >= BOUNDARY:
        return "positive"
    return "negative" if rating <= -BOUNDARY else "neutral"


def halves(rows):
    """Splits rows by review, so that no review is in both halves."""
    groups = sorted({row[0].split("_")[0] for row in rows}, key=int)
    random.Random(SEED).shuffle(groups)
    development = set(groups[: len(groups) // 2])
    for half in ("development", "held-out"):
        inside = [it for it in rows if (it[0].split("_")[0] in development) == (half == "development")]
        for row in sorted(random.Random(SEED).sample(inside, ROWS_PER_HALF)):
            yield half, row


def main(archive):
    data = pathlib.Path(archive).read_bytes()
    if hashlib.sha256(data).hexdigest() != ARCHIVE_SHA256:
        raise SystemExit(f"{archive} is not vaderSentiment-3.3.2.tar.gz")
    outer = tarfile.open(fileobj=io.BytesIO(data))
    inner = tarfile.open(fileobj=io.BytesIO(outer.extractfile(INNER).read()))
    lines = ["half\tset\tid\trating\tlabel\ttext"]
    for name, path in FILES.items():
        text = inner.extractfile(path).read().decode("utf-8", "replace")
        rows = [line.rstrip().split("\t", 2) for line in text.splitlines() if line.count("\t") >= 2]
        rows = [row for row in rows if row[2].strip()]
        for half, (number, rating, sentence) in halves(rows):
            sentence = " ".join(sentence.split())
            lines.append(f"{half}\t{name}\t{number}\t{float(rating):.2f}\t{label(float(rating))}\t{sentence}")
    pathlib.Path(__file__).with_name("rows.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


main(sys.argv[1])
