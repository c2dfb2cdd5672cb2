#!/bin/sh
# The tests of pages need Chromium. Where it is missing it is taken from Debian's packages, if apt may be used.
# Never fails: without Chromium those tests are skipped, and the last line here says so.

command -v chromium >/dev/null 2>&1 && exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"

if command -v apt-get >/dev/null 2>&1 && $as_root true >/dev/null 2>&1; then
    echo "Installing Chromium for the tests of pages" >&2
    export DEBIAN_FRONTEND=noninteractive
    for update in no yes; do
        [ $update = no ] || $as_root apt-get update -qq >/dev/null 2>&1
        $as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 \
            && command -v chromium >/dev/null 2>&1 && exit 0
    done
fi
echo "CHROMIUM IS MISSING and could not be installed: PAGES ARE NOT TESTED IN A BROWSER. Try: apt-get install chromium" >&2
