// UpdateKeys PORT FOLDER get|echo SIZE...: for each size a connection of its own over TLS 1.3. What comes back is
// written to FOLDER/SIZE. Keys are updated as the security property jdk.tls.keyLimits says; no certificate is looked at.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import javax.net.ssl.*;

public class UpdateKeys {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        for (int i = 3; i < arguments.length; i++) {
            int size = Integer.parseInt(arguments[i]);
            try (SSLSocket socket = (SSLSocket) trusting().createSocket("127.0.0.1", port)) {
                socket.setSoTimeout(15_000);
                socket.setEnabledProtocols(new String[] {"TLSv1.3"});
                socket.setEnabledCipherSuites(new String[] {"TLS_AES_128_GCM_SHA256"});
                byte[] answer = arguments[2].equals("get") ? get(socket, size) : echo(socket, size);
                Files.write(Path.of(arguments[1], arguments[i]), answer);
            }
        }
    }

    // The client closes first: JSSE asks for new keys behind a server's close_notify too, and calls the connection broken.
    static byte[] get(SSLSocket socket, int size) throws IOException {
        String request = "GET /?s=" + size + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
        socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
        InputStream in = socket.getInputStream();
        for (int end = 0; end != 0x0d0a0d0a; ) {
            end = end << 8 | in.read();
        }
        return in.readNBytes(size);
    }

    // Writes and reads at once.
    static byte[] echo(SSLSocket socket, int size) throws Exception {
        byte[] sent = new byte[size];
        for (int i = 0; i < size; i++) {
            sent[i] = (byte) ('a' + i % 26);
        }
        Thread writer = new Thread(() -> {
            try {
                socket.getOutputStream().write(sent);
            } catch (IOException error) {
                error.printStackTrace();
            }
        });
        writer.start();
        byte[] answer = socket.getInputStream().readNBytes(size);
        writer.join();
        return answer;
    }

    static SSLSocketFactory trusting() throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new X509TrustManager() {
            public void checkClientTrusted(X509Certificate[] chain, String type) {}
            public void checkServerTrusted(X509Certificate[] chain, String type) {}
            public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
        }}, new SecureRandom());
        return context.getSocketFactory();
    }
}
