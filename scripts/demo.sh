#!/usr/bin/env bash
# Builds the terminator, puts it in front of a small origin on free ports, and shows with other people's clients what
# it does. Leaves nothing behind: no file outside the build folder, no process, no port.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly load_seconds=3
folder=$(mktemp -d)
pids=()

main() {
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  require curl
  require openssl
  step "Building (release: a few minutes the first time)"
  build
  step "Starting an origin, and courser in front of it"
  start_origin
  start_courser
  step "A request with curl"
  show_request
  step "What openssl negotiates"
  show_handshake "TLS 1.3" -tls1_3
  show_handshake "TLS 1.2" -tls1_2
  show_resumption
  step "$load_seconds seconds of load, client and origin on the same machine"
  show_load
  step "The last line of the connection log"
  show_log
  step "How to go on"
  show_next
}

build() {
  cargo build --locked --release -p courser --bin courser -p courser-testkit --example origin --example knock
  programs=$(target_folder)/release
}

# Where cargo builds: the environment or a configuration file may have moved it.
target_folder() {
  cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

start_origin() {
  "$programs/examples/origin" --listen 127.0.0.1:0 2>"$folder/origin.err" &
  pids+=($!)
  origin=$(listening_address "$folder/origin.err" $!)
  echo "origin   http://$origin/?s=20k answers with 20 KiB"
}

# Without --cert it makes a throw-away certificate itself.
start_courser() {
  "$programs/courser" serve --listen 127.0.0.1:0 --backend "$origin" \
    >"$folder/courser.log" 2>"$folder/courser.err" &
  pids+=($!)
  address=$(listening_address "$folder/courser.err" $!)
  sed 's/^/courser  /' "$folder/courser.err"
}

# Waits for "listening on ADDRESS" in a file while its process lives.
listening_address() {
  local found _
  for _ in $(seq 200); do
    found=$(sed -n 's/.*listening on \([^ ,"]*\).*/\1/p' "$1" | head -n 1)
    if [ -n "$found" ]; then
      echo "$found"
      return
    fi
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  echo "it did not start:" >&2
  cat "$1" >&2
  return 1
}

show_request() {
  curl --silent --show-error --insecure --output /dev/null \
    --write-out 'HTTP %{http_code}, %{size_download} bytes, handshake done after %{time_appconnect} s\n' \
    "https://$address/?s=20k"
}

# One line each: version and suite, group, certificate.
show_handshake() {
  local name=$1
  shift
  s_client "$@" >"$folder/s_client.txt"
  printf '%s  suite %s, group %s, certificate %s, %s bit key\n' "$name" \
    "$(field 's/^New, [^,]*, Cipher is \(.*\)/\1/p')" \
    "$(field 's/^Server Temp Key: \([^,]*\).*/\1/p; s/^Negotiated TLS1.3 group: \(.*\)/\1/p')" \
    "$(field 's/^subject=\(.*\)/\1/p')" \
    "$(field 's/^Server public key is \([0-9]*\) bit.*/\1/p')"
}

show_resumption() {
  s_client -tls1_3 -sess_out "$folder/session" >/dev/null
  s_client -tls1_3 -sess_in "$folder/session" >"$folder/s_client.txt"
  if grep -q '^Reused' "$folder/s_client.txt"; then
    echo "TLS 1.3  a second connection resumed the first one's session"
  else
    echo "TLS 1.3  a second connection was not resumed"
  fi
}

# One request, so that tickets, which follow the handshake, are read; the origin closes after it.
s_client() {
  printf 'GET /?s=1 HTTP/1.1\r\nConnection: close\r\n\r\n' |
    openssl s_client -connect "$address" -servername localhost -ign_eof "$@" 2>/dev/null || true
}

field() {
  sed -n "$1" "$folder/s_client.txt" | head -n 1
}

show_load() {
  printf 'full handshakes with a request     '
  "$programs/examples/knock" "$address" --seconds "$load_seconds"
  printf 'resumed by ticket, with a request  '
  "$programs/examples/knock" "$address" --seconds "$load_seconds" --resume ticket
}

# The log is written in pieces: the line of the last connection may still be on its way, the one before is not.
show_log() {
  tail -n 1 "$folder/courser.log"
}

show_next() {
  cat <<END
$programs/courser serve --listen '*:443' --cert site.pem --backend 127.0.0.1:8080
$programs/courser serve --help
make bench     processor time per connection next to nginx, HAProxy, hitch and stunnel
make test      everything that is checked
END
}

require() {
  command -v "$1" >/dev/null || { echo "demo: $1 is not installed (scripts/install.sh installs it)" >&2; exit 1; }
}

step() {
  if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    printf '\n\033[1m%s\033[0m\n' "$1"
  else
    printf '\n%s\n' "$1"
  fi
}

clean_up() {
  local pid
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
  wait
  rm -rf "$folder"
}

main
