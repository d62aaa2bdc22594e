#!/bin/sh
# Builds courser_VERSION_ARCH.deb and courser-bench_VERSION_ARCH.deb from those of the programs that are in the folder.
#   scripts/deb.sh FOLDER-OF-PROGRAMS OUT [VERSION]
# Needs dpkg-deb and binutils. The packages depend on the C library that the programs were built with, and on no other.
set -eu
programs=$1 out=$2
cd "$(dirname "$0")/.."
version=${3:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
# Options of dpkg-deb: tests take the fastest.
compression=${COMPRESSION:--Zxz}

# put MODE SOURCE TARGET
put() { install -D -m "$1" "$2" "$root/$3"; }

# The oldest C library that has every symbol that the program asks for.
libc_of() {
    objdump -T "$1" | sed -n 's/.*GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1
}

# control NAME DESCRIPTION LONG-DESCRIPTION PROGRAM
control() {
    mkdir -p "$root/DEBIAN"
    cat > "$root/DEBIAN/control" <<END
Package: $1
Version: $version
Architecture: $arch
Maintainer: courser maintainers <courser@localhost>
Installed-Size: $(du -sk "$root" | cut -f 1)
Depends: libc6 (>= $(libc_of "$4")), libgcc-s1
Section: net
Priority: optional
Description: $2
 $3
END
}

documents() {
    put 644 LICENSE-MIT "usr/share/doc/$1/LICENSE-MIT"
    put 644 LICENSE-APACHE "usr/share/doc/$1/LICENSE-APACHE"
    put 644 packaging/debian/copyright "usr/share/doc/$1/copyright"
    gzip -9 -n -c CHANGELOG.md > "$root/usr/share/doc/$1/changelog.gz"
}

# What the program prints about itself.
completions() {
    for shell in bash zsh fish; do
        case $shell in
            bash) target=usr/share/bash-completion/completions/$1 ;;
            zsh) target=usr/share/zsh/vendor-completions/_$1 ;;
            fish) target=usr/share/fish/vendor_completions.d/$1.fish ;;
        esac
        mkdir -p "$root/$(dirname "$target")"
        "$programs/$1" completions "$shell" > "$root/$target"
        chmod 644 "$root/$target"
    done
    mkdir -p "$root/usr/share/man/man1"
    "$programs/$1" man | gzip -9 -n > "$root/usr/share/man/man1/$1.1.gz"
}

strip_into() {
    put 755 "$programs/$1" "usr/bin/$1"
    strip --strip-debug "$root/usr/bin/$1"
}

if [ -x "$programs/courser" ]; then
    root=$work/courser
    strip_into courser
    completions courser
    documents courser
    for unit in courser.service courser.socket; do
        put 644 "packaging/$unit" "lib/systemd/system/$unit"
        sed -i 's#/usr/local/bin/#/usr/bin/#' "$root/lib/systemd/system/$unit"
    done
    put 640 packaging/debian/courser.toml etc/courser/courser.toml
    put 644 packaging/debian/courser.logrotate etc/logrotate.d/courser
    put 644 packaging/courser.example.toml usr/share/doc/courser/examples/courser.toml
    put 644 packaging/debian/sysctl.conf usr/share/doc/courser/examples/sysctl.conf
    for page in docs/*.md; do put 644 "$page" "usr/share/doc/courser/$(basename "$page")"; done
    control courser "TLS terminator for every core" \
        "Terminates TLS 1.2 and 1.3 and forwards plain bytes to backends (PROXY protocol)." "$root/usr/bin/courser"
    printf '%s\n' /etc/courser/courser.toml /etc/logrotate.d/courser > "$root/DEBIAN/conffiles"
    for script in postinst prerm postrm; do put 755 "packaging/debian/$script" "DEBIAN/$script"; done
    dpkg-deb --root-owner-group $compression --build "$root" "$out" >/dev/null
    echo "$out/courser_${version}_$arch.deb"
fi

if [ -x "$programs/courser-bench" ]; then
    root=$work/courser-bench
    strip_into courser-bench
    completions courser-bench
    documents courser-bench
    control courser-bench "measures TLS terminators" \
        "Loads any TLS endpoint, and runs the published experiments on courser, nginx, HAProxy, hitch and stunnel." \
        "$root/usr/bin/courser-bench"
    dpkg-deb --root-owner-group $compression --build "$root" "$out" >/dev/null
    echo "$out/courser-bench_${version}_$arch.deb"
fi
