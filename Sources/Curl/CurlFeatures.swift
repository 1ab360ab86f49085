// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// What the installed libcurl is and can do. `countersign check` prints it; the daemon does not start on less than
/// `minimumVersion`.
package struct CurlFeatures: Sendable, Equatable {
    /// Something a libcurl may have been built without.
    package enum Feature: String, Sendable, CaseIterable {
        /// Names are resolved without stopping the thread.
        case asynchronousDNS = "AsynchDNS"
        /// The content coding `br`.
        case brotli
        /// Tickets for Negotiate.
        case gssAPI = "GSS-API"
        /// HTTP/2.
        case http2 = "HTTP2"
        /// The scheme NTLM.
        case ntlm = "NTLM"
        /// The scheme Negotiate.
        case spnego = "SPNEGO"
        /// TLS, hence `https`.
        case tls = "SSL"
        /// `curl_global_init` may be called from any thread.
        case threadsafe
        /// `ws` and `wss`.
        case webSockets = "WebSockets"
        /// The content coding `zstd`.
        case zstd
    }

    /// `7.88.1`.
    package var version: String
    /// `0x075801`: eight bits each of major, minor and patch.
    package var versionNumber: UInt32
    /// `OpenSSL/3.0.19`, or nothing without TLS.
    package var tlsLibrary: String
    /// The schemes of the URLs that it knows.
    package var protocols: [String]
    /// What it was built with.
    package var features: Set<Feature>

    /// 7.88.0, of Debian 12. Newer functions are not used; older libraries lack some that are.
    package static let minimumVersion: UInt32 = 0x07_58_00

    /// What is needed whatever the configuration says.
    package static let required: Set<Feature> = [.asynchronousDNS, .tls]

    /// The library that this process runs with.
    package static let installed = CurlFeatures()

    /// A description of some library.
    package init(
        version: String, versionNumber: UInt32, tlsLibrary: String, protocols: [String], features: Set<Feature>
    ) {
        self.version = version
        self.versionNumber = versionNumber
        self.tlsLibrary = tlsLibrary
        self.protocols = protocols
        self.features = features
    }

    /// Sentences on what is missing of what is needed always and of `wanted`; none if all is there.
    package func missing(_ wanted: Set<Feature> = []) -> [String] {
        var sentences: [String] = []
        if versionNumber < Self.minimumVersion {
            sentences.append("libcurl \(version) is too old: install 7.88.0 or later (package libcurl4).")
        }
        for scheme in ["http", "https"] where !protocols.contains(scheme) {
            sentences.append("libcurl \(version) was built without \(scheme): install libcurl4 of the distribution.")
        }
        for feature in Feature.allCases
        where Self.required.union(wanted).contains(feature) && !features.contains(feature) {
            sentences.append("libcurl \(version) was built without \(feature.rawValue): install one that has it.")
        }
        return sentences
    }

    /// One line: `libcurl 7.88.1 (OpenSSL/3.0.19) with AsynchDNS, HTTP2, …; without WebSockets`.
    package var summary: String {
        let present = Feature.allCases.filter { features.contains($0) }.map(\.rawValue)
        let absent = Feature.allCases.filter { !features.contains($0) }.map(\.rawValue)
        var line = "libcurl \(version)"
        if !tlsLibrary.isEmpty { line += " (\(tlsLibrary))" }
        if !present.isEmpty { line += " with \(present.joined(separator: ", "))" }
        if !absent.isEmpty { line += "; without \(absent.joined(separator: ", "))" }
        return line
    }

    private init() {
        version = ""
        versionNumber = 0
        tlsLibrary = ""
        protocols = []
        features = []
        // All that is read here was there in the first version of the struct.
        guard let info = unsafe curl_version_info(CURLVERSION_FIRST) else { return }
        version = unsafe text(info.pointee.version)
        versionNumber = unsafe info.pointee.version_num
        tlsLibrary = unsafe text(info.pointee.ssl_version)
        var next = unsafe info.pointee.protocols
        while let list = unsafe next, let name = unsafe list.pointee {
            protocols.append(unsafe String(cString: name))
            unsafe next = list + 1
        }
        let bits = unsafe info.pointee.features
        for (feature, bit) in featureBits where bits & bit != 0 { features.insert(feature) }
        if protocols.contains("ws") { features.insert(.webSockets) }
    }
}

/// The bits of `curl_version_info`. Their names in `feature_names` came with 7.87; the bits are in every version.
private let featureBits: [(CurlFeatures.Feature, Int32)] = [
    (.asynchronousDNS, CURL_VERSION_ASYNCHDNS), (.brotli, CURL_VERSION_BROTLI), (.gssAPI, CURL_VERSION_GSSAPI),
    (.http2, CURL_VERSION_HTTP2), (.ntlm, CURL_VERSION_NTLM), (.spnego, CURL_VERSION_SPNEGO),
    (.tls, CURL_VERSION_SSL), (.threadsafe, CURL_VERSION_THREADSAFE), (.zstd, CURL_VERSION_ZSTD),
]

private func text(_ start: UnsafePointer<CChar>?) -> String {
    unsafe start.map { unsafe String(cString: $0) } ?? ""
}
