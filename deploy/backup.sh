#!/bin/sh
# Write a back-up of the deployment's database to a file:  deploy/backup.sh cairn.dump
# Run it beside docker-compose.yml; the service goes on meanwhile. The file is as secret as the data. Its digest is
# written to cairn.dump.sha256: pg_restore reads a file that was cut off without complaint.
set -eu
[ $# = 1 ] || { echo "usage: $0 FILE" >&2; exit 2; }
umask 077
new=$(mktemp "$1.XXXXXX")
trap 'rm -f "$new"' EXIT
docker compose exec -T postgres pg_dump -U cairn -d cairn --format=custom > "$new"
digest=$(sha256sum < "$new")
mv "$new" "$1"
echo "$digest" > "$1.sha256"
echo "The back-up is in $1, its digest in $1.sha256."
