#!/bin/sh
# Put a back-up in place of the deployment's database:  deploy/restore.sh cairn.dump
# Run it beside docker-compose.yml. The database that was there is kept under another name: it knows what was
# spent after the back-up was made. API and workers are stopped meanwhile, and stay stopped if anything fails.
set -eu
[ $# = 1 ] || { echo "usage: $0 FILE" >&2; exit 2; }
sha256sum --check --status "$1.sha256" < "$1" || { echo "$1 is not what $1.sha256 says; nothing was changed" >&2; exit 1; }
old=cairn_until_$(date -u +%Y%m%d_%H%M%S)
postgres() { docker compose exec -T postgres "$@"; }

docker compose --profile cluster stop api worker cluster-worker
postgres dropdb -U cairn --if-exists cairn_restored
postgres createdb -U cairn --template=template0 cairn_restored
postgres pg_restore -U cairn -d cairn_restored --exit-on-error --no-owner < "$1"
# Only now, when all of it is there, does it take the place of the other.
postgres psql -X -q -v ON_ERROR_STOP=1 -U cairn -d postgres <<SQL
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cairn' \g /dev/null
BEGIN;
ALTER DATABASE cairn RENAME TO $old;
ALTER DATABASE cairn_restored RENAME TO cairn;
COMMIT;
SQL
echo "Restored. The database that was there is now called $old; drop it when you have compared the ledgers."
echo "Read 'Back-up and restore' in docs/operations.md before analysts come back; then: docker compose up -d"
