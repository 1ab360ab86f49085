// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Synchronization

/// Last demand of a server's `Accept-Signature`, shared by the logins of one challenge.
final class RequestedSignatures: Sendable {
    /// Maximum number of unused nonces that are kept.
    static let mostNonces = 256

    private struct State {
        var plan: MessagePlan?
        var keyID: AcceptSignature.KeyIdentifier
        var nonces: [(path: String, value: String)] = []
    }

    private let state: Mutex<State>

    /// Creates the record of a challenge before the first login.
    init(keyID: AcceptSignature.KeyIdentifier = .unknown) { state = Mutex(State(keyID: keyID)) }

    /// Signature that the server asked for last; nil before the first demand.
    var plan: MessagePlan? { state.withLock { $0.plan } }

    /// Value of `keyid` of the signatures.
    var keyID: AcceptSignature.KeyIdentifier {
        get { state.withLock { $0.keyID } }
        set { state.withLock { $0.keyID = newValue } }
    }

    /// Records a server's demand at `path`. Its nonce is for one request, the one that is sent again.
    func record(_ answer: AcceptSignature.Answer, at path: String) {
        state.withLock { state in
            state.plan = answer.plan
            guard let nonce = answer.nonce else { return }
            if state.nonces.count >= Self.mostNonces { state.nonces.removeFirst() }
            state.nonces.append((Self.place(path), nonce))
        }
    }

    /// Returns the newest nonce for a request of `path`, which is not returned again; nil if all are used.
    ///
    /// A nonce of another path is left to the request that got it and will be sent again.
    func takeNonce(at path: String) -> String? {
        let place = Self.place(path)
        return state.withLock { state in
            guard let index = state.nonces.lastIndex(where: { $0.path == place }) else { return nil }
            return state.nonces.remove(at: index).value
        }
    }

    private static func place(_ path: String) -> String { String(decoding: path.utf8.prefix(256), as: UTF8.self) }
}

/// Detector of responses that ask for a signature (RFC 9421 §5.1).
struct MessageDetector: ChallengeDetector {
    let settings: MessageSignature
    let requests: RequestedSignatures

    private static let statuses = [401, 403, 429]

    /// `signature`.
    var kind: String { "message signature" }

    /// Responses with 401, 403 and 429.
    var filter: ResponseFilter { ResponseFilter([ResponseMatcher(statuses: Self.statuses)]) }

    /// Returns the field that asks for a signature.
    func sign(of response: ExaminedResponse) -> String? { "Accept-Signature" }

    /// Returns `challenged` if the server asks for a signature that can be made, and keeps the nonce for the request.
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard let answer = answer(status: response.status, response.fields) else { return .pass }
        requests.record(answer, at: response.url.path)
        return .challenged()
    }

    /// Returns the signature that a response asks for; nil if it asks for none that can be made.
    func answer(status: Int, _ fields: HTTPFields) -> AcceptSignature.Answer? {
        guard Self.statuses.contains(status) else { return nil }
        return AcceptSignature(fields)?.answer(by: settings, keyID: requests.keyID)
    }
}
