// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// An option of a transfer, with the type of value that it takes. Only options that somebody uses exist here.
package struct EasyOption<Value>: Sendable {
    let id: CURLoption

    fileprivate init(_ id: CURLoption) {
        self.id = id
    }
}

/// Options that are a `long` of 0 or 1.
extension EasyOption<Bool> {
    /// Tell the server by ALPN which protocol is meant (default).
    package static var alpn: Self { Self(CURLOPT_SSL_ENABLE_ALPN) }
    /// Keep what the server's certificates say; see `EasyHandle.shownCertificates`.
    package static var certificateInfo: Self { Self(CURLOPT_CERTINFO) }
    /// Never use a connection that is there already.
    package static var freshConnect: Self { Self(CURLOPT_FRESH_CONNECT) }
    /// Close the connection after the transfer.
    package static var forbidReuse: Self { Self(CURLOPT_FORBID_REUSE) }
    /// GET; takes back `post`, `upload` and `noBody`.
    package static var httpGet: Self { Self(CURLOPT_HTTPGET) }
    /// Through a proxy, use CONNECT for `http` too.
    package static var httpProxyTunnel: Self { Self(CURLOPT_HTTPPROXYTUNNEL) }
    /// Undo the codings that `acceptEncoding` asked for.
    package static var httpContentDecoding: Self { Self(CURLOPT_HTTP_CONTENT_DECODING) }
    /// Take the chunks of a response apart (default); else they are handed over as they came.
    package static var httpTransferDecoding: Self { Self(CURLOPT_HTTP_TRANSFER_DECODING) }
    /// HEAD, and no body is expected whatever the method.
    package static var noBody: Self { Self(CURLOPT_NOBODY) }
    /// Wait for a connection that may turn out to be able to carry several transfers.
    package static var pipeWait: Self { Self(CURLOPT_PIPEWAIT) }
    /// POST, the body from the delegate.
    package static var post: Self { Self(CURLOPT_POST) }
    /// Check the certificate's chain (default).
    package static var sslVerifyPeer: Self { Self(CURLOPT_SSL_VERIFYPEER) }
    /// Send TCP keep-alive probes.
    package static var tcpKeepAlive: Self { Self(CURLOPT_TCP_KEEPALIVE) }
    /// PUT, the body from the delegate; set `customRequest` for another method.
    package static var upload: Self { Self(CURLOPT_UPLOAD) }
    /// Print the conversation to standard error; for debugging only, it shows secrets.
    package static var verbose: Self { Self(CURLOPT_VERBOSE) }

    static var all: [Self] {
        [
            .alpn, .certificateInfo, .connectOnly, .freshConnect, .forbidReuse, .httpGet, .httpProxyTunnel,
            .httpContentDecoding,
            .httpTransferDecoding, .noBody, .pipeWait, .post,
            .sslVerifyPeer, .tcpKeepAlive, .upload, .verbose, .disallowUsername, .followLocation, .http09, .noProgress,
            .noSignal, .pathAsIs, .suppressConnectHeaders, .tcpNoDelay,
        ]
    }

    /// Stop when the connection is there; see `EasyHandle.connectOnly`.
    static var connectOnly: Self { Self(CURLOPT_CONNECT_ONLY) }

    // Set once, for every handle.
    static var disallowUsername: Self { Self(CURLOPT_DISALLOW_USERNAME_IN_URL) }
    static var followLocation: Self { Self(CURLOPT_FOLLOWLOCATION) }
    static var http09: Self { Self(CURLOPT_HTTP09_ALLOWED) }
    static var noProgress: Self { Self(CURLOPT_NOPROGRESS) }
    static var noSignal: Self { Self(CURLOPT_NOSIGNAL) }
    static var pathAsIs: Self { Self(CURLOPT_PATH_AS_IS) }
    static var suppressConnectHeaders: Self { Self(CURLOPT_SUPPRESS_CONNECT_HEADERS) }
    static var tcpNoDelay: Self { Self(CURLOPT_TCP_NODELAY) }
}

/// Options that are a `long`.
extension EasyOption<Int> {
    /// The size in bytes of the buffer that a response is read into.
    package static var bufferSize: Self { Self(CURLOPT_BUFFERSIZE) }
    /// Seconds for which a name's addresses are kept; -1: for ever.
    package static var dnsCacheTimeout: Self { Self(CURLOPT_DNS_CACHE_TIMEOUT) }
    /// Which schemes libcurl itself may answer a 401 with: `CURLAUTH_*` bits.
    package static var httpAuth: Self { Self(CURLOPT_HTTPAUTH) }
    /// Which HTTP to speak: a raw value of `HTTPVersion`.
    package static var httpVersion: Self { Self(CURLOPT_HTTP_VERSION) }
    /// Seconds after which an idle connection is not used again.
    package static var maxIdleAge: Self { Self(CURLOPT_MAXAGE_CONN) }
    /// Which schemes libcurl may authenticate to a proxy with: `CURLAUTH_*` bits.
    package static var proxyAuth: Self { Self(CURLOPT_PROXYAUTH) }
    /// The lowest TLS version: a raw value of `TLSVersion`.
    package static var sslVersion: Self { Self(CURLOPT_SSLVERSION) }
    /// 2: the certificate must be for the host's name (default); 0: whatever it is for.
    package static var sslVerifyHost: Self { Self(CURLOPT_SSL_VERIFYHOST) }
    /// The size in bytes of the buffer that a request's body is read into.
    package static var uploadBufferSize: Self { Self(CURLOPT_UPLOAD_BUFFERSIZE) }

    static var all: [Self] {
        [
            .bufferSize, .dnsCacheTimeout, .httpAuth, .httpVersion, .maxIdleAge, .proxyAuth, .sslVersion,
            .sslVerifyHost,
            .uploadBufferSize,
        ]
    }
}

/// Options that are a `curl_off_t`.
extension EasyOption<Int64> {
    /// The size of the body of `upload`; -1: unknown, hence chunked.
    package static var bodySize: Self { Self(CURLOPT_INFILESIZE_LARGE) }
    /// The size of the body of `post`; -1: unknown.
    package static var postSize: Self { Self(CURLOPT_POSTFIELDSIZE_LARGE) }

    static var all: [Self] {
        [.bodySize, .postSize]
    }
}

/// Options that are a `long` in milliseconds.
extension EasyOption<Duration> {
    /// How long name, connection and TLS handshake may take together; zero: libcurl's default of 300 s.
    package static var connectTimeout: Self { Self(CURLOPT_CONNECTTIMEOUT_MS) }
    /// How long to wait for `100 Continue` before the body is sent all the same.
    package static var expect100Timeout: Self { Self(CURLOPT_EXPECT_100_TIMEOUT_MS) }
    /// How long the whole transfer may take; zero: without limit.
    package static var timeout: Self { Self(CURLOPT_TIMEOUT_MS) }

    static var all: [Self] {
        [.connectTimeout, .expect100Timeout, .timeout]
    }
}

/// Options that are a string, which libcurl copies.
extension EasyOption<String> {
    /// Codings to ask for and to undo; the empty string asks for all that libcurl knows. Default: none.
    package static var acceptEncoding: Self { Self(CURLOPT_ACCEPT_ENCODING) }
    /// The file with the authorities to trust instead of the system's.
    package static var caFile: Self { Self(CURLOPT_CAINFO) }
    /// The folder of the authorities to trust, by their hashes. It has a default of its own, which stands beside a file's.
    package static var caFolder: Self { Self(CURLOPT_CAPATH) }
    /// The method, where it is none of those that other options imply.
    package static var customRequest: Self { Self(CURLOPT_CUSTOMREQUEST) }
    /// Hosts that are reached without the proxy. The empty string, our default: none, whatever the environment says.
    package static var noProxy: Self { Self(CURLOPT_NOPROXY) }
    /// The password for schemes that libcurl itself answers.
    package static var password: Self { Self(CURLOPT_PASSWORD) }
    /// Where the server's key must match: `sha256//…` or a file.
    package static var pinnedPublicKey: Self { Self(CURLOPT_PINNEDPUBLICKEY) }
    /// The proxy's URL. The empty string, our default: none, whatever the environment says.
    package static var proxy: Self { Self(CURLOPT_PROXY) }
    /// The password for the proxy.
    package static var proxyPassword: Self { Self(CURLOPT_PROXYPASSWORD) }
    /// The user name for the proxy.
    package static var proxyUserName: Self { Self(CURLOPT_PROXYUSERNAME) }
    /// The request target to send instead of the URL's path and query.
    package static var requestTarget: Self { Self(CURLOPT_REQUEST_TARGET) }
    /// The service of the principal that Negotiate asks a ticket for.
    package static var serviceName: Self { Self(CURLOPT_SERVICE_NAME) }
    /// Our certificate's file.
    package static var sslCertificate: Self { Self(CURLOPT_SSLCERT) }
    /// Our private key's file.
    package static var sslKey: Self { Self(CURLOPT_SSLKEY) }
    /// A Unix socket to connect to instead of the URL's host.
    package static var unixSocketPath: Self { Self(CURLOPT_UNIX_SOCKET_PATH) }
    /// Where the transfer goes.
    package static var url: Self { Self(CURLOPT_URL) }
    /// The user name for schemes that libcurl itself answers.
    package static var userName: Self { Self(CURLOPT_USERNAME) }

    static var all: [Self] {
        [
            .acceptEncoding, .caFile, .caFolder, .customRequest, .noProxy, .password, .pinnedPublicKey, .proxy,
            .proxyPassword,
            .proxyUserName,
            .requestTarget, .serviceName, .sslCertificate, .sslKey, .unixSocketPath, .url, .userName, .protocols,
            .redirectProtocols,
        ]
    }

    // Set once, for every handle.
    static var protocols: Self { Self(CURLOPT_PROTOCOLS_STR) }
    static var redirectProtocols: Self { Self(CURLOPT_REDIR_PROTOCOLS_STR) }
}

/// Options that are bytes, which libcurl reads where they lie.
extension EasyOption<Blob> {
    /// The authorities to trust instead of the system's, PEM; stands in place of `caFile`.
    package static var authorities: Self { Self(CURLOPT_CAINFO_BLOB) }
    /// Our certificate and what leads from it to an authority, PEM.
    package static var certificate: Self { Self(CURLOPT_SSLCERT_BLOB) }
    /// Our private key, PEM.
    package static var key: Self { Self(CURLOPT_SSLKEY_BLOB) }

    static var all: [Self] {
        [.authorities, .certificate, .key]
    }
}

/// Options that are a list of lines.
extension EasyOption<HeaderList> {
    /// The request's fields.
    package static var httpHeader: Self { Self(CURLOPT_HTTPHEADER) }

    static var all: [Self] {
        [.httpHeader]
    }
}

/// Which HTTP to speak (`CURL_HTTP_VERSION_*`).
package enum HTTPVersion: Int, Sendable {
    /// libcurl's choice: HTTP/2 over TLS where the server offers it.
    case automatic = 0
    /// HTTP/1.0.
    case http10 = 1
    /// HTTP/1.1.
    case http11 = 2
    /// HTTP/2, over plain connections by upgrade.
    case http2 = 3
    /// HTTP/2 over TLS, HTTP/1.1 else.
    case http2OverTLS = 4
    /// HTTP/2 also over plain connections, without asking.
    case http2PriorKnowledge = 5
}

/// The lowest version of TLS (`CURL_SSLVERSION_*`).
package enum TLSVersion: Int, Sendable {
    /// TLS 1.2 or later.
    case tls12 = 6
    /// TLS 1.3 or later.
    case tls13 = 7

    /// The same for `sslVersion`, with the latest one named that TLS itself would take (`CURL_SSLVERSION_MAX_DEFAULT`).
    package var upToLatest: Int { rawValue | 1 << 16 }
}
