// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import SettingsReading

/// `sundial`: a kind of challenge that no server speaks. It is what the program has to know of a kind, and nothing besides this folder and
/// one line of the list of kinds knows it.
///
/// A server says `WWW-Authenticate: Sundial dial="NAME", gnomon="HEIGHT"`. The answer counts the requests on a gnomon:
/// `X-Shadow: HEIGHT COUNT LATITUDE METHOD URL VIA SHADOW`, where VIA is that field of the request as it goes out, and SHADOW the
/// credential's field `shadow`.
package struct Sundial: ChallengeKind {
    /// The dial's name, as the server says it.
    package var dial: String
    /// The latitude of the dial, in whole degrees.
    package var latitude: Int

    private static let dialKey = Key(required: "sundial", .word, "The name of the dial.")
    private static let latitudeKey = Key(required: "latitude", .integer(in: 0...90), "The latitude of the dial.")

    /// The dial, and its place.
    package static let keys: [any SchemaKey] = [dialKey, latitudeKey]

    /// Reads both.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> Sundial? {
        let dial = fields[dialKey]
        let latitude = fields[latitudeKey]
        guard let dial, let latitude else { return nil }
        return Sundial(dial: dial, latitude: latitude)
    }

    /// No shadow without one.
    package var needsCredential: Bool { true }

    /// The shadow.
    package var neededFields: Set<String> { ["shadow"] }

    /// A dial has one shadow.
    package func conflicts(with other: Sundial) -> Bool { dial == other.dial }

    /// Both.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("sundial", dial)
        terms.add("latitude", "\(latitude)")
    }

    /// The login that casts the shadow.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let (origin, dial, latitude) = (site.upstream.url.origin, dial, latitude)
        let key = LatchKey(origin: origin, challenge: challenge.name, credential: credential)
        let retry = challenge.retryRejected
        return Authenticator(
            name: challenge.name, trigger: .detected(SundialDetector(dial: dial)), isAhead: false,
            isKept: challenge.login == .atStart,
            key: SessionKey(origin: origin, challenge: challenge.name, credential: credential),
            credentials: [credential],
            codec: SignerCodec { SundialSigner($0, latitude, $1) },
            makeLogin: {
                SundialLogin(
                    key: key, dial: dial, latitude: latitude, challenge: $0.challenge, retryRejectedAfter: retry)
            })
    }
}
