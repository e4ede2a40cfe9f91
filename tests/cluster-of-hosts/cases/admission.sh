# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# admission.sh - who is lost on its way in: before all are there, while files travel, many at once, two that share a cache.

head -c 40000000 /dev/urandom >book.txt # takes a while to travel
cat >model.yaml <<END
name: bytes
kind: transformer
transformer: {architecture: gpt2, hidden: 8, heads: 1, blocks: 2, sequence: 8, vocabulary: 256}
END
cp job.yaml kept.yaml
sed -i 's/^train: {/&data: {corpus: text, file: book.txt}, /; s/model: {.*/model: {file: model.yaml, stages: 2}/' job.yaml
serves admission --set train.until.steps=30
joins first a1
joins twin a1
awaits 'admission: two that share a cache' grep -q '2 of 6 are here' admission.err
kills KILL first
awaits 'admission: a place is free again' grep -q 'has left before the run began' admission.err
joins half b1
awaits 'admission: part of a file is there' sh -c "find $scratch/cache-b1/blobs -name '*.part' -size +1000k 2>/dev/null | grep -q ."
kills KILL half
kept=$(find "$scratch/cache-b1/blobs" -name '*.part' -printf %s)
check 'admission: what has come of it is kept' [ "${kept:-0}" -gt 1000000 ]
for i in 1 2 3 4 5 6 7 8 9 10; do
	joins "many-$i" "${names[i % 6]}"
done
awaits 'admission: the run begins' rounds 2
kills KILL many-1
goes_on 'admission: those that stand by take the place'
ends admission
gather
check 'admission: a kept file was gone on with' test ! -e "$scratch"/cache-b1/blobs/*.part
check 'admission: done' [ "$(sqlite admission.db 'SELECT status FROM runs')" = done ]
check 'admission: ledger kept' [ "$(sqlite admission.db "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'")" = 0 ]
mv kept.yaml job.yaml
