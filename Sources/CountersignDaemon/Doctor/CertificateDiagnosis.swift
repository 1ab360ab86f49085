// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import Settings

/// Diagnosis of a TLS handshake and its certificates.
struct CertificateDiagnosis {
    /// Remaining days at which a certificate should be renewed.
    private static let renewalDays: Int64 = 14

    let part: String
    /// The configured pins.
    let pins: [String]
    let now: Int64

    /// Returns the diagnosis of the handshake, then of each certificate of the chain.
    func diagnoses(of probe: ConnectionProbe, chain: [ShownCertificate]) -> [Diagnosis] {
        var found: [Diagnosis] = []
        if let failure = probe.failure {
            let cause = failure.cause.isEmpty ? "" : " (\(failure.cause))"
            found.append(
                .failed(
                    part, "tls", "\(failure.words)\(cause)",
                    failure.remedy.isEmpty ? "see the certificates below" : failure.remedy))
        } else {
            found.append(.good(part, "tls", "the chain is trusted, and the name matches"))
        }
        for (index, certificate) in chain.enumerated() {
            found.append(diagnosis(of: certificate, isServers: index == 0))
        }
        return found
    }

    private func diagnosis(of certificate: ShownCertificate, isServers: Bool) -> Diagnosis {
        let check = isServers ? "certificate" : "issuer"
        let names = certificate.names.isEmpty ? "" : ", for \(certificate.names.joined(separator: ", "))"
        var detail = "\(certificate.subject)\(names), by \(certificate.issuer)"
        guard let facts = CertificateFacts(pem: certificate.pem) else { return .note(part, check, detail) }
        detail += ", \(Moment.text(facts.begin)) to \(Moment.text(facts.end))"
        let pin = pin(of: facts)
        if isServers { detail += ", \(pin)" }
        let days = (facts.end - now) / 86_400_000
        if now >= facts.end {
            let days = (now - facts.end) / 86_400_000
            return .failed(
                part, check, "\(detail): expired \(days) day\(days == 1 ? "" : "s") ago", "renew the certificate")
        }
        if now < facts.begin {
            return .failed(part, check, "\(detail): not valid yet", "compare the clocks, or replace the certificate")
        }
        if isServers, !pins.isEmpty, !pins.contains(pin) {
            return .failed(
                part, check, "\(detail): its key matches no `tls.pin`",
                "if the key was changed on purpose, set tls.pin: \(pin)", code: EX_CONFIG)
        }
        detail += ": \(days) days left"
        return days < Self.renewalDays
            ? .warning(part, check, detail, "renew the certificate in time") : .good(part, check, detail)
    }

    private func pin(of facts: CertificateFacts) -> String {
        "sha256//\(Base64.encode(CryptoDigests().digest(.sha256, of: facts.publicKey)))"
    }
}
