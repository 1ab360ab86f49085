// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
import HTTPTypes
import Secrets
package import SettingsReading
import Synchronization

/// `sundial`: a kind of challenge that no server speaks. It is what the program has to know of a kind, and nothing besides this folder and
/// one line of the list of kinds knows it.
///
/// A server says `WWW-Authenticate: Sundial dial="NAME", gnomon="HEIGHT"`. The answer counts the requests on a gnomon:
/// `X-Shadow: HEIGHT COUNT LATITUDE METHOD URL VIA SHADOW`, where VIA is that field of the request as it goes out, and SHADOW the
/// credential's field `shadow`.
package struct Sundial: ChallengeKind {
    /// The dial's name, as in the server's challenge.
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

    /// Returns true if both are about one dial, which has one shadow.
    package func conflicts(with other: Sundial) -> Bool { dial == other.dial }

    /// Both.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("sundial", dial)
        terms.add("latitude", "\(latitude)")
    }

    /// Returns the login that casts the shadow.
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

/// Tells the challenge of one dial.
struct SundialDetector: ChallengeDetector {
    let dial: String

    var kind: String { "sundial" }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        response.status == 401 && gnomon(in: response, of: dial) != nil ? .challenged() : .pass
    }
}

/// Returns the height of the gnomon that a response names for a dial.
private func gnomon(in response: ExaminedResponse, of dial: String) -> String? {
    let challenges = ChallengeList(in: response.fields).challenges
    return challenges.first { $0.isScheme("Sundial") && $0["dial"] == dial }?["gnomon"]
}

/// Casts a shadow on a gnomon.
struct SundialLogin: SessionLogin {
    let key: LatchKey
    let dial: String
    let latitude: Int
    let challenge: ExaminedResponse?
    let retryRejectedAfter: Duration?

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard let challenge, let gnomon = gnomon(in: challenge, of: dial) else {
            throw LoginFailure(.failed, challenge: key.challenge, detail: "There is no gnomon to cast a shadow.")
        }
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        guard let shadow = use.credential["shadow"] else {
            throw LoginFailure(
                .noCredential, challenge: key.challenge, detail: "The credential \(key.credential) has no `shadow`.")
        }
        return Session(unverified: use, signer: SundialSigner(gnomon, latitude, shadow))
    }
}

/// Counts the requests on one gnomon.
final class SundialSigner: RequestSigner {
    private let gnomon: String
    private let latitude: Int
    private let shadow: Secret
    private let count: Atomic<Int>

    init(_ gnomon: String, _ latitude: Int, _ shadow: Secret, count: Int = 0) {
        self.gnomon = gnomon
        self.latitude = latitude
        self.shadow = shadow
        self.count = Atomic(count)
    }

    /// Creates the signer that `image` was taken of.
    convenience init?(_ image: SignerImage, _ latitude: Int, _ credential: Credential) {
        let words = image.bytes.revealText().split(separator: " ")
        guard words.count == 3, words[0] == "SUNDIAL", let count = Int(words[2]), let shadow = credential["shadow"]
        else { return nil }
        self.init(String(words[1]), latitude, shadow, count: count)
    }

    var image: SignerImage? {
        SignerImage(Secret("SUNDIAL \(gnomon) \(count.load(ordering: .relaxed))"))
    }

    private static let field = HTTPField.Name("X-Shadow")

    var names: [HTTPField.Name] { [Self.field].compactMap(\.self) }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        let number = count.add(1, ordering: .relaxed).newValue
        let via = request.fields?.values(of: .via).joined(separator: ", ") ?? ""
        let text = Secret(
            "\(gnomon) \(number) \(latitude) \(request.method) \(request.origin)\(request.target) \(via) ")
        return SignedFields(names.map { InjectedField(name: $0, value: .joining([text, shadow])) })
    }

    func learn(status: Int, fields: HTTPFields, target: String) {}
}
