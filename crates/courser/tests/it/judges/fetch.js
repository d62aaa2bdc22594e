// Fetches the origin's page: fetch.js ROOT PORT VERSION CIPHERS SIGALGS
const [root, port, version, ciphers, sigalgs] = process.argv.slice(-5);
const socket = require("tls").connect({
  host: "127.0.0.1",
  port,
  servername: "localhost",
  ca: require("fs").readFileSync(root),
  minVersion: version,
  maxVersion: version,
  ...(ciphers && { ciphers }),
  ...(sigalgs && { sigalgs }),
});
socket.setTimeout(15000, () => socket.destroy(new Error("silence")));
socket.on("secureConnect", () => socket.write("GET / HTTP/1.0\r\n\r\n"));
socket.on("data", (bytes) => process.stdout.write(bytes));
socket.on("end", () => console.log(socket.getProtocol()));
