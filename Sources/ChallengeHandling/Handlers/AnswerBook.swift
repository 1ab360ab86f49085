// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
internal import Secrets
internal import Synchronization

/// The answers of one challenge handler at one server, by the protection spaces that they are for.
///
/// A challenge at an address holds for all in its folder and below (RFC 7617 section 2.2), but for what another claims.
package final class AnswerBook: RequestSigner {
    /// A scheme and a realm.
    struct Space: Hashable {
        let scheme: String
        let realm: String

        init(_ challenge: AuthenticationChallenge) {
            scheme = challenge.scheme.lowercased()
            realm = challenge["realm"] ?? ""
        }
    }

    private struct State {
        var spaces: [Substring: Space] = [:]
        var order: [Substring] = []
        var answers: [Space: Session] = [:]
    }

    /// So many folders, and so many spaces, are remembered; servers name them.
    private static let most = 256

    private let state = Mutex(State())

    /// No answers.
    package init() {}

    /// `answer` is for `space`, which `url` belongs to.
    func enter(_ answer: Session, for space: Space, at url: WebURL) {
        state.withLock { state in
            let folder = Self.folder(url.path[...])
            if state.spaces.updateValue(space, forKey: folder) == nil { state.order.append(folder) }
            if state.order.count > Self.most { state.spaces[state.order.removeFirst()] = nil }
            if state.answers.count >= Self.most { state.answers.removeAll() }
            state.answers[space] = answer
        }
    }

    /// There is no right answer for `space`.
    func remove(_ space: Space) { state.withLock { $0.answers[space] = nil } }

    /// True if it has no answers.
    var isEmpty: Bool { state.withLock(\.answers.isEmpty) }

    /// When the first of the answers ends, in milliseconds since 1970.
    var expiresAt: Int64? { state.withLock { $0.answers.values.compactMap(\.expiresAt).min() } }

    private func answer(for target: String) -> Session? {
        state.withLock { state in
            var folder = Self.folder(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }))
            while !folder.isEmpty {
                if let space = state.spaces[folder] { return state.answers[space] }
                folder = Self.folder(folder.dropLast())
            }
            return nil
        }
    }

    /// What ends with the last slash.
    private static func folder(_ path: Substring) -> Substring {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return path[...slash]
    }

    // MARK: Signing

    /// The one field of HTTP authentication.
    package var names: [HTTPField.Name] { [.authorization] }

    /// The fields of the answer for the space that the request goes to; none where there is none.
    package func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        guard let answer = answer(for: request.target) else { return SignedFields() }
        var signed = try answer.signer?.sign(request) ?? SignedFields()
        signed.fields += answer.fields
        return signed
    }

    /// Answers are constant, or know by themselves.
    package func learn(status: Int, fields: HTTPFields, target: String) {}

    /// None.
    package var learnsFrom: [HTTPField.Name]? { [] }
}
