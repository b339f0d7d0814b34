#!/bin/sh
# The life of one server: begins with this script and ends with it, also when whoever started it is killed.
#
#   sh server.sh BIN PORT [NAME=VALUE…]
#
# Says where its directory is once it answers, then obeys one word a line and says `ok` after each:
#   start   stop   crash (kill -9 of every process)
set -eu
bin=$1
port=$2
shift 2

dir=$(mktemp -d -t own-postgres-XXXXXX)
data=$dir/data

up() {
    "$bin/pg_ctl" -D "$data" -l "$dir/log" -t 60 -w start >"$dir/start.log" 2>&1 || {
        cat "$dir/start.log" "$dir/log" >&2
        return 1
    }
}

down() {
    "$bin/pg_ctl" -D "$data" -m "$1" -t 60 -w stop >/dev/null 2>&1
}

crash() {
    postmaster=$(head -n 1 "$data/postmaster.pid")
    children=$(ps -o pid= --ppid "$postmaster" || true)
    kill -9 "$postmaster" $children 2>/dev/null || true
    # Whatever still runs would keep the next start from having the directory. One that has ended may be in the list
    # of processes for as long as nobody asks how: then its lock files must not be there.
    for pid in "$postmaster" $children; do
        while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do :; done
    done
    rm -f "$data/postmaster.pid" "$dir"/.s.PGSQL.*
}

finish() {
    down immediate || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

"$bin/initdb" -D "$data" -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 || {
    cat "$dir/initdb.log" >&2
    exit 1
}
{
    echo "port = $port"
    echo "listen_addresses = '127.0.0.1'"
    echo "unix_socket_directories = '$dir'"
    for setting in "$@"; do
        echo "${setting%%=*} = '${setting#*=}'"
    done
} >>"$data/postgresql.conf"
up
echo "$dir"

while read -r word; do
    case $word in
        start) up ;;
        stop) down fast ;;
        crash) crash ;;
        *) echo "what is $word?" >&2; exit 1 ;;
    esac
    echo ok
done
