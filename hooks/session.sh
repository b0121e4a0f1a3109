#!/bin/sh
# A session of a database client that stays open from one hook to the next. For the hooks `freeze-postgresql` and `freeze-mariadb`.
#
#   sh session.sh begin FOLDER SECONDS OPENING CLOSING PROGRAM WORD…
#       runs the program, gives it OPENING to read, and ends once it printed the line "held"; the program goes on
#   sh session.sh end FOLDER
#       gives it CLOSING, waits for its end and prints what it printed; without such a session it does nothing
#
# After SECONDS the session closes by itself; `end` then exits 1, for what was held was let go too early.
set -eu
umask 077

tell() {
    cat -- "$folder/out" "$folder/errors" 2>/dev/null || :
}

case ${1-} in
begin)
    folder=$2
    shift 2
    sh "$0" end "$folder" || :  # what a killed run left
    mkdir -p -- "$(dirname -- "$folder")"
    mkdir -- "$folder"
    : >"$folder/out"
    setsid sh "$0" hold "$folder" "$@" </dev/null >/dev/null 2>&1 &
    while ! grep -qx held "$folder/out"; do
        if [ -e "$folder/ended" ]; then
            tell >&2
            rm -r -- "$folder"
            exit 1
        fi
        sleep 0.1
    done
    ;;
hold)
    folder=$2 left=$(($3 * 5)) opening=$4 closing=$5
    shift 5
    echo $$ >"$folder/pid"
    {
        printf '%s\n' "$opening"
        while [ -d "$folder" ] && [ ! -e "$folder/release" ] && [ ! -e "$folder/ended" ]; do
            if [ "$left" -le 0 ]; then
                : >"$folder/expired"
                break
            fi
            left=$((left - 1))
            sleep 0.2
        done
        printf '%s\n' "$closing"
    } | {
        code=0
        "$@" >"$folder/out" 2>"$folder/errors" || code=$?
        echo "$code" >"$folder/ended.new"
        mv -- "$folder/ended.new" "$folder/ended"
    }
    ;;
end)
    folder=$2
    [ -d "$folder" ] || exit 0
    : >"$folder/release"
    left=150
    while [ ! -e "$folder/ended" ] && [ "$left" -gt 0 ] && kill -0 "$(cat -- "$folder/pid" 2>/dev/null || echo $$)" 2>/dev/null; do
        left=$((left - 1))
        sleep 0.1
    done
    code=1
    if [ -e "$folder/ended" ]; then
        read -r code <"$folder/ended"
    elif pid=$(cat -- "$folder/pid" 2>/dev/null) && kill -- "-$pid" 2>/dev/null; then
        echo "the client did not end, so it was killed: the server lets go of what it held" >&2
    else
        echo "the client is gone, and nobody saw how it ended: the server let go of what it held" >&2
    fi
    tell
    if [ -e "$folder/expired" ]; then
        echo "it was let go by itself before the snapshot was there: give --within more seconds" >&2
        code=1
    fi
    rm -r -- "$folder"
    exit "$code"
    ;;
*)
    echo "session.sh: for the hooks freeze-postgresql and freeze-mariadb; its first lines say how" >&2
    exit 2
    ;;
esac
