// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import Secrets
internal import Settings

extension ConnectionSettings {
    /// The settings of connections to `upstream`. Throws where a file of `tls` cannot be used, with its key.
    init(_ upstream: UpstreamSettings) throws(CompositionError) {
        self.init()
        version =
            switch upstream.http {
            case .automatic: .auto
            case .http1: .http1
            case .http2: .http2
            }
        try secure(upstream.tls, key: "upstreams.\(upstream.name).tls")
        proxy = upstream.proxy?.url
        allowsPlaintext = upstream.plaintext == .allow
    }

    /// The settings of connections that only TLS matters to. `key`: where `tls` stands in the configuration.
    init(_ tls: TLSSettings, key: String) throws(CompositionError) {
        self.init()
        try secure(tls, key: key)
    }

    private mutating func secure(_ tls: TLSSettings, key name: String) throws(CompositionError) {
        minimum =
            switch tls.minimum {
            case .tls12: .tls12
            case .tls13: .tls13
            }
        do {
            let material = try TLSMaterial(tls)
            authorities = material.authorities.map { Blob($0.span) }
            certificate = material.certificate.map { Blob($0.span) }
            key = material.key.map { $0.withBytes { Blob($0) } }
        } catch {
            throw CompositionError("\(name).\(error.key): \(error.reason)")
        }
        pin = tls.pins.isEmpty ? nil : tls.pins.joined(separator: ";")
    }
}
