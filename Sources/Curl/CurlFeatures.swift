// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Version and capabilities of the installed libcurl.
///
/// `countersign check` prints them, and the daemon does not start with less than `minimumVersion`.
package struct CurlFeatures: Sendable, Equatable {
    /// Optional feature of a libcurl build.
    package enum Feature: String, Sendable, CaseIterable {
        /// Name resolution that does not block the thread.
        case asynchronousDNS = "AsynchDNS"
        /// Content coding `br`.
        case brotli
        /// Tickets for Negotiate.
        case gssAPI = "GSS-API"
        /// HTTP/2.
        case http2 = "HTTP2"
        /// Authentication scheme NTLM.
        case ntlm = "NTLM"
        /// Authentication scheme Negotiate.
        case spnego = "SPNEGO"
        /// TLS, for `https`.
        case tls = "SSL"
        /// `curl_global_init` that may be called from any thread.
        case threadsafe
        /// URL schemes `ws` and `wss`.
        case webSockets = "WebSockets"
        /// Content coding `zstd`.
        case zstd
    }

    /// Version, such as `7.88.1`.
    package var version: String
    /// Version number, such as `0x075801`: eight bits each of major, minor and patch.
    package var versionNumber: UInt32
    /// TLS library, such as `OpenSSL/3.0.19`; empty without TLS.
    package var tlsLibrary: String
    /// Supported URL schemes.
    package var protocols: [String]
    /// Available features.
    package var features: Set<Feature>

    /// Version 7.88.0, in Debian 12. No newer function is used, and older libraries lack some that are.
    package static let minimumVersion: UInt32 = 0x07_58_00

    /// Features required by every configuration.
    package static let required: Set<Feature> = [.asynchronousDNS, .tls]

    /// Library loaded in this process.
    package static let installed = CurlFeatures()

    /// Creates a description of any library.
    package init(
        version: String, versionNumber: UInt32, tlsLibrary: String, protocols: [String], features: Set<Feature>
    ) {
        self.version = version
        self.versionNumber = versionNumber
        self.tlsLibrary = tlsLibrary
        self.protocols = protocols
        self.features = features
    }

    /// Returns a sentence for each required or `wanted` feature that is missing.
    package func missing(_ wanted: Set<Feature> = []) -> [String] {
        var sentences: [String] = []
        if versionNumber < Self.minimumVersion {
            sentences.append("libcurl \(version) is too old: install 7.88.0 or later (package libcurl4).")
        }
        for scheme in ["http", "https"] where !protocols.contains(scheme) {
            sentences.append("libcurl \(version) was built without \(scheme): install the distribution's libcurl4.")
        }
        for feature in Feature.allCases
        where Self.required.union(wanted).contains(feature) && !features.contains(feature) {
            sentences.append("libcurl \(version) was built without \(feature.rawValue): install a libcurl that has it.")
        }
        return sentences
    }

    /// Summary in one line: `libcurl 7.88.1 (OpenSSL/3.0.19) with AsynchDNS, HTTP2, …; without WebSockets`.
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
        // Everything read here has existed since the first version of the struct.
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

/// Bits of `curl_version_info`. Their names in `feature_names` appeared in 7.87; the bits exist in every version.
private let featureBits: [(CurlFeatures.Feature, Int32)] = [
    (.asynchronousDNS, CURL_VERSION_ASYNCHDNS), (.brotli, CURL_VERSION_BROTLI), (.gssAPI, CURL_VERSION_GSSAPI),
    (.http2, CURL_VERSION_HTTP2), (.ntlm, CURL_VERSION_NTLM), (.spnego, CURL_VERSION_SPNEGO),
    (.tls, CURL_VERSION_SSL), (.threadsafe, CURL_VERSION_THREADSAFE), (.zstd, CURL_VERSION_ZSTD),
]

private func text(_ start: UnsafePointer<CChar>?) -> String {
    unsafe start.map { unsafe String(cString: $0) } ?? ""
}
