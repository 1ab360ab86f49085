// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling
@testable import Credentials

/// Fields of a request in a test, in order.
final class SentFields: SigningFields {
    private let fields: [(name: [UInt8], value: [UInt8])]

    init(_ fields: KeyValuePairs<String, String>) {
        self.fields = fields.map { (Array($0.key.utf8), Array($0.value.utf8)) }
    }

    func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        for field in fields { body(field.name.span, field.value.span) }
    }
}

extension SigningRequest {
    /// Returns a request whose body was read in the form that `signer` needs.
    static func sent(
        _ method: String = "GET", _ target: String = "/", _ fields: KeyValuePairs<String, String> = [:],
        body: String? = nil, at now: Int64, to signer: any RequestSigner, scheme: Origin.Scheme = .https,
        host: String = "example.amazonaws.com"
    ) -> SigningRequest {
        var read = Body.none
        if let body {
            let reader = signer.bodyReader(for: target)
            reader?.update(Array(body.utf8)[...])
            read = reader.map { .read([BodyReading($0.form, $0.finish())]) } ?? .unread
        }
        return SigningRequest(
            method: method, origin: Origin(scheme: scheme, host: host), target: target, body: read, now: now,
            fields: SentFields(fields))
    }
}

extension SignedFields {
    /// Returns the value of a field, or nil.
    func value(_ name: String) -> String? {
        fields.first { $0.name.rawName.lowercased() == name.lowercased() }?.value.revealText()
    }

    /// The end of `Authorization`, from the last equals sign.
    var signature: String? { value("Authorization")?.split(separator: "=").last.map(String.init) }
}
