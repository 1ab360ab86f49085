// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Token of a container registry (ECR), obtained by a signed request.
///
/// Source: "GetAuthorizationToken", Amazon ECR API Reference.
struct AWSRegistryToken {
    let url: WebURL
    let service: AWSService
    let challenge: String
    let digests: any MessageDigests
    let clock: AWSClock

    /// Lifetime of a token whose end cannot be read, in milliseconds.
    private static let shortLife: Int64 = 3_600_000

    /// Requests a token and returns its session. A request whose time is refused is sent again with the server's time.
    func session(by keys: AWSKeys, _ conversation: Conversation) async throws(LoginFailure) -> Session {
        var response = try await send(by: keys, conversation)
        if response.status >= 400, AWSFault(response.body).isOfTime {
            AWSLogin.learnClock(clock, from: response, at: url, challenge: challenge, conversation)
            response = try await send(by: keys, conversation)
        }
        guard (200..<300).contains(response.status) else {
            let word = AWSFault(response.body).code.map { " (\($0))" } ?? ""
            report("registry: \(response.status)\(word)", conversation)
            throw LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The registry's API answered the request for a token with status \(response.status)\(word). Check the "
                    + "access key, and what it may do.",
                retryAt: Moment.retry(after: response.fields, now: conversation.now()))
        }
        return try session(in: response, conversation)
    }

    private func send(by keys: AWSKeys, _ conversation: Conversation) async throws(LoginFailure) -> SideResponse {
        let isPublic = service.name == "ecr-public"
        var request = SideRequest(method: .post, url: url, body: Secret("{}"))
        request.fields[.contentType] = "application/x-amz-json-1.1"
        let target = isPublic ? "SpencerFrontendService" : "AmazonEC2ContainerRegistry_V20150921"
        request.fields[HTTPField.Name(literal: "X-Amz-Target")] = "\(target).GetAuthorizationToken"
        let signer = AWSSigner(keys, service, challenge: challenge, digests: digests, clock: clock)
        try request.sign(by: signer, digests: digests, now: conversation.now())
        do throws(SideRequestError) {
            return try await conversation.sideRequests.send(request)
        } catch {
            report("registry: no answer, \(error.reason)", conversation)
            throw LoginFailure(error, step: "the request for a registry's token", challenge: challenge)
        }
    }

    private func session(in response: SideResponse, _ conversation: Conversation) throws(LoginFailure) -> Session {
        let body = JSONValue(parsing: response.body)
        let data = body?["authorizationData"].flatMap { data -> JSONValue? in
            if case .array(let elements) = data { elements.first } else { data }
        }
        guard let token = data?["authorizationToken"]?.stringValue, TokenPlacement.canCarry(token.utf8) else {
            report("registry: \(response.status), but no token", conversation)
            throw LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The answer of the registry's API has no token that a field can carry. Check `sign.aws.registry`.")
        }
        let end = Self.milliseconds(data?["expiresAt"])
        let now = conversation.now()
        let expiresAt = end.map { $0.saturatingSubtract(clock.serverTime(at: 0)) } ?? now.saturatingAdd(Self.shortLife)
        report(
            "registry: \(response.status), a token for \(max(0, expiresAt.saturatingSubtract(now)) / 1000) s",
            conversation)
        let scheme = service.name == "ecr-public" ? "Bearer" : "Basic"
        let field = InjectedField(name: .authorization, value: .joining([Secret("\(scheme) "), Secret(token)]))
        return Session(fields: [field], expiresAt: expiresAt)
    }

    /// Returns the milliseconds since 1970 of a number of seconds.
    private static func milliseconds(_ value: JSONValue?) -> Int64? {
        switch value {
        case .integer(let seconds): return seconds.saturatingMultiply(1000)
        case .double(let seconds) where seconds.isFinite:
            return Int64(min(max(seconds, 0), 1e12)).saturatingMultiply(1000)
        default: return nil
        }
    }

    private func report(_ text: String, _ conversation: Conversation) {
        conversation.report(ConversationStep(challenge: challenge, text: text))
    }
}

/// Detector of a registry's 401, after which another token is needed.
struct AWSRegistryDetector: ChallengeDetector {
    var kind: String { "registry" }

    /// Returns `challenged` for a 401 (RFC 9110 §15.5.2).
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        response.status == 401 ? .challenged() : .pass
    }
}
