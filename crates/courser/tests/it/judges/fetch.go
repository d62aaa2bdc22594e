// Fetches the origin's page: fetch ROOT PORT VERSION SUITE GROUP, the last three as numbers, 0 for any.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
)

func main() {
	// Built without a module, a program behaves as if Go were older than the hybrid.
	check(os.Setenv("GODEBUG", "tlsmlkem=1"))
	root, err := os.ReadFile(os.Args[1])
	check(err)
	config := &tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(root)
	config.MinVersion, config.MaxVersion = number(3), number(3)
	if suite := number(4); suite != 0 {
		config.CipherSuites = []uint16{suite}
	}
	if group := number(5); group != 0 {
		config.CurvePreferences = []tls.CurveID{tls.CurveID(group)}
	}
	connection, err := tls.Dial("tcp", "127.0.0.1:"+os.Args[2], config)
	check(err)
	_, err = connection.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	check(err)
	page, err := io.ReadAll(connection)
	check(err)
	check(connection.Close())
	fmt.Printf("%s %x\n", page, connection.ConnectionState().Version)
}

func number(argument int) uint16 {
	value, err := strconv.ParseUint(os.Args[argument], 0, 16)
	check(err)
	return uint16(value)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
