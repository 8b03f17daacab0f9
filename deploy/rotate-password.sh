#!/bin/sh
# Give the deployment's database another password:  deploy/rotate-password.sh
# Run it beside docker-compose.yml. If it is interrupted, run it again.
set -eu
password=$(docker compose run --rm -T --no-deps secrets 'import secrets; print(secrets.token_urlsafe(32))')
[ ${#password} -ge 43 ] || { echo "no password was made" >&2; exit 1; }
# Both by standard input: arguments are seen by every user of the machine.
docker compose exec -T postgres psql -X -q -v ON_ERROR_STOP=1 -U cairn -d cairn <<SQL
ALTER ROLE cairn PASSWORD '$password';
SQL
printf %s "$password" | docker compose run --rm -T --no-deps secrets '
import os, pathlib, sys
new = pathlib.Path("/run/cairn/new-password")
new.unlink(missing_ok=True)
with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o440), "w") as file:
    os.fchmod(file.fileno(), 0o440)
    file.write(sys.stdin.read())
new.replace("/run/cairn/database-password")'
# Whoever runs has read the old one.
for service in $(docker compose --profile cluster ps --services --status running | grep -xE 'api|worker|cluster-worker'); do
    docker compose --profile cluster restart "$service"
done
echo "The database has another password, and the service knows it."
