#!/bin/sh
# Spark's tests need Java 17 or newer. Where it is missing it is taken from Debian's packages, if apt may be used.
# Never fails: without Java those tests are skipped, and the last line here says so.

java -version >/dev/null 2>&1 && exit 0
[ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && exit 0

package=openjdk-17-jre-headless
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"

if command -v apt-get >/dev/null 2>&1 && $as_root true >/dev/null 2>&1; then
    echo "Installing Java ($package) for the tests of Spark" >&2
    export DEBIAN_FRONTEND=noninteractive
    for update in no yes; do
        [ $update = no ] || $as_root apt-get update -qq >/dev/null 2>&1
        $as_root apt-get install -y -qq --no-install-recommends $package >/dev/null 2>&1 \
            && java -version >/dev/null 2>&1 && exit 0
    done
fi
echo "JAVA IS MISSING and could not be installed: SPARK IS NOT TESTED. Try: apt-get install $package" >&2
