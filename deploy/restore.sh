#!/bin/sh
# Put a back-up in place of the deployment's database and keys:  deploy/restore.sh cairn.dump [cairn.dump.keys]
# Run it in the folder of docker-compose.yml, after `docker compose up -d` on a new machine. The database that was there and
# the signed heads of its chains are kept under other names: they know what was spent after the back-up was made. API and
# workers are stopped meanwhile, and stay stopped if anything fails.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: $0 FILE [KEYS]" >&2; exit 2; }
keys=${2:-$1.keys}
[ -r "$keys" ] || {
    echo "$keys is missing; nothing was changed. It holds the signing key, without which no ledger and no receipt of the" >&2
    echo "back-up verifies. backup.sh wrote it next to the dump, or where its second argument said." >&2
    exit 1
}
sha256sum --check --status "$1.sha256" < "$1" || { echo "$1 is not what $1.sha256 says; nothing was changed" >&2; exit 1; }
now=$(date -u +%Y%m%d_%H%M%S)
old=cairn_until_$now
heads=/var/lib/cairn/ledgers/heads
old_heads=${heads}_until_$now.jsonl
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
# The public key that the deployment has now is kept: what it signed so far still verifies.
docker compose run --rm -T --no-deps secrets '
import json, os, pathlib, sys
from service.operations import signing
kept = json.load(sys.stdin)
if signing.restore(pathlib.Path("/run/cairn/signing-key.pem"), kept["signing-key.pem"].encode()):
    new = pathlib.Path("/run/cairn/new-token")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o440), "w") as file:
        os.fchmod(file.fileno(), 0o440)
        file.write(kept["metrics-token"])
    new.replace("/run/cairn/metrics-token")' < "$keys"
# The chains of the back-up end before these heads, which every verification would report from now on.
move="if [ -e $heads.jsonl ]; then mv $heads.jsonl $old_heads && echo moved; fi"
moved=$(docker compose run --rm -T --no-deps --entrypoint sh worker -c "$move")
echo "Restored, with its keys. The database that was there is now called $old; drop it when you have compared the ledgers."
echo "Read 'Back-up and restore' in docs/operations.md before analysts come back; then:"
echo "  docker compose up -d && docker compose exec worker cairn-server verify"
[ -z "$moved" ] || echo "and, to name the chains that the back-up is behind:"
[ -z "$moved" ] || echo "  docker compose exec -e CAIRN_HEADS_FILE=$old_heads worker cairn-server verify"
