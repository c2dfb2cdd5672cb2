#!/bin/sh
# A part that some tests need is taken from Debian's packages where it is missing, if apt may be used:
#     install_package.sh PACKAGE "command that succeeds where it is there" "what for" "what is said without it"
# Never fails: without the part those tests are skipped, and the last line here says so.

package=$1 check=$2 purpose=$3 without=$4

is_there() {
    sh -c "$check" >/dev/null 2>&1
}

is_there && exit 0
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"

if command -v apt-get >/dev/null 2>&1 && $as_root true >/dev/null 2>&1; then
    echo "Installing $package for the tests of $purpose" >&2
    export DEBIAN_FRONTEND=noninteractive
    for update in no yes; do
        [ $update = no ] || $as_root apt-get update -qq >/dev/null 2>&1
        $as_root apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 && is_there && exit 0
    done
fi
echo "$without Try: apt-get install $package" >&2
