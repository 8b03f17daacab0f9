#!/bin/sh
# Back up the deployment:  deploy/backup.sh cairn.dump [cairn.dump.keys]
# Run it in the folder of docker-compose.yml while the service runs. The first file is the database and as secret as the
# data. Its digest is written to cairn.dump.sha256: pg_restore reads a file that was cut off without complaint. The second
# holds the signing key and the scrape token: keep it apart from the first, since whoever has both can forge receipts.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: $0 FILE [KEYS]" >&2; exit 2; }
keys=${2:-$1.keys}
umask 077
new=$(mktemp "$1.XXXXXX")
new_keys=$(mktemp "$keys.XXXXXX")
trap 'rm -f "$new" "$new_keys"' EXIT
docker compose run --rm -T --no-deps secrets '
import json, pathlib
names = ("signing-key.pem", "metrics-token")
print(json.dumps({name: pathlib.Path("/run/cairn", name).read_text() for name in names}))' > "$new_keys"
[ -s "$new_keys" ] || { echo "the keys could not be read; nothing was written" >&2; exit 1; }
docker compose exec -T postgres pg_dump -U cairn -d cairn --format=custom > "$new"
digest=$(sha256sum < "$new")
mv "$new" "$1"
mv "$new_keys" "$keys"
echo "$digest" > "$1.sha256"
echo "The database is in $1, its digest in $1.sha256, and the keys are in $keys: keep them apart from the database."
