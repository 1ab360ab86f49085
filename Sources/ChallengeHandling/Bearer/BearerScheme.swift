// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// The scheme of bearer tokens (RFC 6750) in a list, with its own login.
public struct BearerScheme: AuthenticationScheme {
    private let makeLogin: @Sendable (LoginOccasion) -> any SessionLogin

    /// Creates the scheme; `makeLogin` makes the login for a token.
    public init(makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin) { self.makeLogin = makeLogin }

    /// `bearer`.
    public var name: String { "bearer" }

    /// Returns a challenge if Bearer is offered, whatever `error` says: servers have codes of their own.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        let isOffered = challenges.contains { challenge in
            challenge.isScheme("Bearer") && (realm == nil || challenge["realm"] == realm)
        }
        return isOffered ? .challenged() : nil
    }

    /// Returns the demand of a 403: more scope (RFC 6750 §3.1), or nothing.
    public func refusal(in response: ExaminedResponse, realm: String?) -> Challenge {
        BearerDetector(realm: realm).examine(response, hasSession: true)
    }

    /// Returns a session with a token. The token's login looks up the credential itself, since a rejection by a token
    /// endpoint closes a separate latch.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        let login = makeLogin(LoginOccasion(scope: occasion.scope, challenge: occasion.response))
        return .session(try await login.logIn(occasion.conversation))
    }
}

extension SchemeKind {
    /// `bearer`.
    package static let bearer = SchemeKind(rawValue: "bearer") { _, _, token in
        token.map { token in BearerScheme { token.login($0) } }
    }
}

/// Detector of challenges for a bearer token (RFC 6750 §3).
public struct BearerDetector: ChallengeDetector {
    /// The only realm to answer; `nil` for any realm.
    public let realm: String?
    /// True if a token with more scope can be requested.
    public let canGrow: Bool
    /// Matchers of responses that ask for a token without naming the scheme; any of them.
    public let markers: [ResponseMatcher]

    /// Creates a detector.
    public init(realm: String? = nil, canGrow: Bool = true, markers: [ResponseMatcher] = []) {
        self.realm = realm
        self.canGrow = canGrow
        self.markers = markers
    }

    /// Responses with the statuses of challenges, and those of the markers.
    public var filter: ResponseFilter {
        markers.isEmpty ? .statusesOfChallenges : .statusesOfChallenges.union(ResponseFilter(markers))
    }

    /// The name that `explain` shows.
    public var kind: String { "bearer" }

    /// Detects a 401 with `Bearer`, whatever its `error`, and a 403 with `insufficient_scope`. `resource_metadata` (RFC
    /// 9728) is for `TokenDiscovery`, if the configuration allows servers by name.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        let challenge = challenge(in: response, hasSession: hasSession)
        guard challenge == .pass, !markers.isEmpty else { return challenge }
        var inspection = ResponseInspection(response)
        return switch inspection.matchAny(markers) {
        case .matches: hasSession && !canGrow ? .refused : .challenged()
        case .needsBody: .needsBody
        case .doesNot: .pass
        }
    }

    /// Returns true if a response with one of the markers may be behind one that does not show it.
    public func mayConceal(_ response: ExaminedResponse) -> Bool {
        ResponseInspection(response).mayConceal(markers)
    }

    private func challenge(in response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.status == 401 || response.status == 403,
            let challenge = ChallengeList(in: response.fields).challenges.first(where: isMeant)
        else { return .pass }
        // Without words the server asks for nothing that the session lacks.
        let isLack = challenge["error"] == "insufficient_scope"
        let words = isLack && canGrow ? Scope(text: challenge["scope"] ?? "").words : []
        if response.status == 403 { return words.isEmpty ? .pass : .challenged(scope: words) }
        // Spring says `unauthorized` to a request without a token, others invent more: a 401 asks for one (RFC 6750 §3).
        // A token that cannot gain scope would be the one just refused.
        guard hasSession else { return .challenged() }
        return canGrow ? .challenged(scope: words) : .refused
    }

    private func isMeant(_ challenge: AuthenticationChallenge) -> Bool {
        challenge.isScheme("Bearer") && (realm == nil || challenge["realm"] == realm)
    }
}
