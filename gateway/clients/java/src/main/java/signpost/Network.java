// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static signpost.Text.check;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** How connections are made: proxy, TLS, timeout. */
final class Network {
    private static final Pattern PROXY = Pattern.compile("(?i)(?:http://)?(\\[[0-9a-f:.]+\\]|[^\\s/?#@:\\[\\]]+)(?::([0-9]{1,5}))?/?");

    /** Null without a proxy. */
    final InetSocketAddress proxy;
    /** Null for the system's. */
    final SSLContext tls;
    final Duration connectTimeout;

    /** A proxy that is null is the environment's; an empty one is none. */
    Network(URI origin, String proxy, Path caFile, Path certificateFile, Path keyFile, Duration connectTimeout) {
        this.proxy = address(proxy != null ? proxy : fromEnvironment(origin, System.getenv()));
        this.connectTimeout = connectTimeout;
        check((certificateFile == null) == (keyFile == null), "a client certificate needs two files: certificate and key");
        try {
            tls = caFile == null && certificateFile == null ? null : context(caFile, certificateFile, keyFile);
        } catch (IOException | GeneralSecurityException error) {
            throw new IllegalArgumentException("CA file or client certificate cannot be used: " + error.getMessage(), error);
        }
    }

    /** HTTPS_PROXY or HTTP_PROXY by the origin's scheme, unless NO_PROXY has its host; names in lower case come first. */
    static String fromEnvironment(URI origin, Map<String, String> environment) {
        for (var entry : variable(environment, "NO_PROXY").split("[,\\s]+")) {
            var name = entry.replaceFirst("^\\*?\\.", "").toLowerCase(Locale.ROOT);
            var host = origin.getHost().toLowerCase(Locale.ROOT);
            var isHost = List.of(host, host + ":" + origin.getPort()).contains(name);
            if (!name.isEmpty() && (name.equals("*") || isHost || host.endsWith("." + name))) {
                return "";
            }
        }
        return variable(environment, origin.getScheme().toUpperCase(Locale.ROOT) + "_PROXY");
    }

    private static String variable(Map<String, String> environment, String name) {
        return environment.getOrDefault(name.toLowerCase(Locale.ROOT), environment.getOrDefault(name, "")).strip();
    }

    private static InetSocketAddress address(String proxy) {
        if (proxy.isEmpty()) {
            return null;
        }
        var parts = PROXY.matcher(proxy);
        check(parts.matches(), "proxy must be http:// with a host and perhaps a port, without a user");
        var port = parts.group(2) == null ? 80 : Integer.parseInt(parts.group(2));
        check(port <= 65_535, "proxy has a port that cannot be");
        return new InetSocketAddress(parts.group(1), port);
    }

    private static SSLContext context(Path caFile, Path certificateFile, Path keyFile) throws IOException, GeneralSecurityException {
        var authorities = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        if (caFile != null) {
            var store = store();
            for (var certificate : certificates(caFile)) {
                store.setCertificateEntry("ca-" + store.size(), certificate);
            }
            authorities.init(store);
        }
        var own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        if (certificateFile != null) {
            var store = store();
            store.setKeyEntry("client", privateKey(keyFile), new char[0], certificates(certificateFile));
            own.init(store, new char[0]);
        }
        var context = SSLContext.getInstance("TLS");
        context.init(certificateFile == null ? null : own.getKeyManagers(), caFile == null ? null : authorities.getTrustManagers(), null);
        return context;
    }

    private static KeyStore store() throws IOException, GeneralSecurityException {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static Certificate[] certificates(Path file) throws IOException, GeneralSecurityException {
        var certificates = CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)));
        check(!certificates.isEmpty(), "a file has no certificate");
        return certificates.toArray(new Certificate[0]);
    }

    private static PrivateKey privateKey(Path file) throws IOException, GeneralSecurityException {
        var parts = new String(Files.readAllBytes(file), US_ASCII).split("-----(?:BEGIN|END) PRIVATE KEY-----");
        check(parts.length > 1, "the client's key must be PEM, PRIVATE KEY (PKCS #8): openssl pkcs8 -topk8 -nocrypt makes it");
        var key = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(parts[1]));
        for (var algorithm : List.of("RSA", "EC")) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(key);
            } catch (InvalidKeySpecException error) {
                // It is of the other algorithm.
            }
        }
        return KeyFactory.getInstance("Ed25519").generatePrivate(key);
    }
}
