// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization

/// Tells the challenge of one dial.
struct SundialDetector: ChallengeDetector {
    let dial: String

    var kind: String { "sundial" }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        response.status == 401 && gnomon(in: response, of: dial) != nil ? .challenged() : .pass
    }
}

/// The height of the gnomon that a response names for a dial.
private func gnomon(in response: ExaminedResponse, of dial: String) -> String? {
    let challenges = (try? AuthenticationChallenge.parse(response.fields[values: .wwwAuthenticate])) ?? []
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

    /// The signer that `image` was taken of.
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
