#!/bin/sh
# The life of one server: begins with this script and ends with it, also when whoever started it is killed.
#
#   sh server.sh BIN PORT PRIMARY [NAME=VALUE…]
#
# PRIMARY is the port of the server that this one is a streaming replica of, or 0 if it is of none.
#
# Says where its directory is once it answers, then obeys one word a line and says `ok` after each:
#   start   stop   crash (kill -9 of every process)
#   set NAME=VALUE   hold (a replica hears nothing more of its primary)   promote (a replica becomes a server of its own)
#   follow PORT (one that does not run throws its files away and becomes a replica of the one there)
set -eu
bin=$1
port=$2
primary=$3
shift 3

# Memory is faster than a disk, and a test needs no more than a few gigabytes of it.
room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${room:-0}" -gt 8000000 ] && [ -w /dev/shm ]; then
    TMPDIR=/dev/shm
    export TMPDIR
fi
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
    # It must not make another child after they were counted: one that is left keeps the next start from its memory.
    kill -STOP "$postmaster"
    while ! grep -q '^State:.[TZ]' "/proc/$postmaster/status"; do :; done
    children=$(ps -o pid= --ppid "$postmaster" || true)
    kill -9 "$postmaster" $children 2>/dev/null || true
    # Whatever still runs would keep the next start from having the directory. One that has ended may be in the list
    # of processes for as long as nobody asks how: then its lock files must not be there.
    for pid in "$postmaster" $children; do
        while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do :; done
    done
    rm -f "$data/postmaster.pid" "$dir"/.s.PGSQL.*
}

set_to() {
    # The last word on a setting counts.
    echo "${1%%=*} = '${1#*=}'" >>"$data/postgresql.auto.conf"
    "$bin/pg_ctl" -D "$data" reload >/dev/null
}

hold() {
    set_to primary_conninfo=
    postmaster=$(head -n 1 "$data/postmaster.pid")
    while ps -o args= --ppid "$postmaster" | grep -q walreceiver; do sleep 0.02; done
}

finish() {
    down immediate || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

make() {
    if [ "$primary" = 0 ]; then
        "$bin/initdb" -D "$data" -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync
    else
        "$bin/pg_basebackup" -D "$data" -h 127.0.0.1 -p "$primary" -U postgres -R -X stream -c fast --no-sync
    fi
}
furnish() {
    make >"$dir/make.log" 2>&1 || {
        cat "$dir/make.log" >&2
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
}
furnish "$@"
echo "$dir"

while read -r word setting; do
    case $word in
        start) up ;;
        stop) down fast ;;
        crash) crash ;;
        hold) hold ;;
        set) set_to "$setting" ;;
        follow)
            primary=$setting
            rm -rf "$data"
            furnish "$@"
            ;;
        promote) "$bin/pg_ctl" -D "$data" -t 60 -w promote >/dev/null ;;
        *) echo "what is $word?" >&2; exit 1 ;;
    esac
    echo ok
done
