// Sends so many bytes through a TLS server that echoes, says close_notify with the rest still in flight, reads to the
// end and compares the hashes of what was sent and what came back. Nothing is held in memory.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"os"
	"strconv"
)

func main() {
	log.SetFlags(0)
	address, root, size := os.Args[1], os.Args[2], must(strconv.ParseInt(os.Args[3], 10, 64))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(root)))
	connection := must(tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "localhost"}))

	sent := make(chan string)
	go func() {
		hash := sha256.New()
		source := io.LimitReader(&noise{state: 1}, size)
		must(io.CopyBuffer(io.MultiWriter(hash, onlyWriter{connection}), source, make([]byte, 1<<18)))
		check(connection.CloseWrite())
		sent <- string(hash.Sum(nil))
	}()
	hash := sha256.New()
	received := must(io.CopyBuffer(hash, onlyReader{connection}, make([]byte, 1<<18)))
	if received != size {
		log.Fatalf("%d bytes came back of %d", received, size)
	}
	if string(hash.Sum(nil)) != <-sent {
		log.Fatal("other bytes came back")
	}
}

// Bytes that repeat nowhere, cheap to make: Marsaglia's xorshift.
type noise struct{ state uint64 }

func (noise *noise) Read(bytes []byte) (int, error) {
	whole := len(bytes) &^ 7
	for start := 0; start < whole; start += 8 {
		noise.state ^= noise.state << 13
		noise.state ^= noise.state >> 7
		noise.state ^= noise.state << 17
		binary.LittleEndian.PutUint64(bytes[start:], noise.state)
	}
	return whole, nil
}

type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
