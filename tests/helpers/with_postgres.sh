#!/bin/bash
# Run a command with a PostgreSQL of its own in BUDGETBANDITS_POSTGRES: a fresh cluster in a temporary folder, gone afterwards.
set -euo pipefail
programs=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -1)" 2>/dev/null || true)
if [ -z "$programs" ] || [ ! -x "$programs/initdb" ]; then
    echo "no PostgreSQL here: install Debian's package postgresql" >&2
    exit 1
fi
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then chown -R postgres "$folder" && su postgres -s /bin/bash -c "$1"; else bash -c "$1"; fi; }
trap 'as "$programs/pg_ctl -D $folder/data -m immediate stop" >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
as "$programs/initdb -D $folder/data -U tester --auth=trust >/dev/null"
as "$programs/pg_ctl -D $folder/data -w -o '-p $port -c listen_addresses=127.0.0.1 -k $folder' -l $folder/log start >/dev/null"
as "$programs/createdb -h 127.0.0.1 -p $port -U tester test"
BUDGETBANDITS_POSTGRES="postgresql://tester@127.0.0.1:$port/test" "$@"
