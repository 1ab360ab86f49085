// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Option of a transfer, with its value type. Only options in use are declared.
package struct EasyOption<Value>: Sendable {
    let id: CURLoption

    fileprivate init(_ id: CURLoption) {
        self.id = id
    }
}

/// Options of type `long` with values 0 and 1.
extension EasyOption<Bool> {
    /// Negotiate the protocol by ALPN (default).
    package static var alpn: Self { Self(CURLOPT_SSL_ENABLE_ALPN) }
    /// Keep the server's certificate details; see `EasyHandle.shownCertificates`.
    package static var certificateInfo: Self { Self(CURLOPT_CERTINFO) }
    /// Never reuse a connection.
    package static var freshConnect: Self { Self(CURLOPT_FRESH_CONNECT) }
    /// Close the connection after the transfer.
    package static var forbidReuse: Self { Self(CURLOPT_FORBID_REUSE) }
    /// GET; resets `post`, `upload` and `noBody`.
    package static var httpGet: Self { Self(CURLOPT_HTTPGET) }
    /// Use CONNECT through a proxy, also for `http`.
    package static var httpProxyTunnel: Self { Self(CURLOPT_HTTPPROXYTUNNEL) }
    /// Decode the content codings requested by `acceptEncoding`.
    package static var httpContentDecoding: Self { Self(CURLOPT_HTTP_CONTENT_DECODING) }
    /// Decode the chunks of a response (default); otherwise they are delivered as received.
    package static var httpTransferDecoding: Self { Self(CURLOPT_HTTP_TRANSFER_DECODING) }
    /// HEAD, or no response body with any other method.
    package static var noBody: Self { Self(CURLOPT_NOBODY) }
    /// Wait for a connection that may turn out to carry several transfers.
    package static var pipeWait: Self { Self(CURLOPT_PIPEWAIT) }
    /// POST, with the body from the delegate.
    package static var post: Self { Self(CURLOPT_POST) }
    /// Verify the certificate chain (default).
    package static var sslVerifyPeer: Self { Self(CURLOPT_SSL_VERIFYPEER) }
    /// Send TCP keep-alive probes.
    package static var tcpKeepAlive: Self { Self(CURLOPT_TCP_KEEPALIVE) }
    /// PUT, with the body from the delegate; `customRequest` sets another method.
    package static var upload: Self { Self(CURLOPT_UPLOAD) }
    /// Print the conversation to standard error, including secrets; for debugging only.
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

    /// Stop when the connection is established; see `EasyHandle.connectOnly`.
    static var connectOnly: Self { Self(CURLOPT_CONNECT_ONLY) }

    // Set once for every handle.
    static var disallowUsername: Self { Self(CURLOPT_DISALLOW_USERNAME_IN_URL) }
    static var followLocation: Self { Self(CURLOPT_FOLLOWLOCATION) }
    static var http09: Self { Self(CURLOPT_HTTP09_ALLOWED) }
    static var noProgress: Self { Self(CURLOPT_NOPROGRESS) }
    static var noSignal: Self { Self(CURLOPT_NOSIGNAL) }
    static var pathAsIs: Self { Self(CURLOPT_PATH_AS_IS) }
    static var suppressConnectHeaders: Self { Self(CURLOPT_SUPPRESS_CONNECT_HEADERS) }
    static var tcpNoDelay: Self { Self(CURLOPT_TCP_NODELAY) }
}

/// Options of type `long`.
extension EasyOption<Int> {
    /// Size of the buffer for response data, in bytes.
    package static var bufferSize: Self { Self(CURLOPT_BUFFERSIZE) }
    /// Lifetime of cached DNS results in seconds; -1 is unlimited.
    package static var dnsCacheTimeout: Self { Self(CURLOPT_DNS_CACHE_TIMEOUT) }
    /// Schemes with which libcurl may answer a 401: `CURLAUTH_*` bits.
    package static var httpAuth: Self { Self(CURLOPT_HTTPAUTH) }
    /// HTTP version: a raw value of `HTTPVersion`.
    package static var httpVersion: Self { Self(CURLOPT_HTTP_VERSION) }
    /// Maximum idle time of a reused connection in seconds.
    package static var maxIdleAge: Self { Self(CURLOPT_MAXAGE_CONN) }
    /// Schemes with which libcurl may authenticate to a proxy: `CURLAUTH_*` bits.
    package static var proxyAuth: Self { Self(CURLOPT_PROXYAUTH) }
    /// Minimum TLS version (`CURL_SSLVERSION_*`).
    package static var sslVersion: Self { Self(CURLOPT_SSLVERSION) }
    /// 2 checks the certificate's host name (default); 0 accepts any name.
    package static var sslVerifyHost: Self { Self(CURLOPT_SSL_VERIFYHOST) }
    /// Size of the buffer for a request's body, in bytes.
    package static var uploadBufferSize: Self { Self(CURLOPT_UPLOAD_BUFFERSIZE) }

    static var all: [Self] {
        [
            .bufferSize, .dnsCacheTimeout, .httpAuth, .httpVersion, .maxIdleAge, .proxyAuth, .sslVersion,
            .sslVerifyHost,
            .uploadBufferSize,
        ]
    }
}

/// Options of type `curl_off_t`.
extension EasyOption<Int64> {
    /// Body size for `upload`; -1 is unknown, hence chunked.
    package static var bodySize: Self { Self(CURLOPT_INFILESIZE_LARGE) }
    /// Body size for `post`; -1 is unknown.
    package static var postSize: Self { Self(CURLOPT_POSTFIELDSIZE_LARGE) }

    static var all: [Self] {
        [.bodySize, .postSize]
    }
}

/// Options of type `long`, in milliseconds.
extension EasyOption<Duration> {
    /// Limit for name resolution, connection and TLS handshake together; zero is libcurl's 300 s.
    package static var connectTimeout: Self { Self(CURLOPT_CONNECTTIMEOUT_MS) }
    /// Time to wait for `100 Continue` before sending the body anyway.
    package static var expect100Timeout: Self { Self(CURLOPT_EXPECT_100_TIMEOUT_MS) }
    /// Limit for the whole transfer; zero is unlimited.
    package static var timeout: Self { Self(CURLOPT_TIMEOUT_MS) }

    static var all: [Self] {
        [.connectTimeout, .expect100Timeout, .timeout]
    }
}

/// String options, which libcurl copies.
extension EasyOption<String> {
    /// Content codings to request and decode; empty requests all that libcurl supports. Default: none.
    package static var acceptEncoding: Self { Self(CURLOPT_ACCEPT_ENCODING) }
    /// CA file used instead of the system's.
    package static var caFile: Self { Self(CURLOPT_CAINFO) }
    /// Folder of CA files, by hash. Its default remains in use next to a file.
    package static var caFolder: Self { Self(CURLOPT_CAPATH) }
    /// Hosts reached without the proxy. Default here: empty, regardless of the environment.
    package static var noProxy: Self { Self(CURLOPT_NOPROXY) }
    /// Password for schemes that libcurl answers.
    package static var password: Self { Self(CURLOPT_PASSWORD) }
    /// Pins for the server's public key: `sha256//…` or a file.
    package static var pinnedPublicKey: Self { Self(CURLOPT_PINNEDPUBLICKEY) }
    /// Proxy URL. Default here: empty, hence no proxy, regardless of the environment.
    package static var proxy: Self { Self(CURLOPT_PROXY) }
    /// Password for the proxy.
    package static var proxyPassword: Self { Self(CURLOPT_PROXYPASSWORD) }
    /// User name for the proxy.
    package static var proxyUserName: Self { Self(CURLOPT_PROXYUSERNAME) }
    /// Service name of the principal for which Negotiate requests a ticket.
    package static var serviceName: Self { Self(CURLOPT_SERVICE_NAME) }
    /// File of the client certificate.
    package static var sslCertificate: Self { Self(CURLOPT_SSLCERT) }
    /// File of the private key.
    package static var sslKey: Self { Self(CURLOPT_SSLKEY) }
    /// Unix socket to connect to instead of the URL's host.
    package static var unixSocketPath: Self { Self(CURLOPT_UNIX_SOCKET_PATH) }
    /// URL of the transfer.
    package static var url: Self { Self(CURLOPT_URL) }
    /// User name for schemes that libcurl answers.
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

    // Parts of the request line, which libcurl sends unchecked: set by `setMethod` and `setTarget`.
    static var customRequest: Self { Self(CURLOPT_CUSTOMREQUEST) }
    static var requestTarget: Self { Self(CURLOPT_REQUEST_TARGET) }

    // Set once for every handle.
    static var protocols: Self { Self(CURLOPT_PROTOCOLS_STR) }
    static var redirectProtocols: Self { Self(CURLOPT_REDIR_PROTOCOLS_STR) }
}

/// Options of type bytes, which libcurl reads in place.
extension EasyOption<Blob> {
    /// CA certificates used instead of the system's, in PEM; replaces `caFile`.
    package static var authorities: Self { Self(CURLOPT_CAINFO_BLOB) }
    /// Client certificate with its intermediate certificates, in PEM.
    package static var certificate: Self { Self(CURLOPT_SSLCERT_BLOB) }
    /// Private key, in PEM.
    package static var key: Self { Self(CURLOPT_SSLKEY_BLOB) }

    static var all: [Self] {
        [.authorities, .certificate, .key]
    }
}

/// Options of type list of lines.
extension EasyOption<HeaderList> {
    /// Fields of the request.
    package static var httpHeader: Self { Self(CURLOPT_HTTPHEADER) }

    static var all: [Self] {
        [.httpHeader]
    }
}

/// HTTP version to use (`CURL_HTTP_VERSION_*`).
package enum HTTPVersion: Int, Sendable {
    /// libcurl's choice: HTTP/2 over TLS if the server offers it.
    case automatic = 0
    /// HTTP/1.0.
    case http10 = 1
    /// HTTP/1.1.
    case http11 = 2
    /// HTTP/2, by upgrade on plaintext connections.
    case http2 = 3
    /// HTTP/2 over TLS, otherwise HTTP/1.1.
    case http2OverTLS = 4
    /// HTTP/2 without negotiation, also on plaintext connections.
    case http2PriorKnowledge = 5
}

/// All declared options, for comparison with the installed libcurl.
package enum OptionCatalog {
    /// Types of option arguments.
    package enum Kind: Sendable {
        /// `struct curl_blob *`.
        case blob
        /// `struct curl_slist *`.
        case list
        /// `long`.
        case long
        /// `curl_off_t`.
        case offset
        /// `char *`.
        case string
    }

    /// Option numbers (`CURLoption`) with their assumed types.
    package static var entries: [(id: UInt32, kind: Kind)] {
        EasyOption<Bool>.all.map { ($0.id.rawValue, .long) } + EasyOption<Int>.all.map { ($0.id.rawValue, .long) }
            + EasyOption<Duration>.all.map { ($0.id.rawValue, .long) }
            + EasyOption<Int64>.all.map { ($0.id.rawValue, .offset) }
            + EasyOption<String>.all.map { ($0.id.rawValue, .string) }
            + EasyOption<Blob>.all.map { ($0.id.rawValue, .blob) }
            + EasyOption<HeaderList>.all.map { ($0.id.rawValue, .list) }
    }

    /// Returns a sentence if the installed libcurl lacks the option or declares another type.
    package static func mismatch(id: UInt32, kind: Kind) -> String? {
        guard let option = unsafe curl_easy_option_by_id(CURLoption(rawValue: id)) else {
            return "libcurl \(CurlFeatures.installed.version) has no option \(id)."
        }
        let type = unsafe option.pointee.type
        let agrees =
            switch kind {
            case .blob: type == CURLOT_BLOB
            case .list: type == CURLOT_SLIST
            case .long: type == CURLOT_LONG || type == CURLOT_VALUES
            case .offset: type == CURLOT_OFF_T
            case .string: type == CURLOT_STRING
            }
        return agrees ? nil : unsafe "CURLOPT_\(String(cString: option.pointee.name)) is not of type \(kind)."
    }
}
