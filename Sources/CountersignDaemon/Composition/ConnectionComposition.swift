// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import Secrets
internal import Settings

extension ConnectionSettings {
    /// How connections to `upstream` are made. Throws where a file of `tls` cannot be used, with its key.
    init(_ upstream: UpstreamSettings) throws(CompositionError) {
        self.init()
        version =
            switch upstream.http {
            case .automatic: .auto
            case .http1: .http1
            case .http2: .http2
            }
        minimum =
            switch upstream.tls.minimum {
            case .tls12: .tls12
            case .tls13: .tls13
            }
        do {
            let material = try TLSMaterial(upstream.tls)
            authorities = material.authorities.map { Blob($0.span) }
            certificate = material.certificate.map { Blob($0.span) }
            key = material.key.map { $0.withBytes { Blob($0) } }
        } catch {
            throw CompositionError("upstreams.\(upstream.name).tls.\(error.key): \(error.reason)")
        }
        pin = upstream.tls.pins.isEmpty ? nil : upstream.tls.pins.joined(separator: ";")
        proxy = upstream.proxy?.url
        allowsPlaintext = upstream.plaintext == .allow
    }
}
