#!/bin/sh
# The programs are hardened, as configure does by default.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v readelf >/dev/null || skip_all 'no readelf'
[ "$SLOW" -eq 1 ] || skip_all 'built with sanitizers, which exclude hardening'
"$BUILDDIR/config.status" --config | grep -q -e '--disable-hardening' && skip_all 'built without hardening'

flags=$(sed -n 's/^RQD_CFLAGS = //p' "$BUILDDIR/Makefile")
like "$flags" '-fstack-protector-strong' 'functions guard their return addresses'
like "$flags" '-fstack-clash-protection' 'stacks grow page by page'
for p in rqd rqctl; do
	b=$BUILDDIR/$p
	like "$(readelf -hW "$b")" 'Type:.*DYN' "$p: position independent"
	like "$(readelf -lW "$b")" 'GNU_RELRO' "$p: tables of addresses become read-only"
	like "$(readelf -dW "$b")" 'FLAGS.*BIND_NOW|FLAGS_1.*NOW' "$p: at its start, all of them"
	like "$(readelf -lW "$b" | grep GNU_STACK)" ' RW  ' "$p: no code on the stack"
	is "$(readelf -lW "$b" | grep -E 'LOAD.* (RWE|WE)')" '' "$p: no memory that is written and executed"
	unlike "$(readelf -dW "$b")" 'RPATH|RUNPATH|TEXTREL' "$p: no search path of its own, no code that is patched"
	like "$(readelf -sW --dyn-syms "$b")" '__stack_chk_fail' "$p: the guards are there"
	like "$(readelf -sW --dyn-syms "$b")" '__[a-z]*printf_chk' "$p: copies are checked against their room"
	case $(uname -m) in
	x86_64)
		n=$(objdump -d "$b" | grep -c endbr64)
		ok "[ $n -ge 100 ]" "$p: indirect calls go to marked places ($n)"
		;;
	esac
done
