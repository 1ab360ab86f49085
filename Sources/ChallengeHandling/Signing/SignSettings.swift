// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of `sign`: a signature that is added to each request, made with a secret of the credential.
package struct SignSettings: ChallengeKind {
    /// Kind of signature, with its settings.
    package var signature: any SignatureKind

    /// Creates settings with this signature.
    package init(_ signature: any SignatureKind) { self.signature = signature }

    private static let signKey = Key(
        required: "sign", .fields(of: section), "Signature that is added to each request.")

    /// Table of `challenges.sign`.
    package static let section = KeySection("challenges.sign", SignatureKinds.all.flatMap { $0.keys })

    /// The signature.
    package static let keys: [any SchemaKey] = [signKey]

    /// Reads the signature of the one kind that the written keys name.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> SignSettings? {
        guard let sign = fields[signKey] else { return nil }
        let written = SignatureKinds.all.filter { sign.has($0.key) }
        guard let kind = written.first, written.count == 1 else {
            let names = (written.isEmpty ? SignatureKinds.all : written).map { "`\($0.key)`" }.joined(separator: ", ")
            sign.value.report(
                written.isEmpty
                    ? "has no kind of signature: add one of \(names)"
                    : "has several kinds of signatures: \(names); write one challenge for each")
            return nil
        }
        let own = Set(kind.keys.map(\.name))
        for other in SignatureKinds.all where other.key != kind.key {
            for key in other.keys where !own.contains(key.name) {
                sign.written(named: key.name)?.report("belongs to `\(other.key)`, not to `\(kind.key)`")
            }
        }
        return kind.read(sign, context).map(SignSettings.init)
    }

    /// True: a signature proves the knowledge of a secret.
    package var needsCredential: Bool { true }

    /// Fields of the signature.
    package var neededFields: Set<String> { signature.neededFields }

    /// Fields that every signature needs.
    package var requiredFields: Set<String> { signature.requiredFields }

    /// Addresses of the signature's login.
    package var loginAddresses: [(url: WebURL, key: String)] { signature.loginAddresses }

    /// Returns whether both would sign the same requests in the same way.
    package func conflicts(with other: SignSettings) -> Bool { signature.isInConflict(with: other.signature) }

    /// Adds the signature's settings.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("sign", type(of: signature).key)
        signature.add(to: &terms)
    }

    /// Returns an authenticator that signs requests.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let key = SessionKey(origin: site.upstream.url.origin, challenge: challenge.name, credential: credential)
        return signature.authenticator(of: challenge, key, at: site)
    }
}

extension SignSettings: Equatable {
    /// Returns whether all settings are equal.
    package static func == (left: SignSettings, right: SignSettings) -> Bool {
        left.signature.isEqual(to: right.signature)
    }
}
