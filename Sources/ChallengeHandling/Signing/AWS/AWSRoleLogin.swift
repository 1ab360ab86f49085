// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Requests of a temporary key for a role.
///
/// Source: "AssumeRole" and "AssumeRoleWithWebIdentity", AWS Security Token Service API Reference.
struct AWSRoleLogin {
    let role: AWSRole
    let region: String
    let use: CredentialUse
    let digests: any MessageDigests
    let clock: AWSClock
    let conversation: Conversation

    /// A temporary key and its end, in milliseconds since 1970.
    typealias Key = (keys: AWSKeys, expiresAt: Int64)

    /// Codes that reject the credential's value.
    ///
    /// `InvalidIdentityToken` is not listed: it is also sent when the issuer's keys could not be fetched at the moment.
    private static let rejections: Set<String> = [
        "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    ]
    /// Lifetime of a key whose end cannot be read.
    private static let shortLife: Int64 = 900_000

    /// Assumes the role. A request whose time is refused is sent again with the server's time.
    func assume() async throws(LoginFailure) -> Key {
        let response = try await send()
        if let fault = fault(response), fault.isOfTime, role.proof == .accessKey {
            AWSLogin.learnClock(clock, from: response, at: role.url, challenge: use.key.challenge, conversation)
            return try await key(in: send())
        }
        return try await key(in: response)
    }

    /// Returns the region that the service signs in: that of its name, `us-east-1` for the global name, else `region`.
    static func region(of url: WebURL, or region: String) -> String {
        let labels = url.origin.host.split(separator: ".")
        if url.origin.host == "sts.amazonaws.com" { return "us-east-1" }
        guard labels.count >= 4, labels[0] == "sts", labels[2] == "amazonaws" else { return region }
        return String(labels[1])
    }

    private func fault(_ response: SideResponse) -> AWSFault? {
        (200..<300).contains(response.status) ? nil : AWSFault(response.body)
    }

    private func send() async throws(LoginFailure) -> SideResponse {
        let challenge = use.key.challenge
        var request = SideRequest.form(role.url, try parameters())
        if role.proof == .accessKey {
            let keys = try AWSKeys(use.credential, for: challenge)
            let signer = AWSSigner(
                keys, AWSService("sts", region: Self.region(of: role.url, or: region)), challenge: challenge,
                digests: digests, clock: clock)
            try request.sign(by: signer, digests: digests, now: conversation.now())
        }
        do throws(SideRequestError) {
            return try await conversation.sideRequests.send(request)
        } catch {
            conversation.report(ConversationStep(challenge: challenge, text: "role: no answer, \(error.reason)"))
            throw LoginFailure(error, step: "the request for a role", challenge: challenge)
        }
    }

    private func parameters() throws(LoginFailure) -> [(name: String, value: Secret)] {
        var parameters: [(name: String, value: Secret)] = [
            ("Action", Secret(role.proof == .webIdentity ? "AssumeRoleWithWebIdentity" : "AssumeRole")),
            ("Version", Secret("2011-06-15")), ("RoleArn", Secret(role.name)),
            ("RoleSessionName", Secret(role.session)),
        ]
        if let lifetime = role.lifetime {
            parameters.append(("DurationSeconds", Secret("\(lifetime.components.seconds)")))
        }
        if role.proof == .webIdentity {
            parameters.append(("WebIdentityToken", try use.credential.required("token", for: use.key.challenge)))
        }
        return parameters
    }

    /// Returns the key of an answer; throws if it has none, and closes the latch of a value that is rejected.
    private func key(in response: SideResponse) async throws(LoginFailure) -> Key {
        let challenge = use.key.challenge
        if let fault = fault(response) {
            let word = fault.code.map { " (\($0))" } ?? ""
            conversation.report(ConversationStep(challenge: challenge, text: "role: \(response.status)\(word)"))
            let retryAt = Moment.retry(after: response.fields, now: conversation.now())
            if !fault.isOfTime, !fault.isOfScope, let code = fault.code, Self.rejections.contains(code) {
                throw await use.reject(.rejected, serverWait: retryAt, in: conversation)
            }
            throw LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The Security Token Service answered with status \(response.status)\(word). Check the role, and who "
                    + "may assume it.", retryAt: retryAt)
        }
        guard let id = AWSDocument.text(of: "AccessKeyId", in: response.body),
            let secret = AWSDocument.text(of: "SecretAccessKey", in: response.body),
            let token = AWSDocument.text(of: "SessionToken", in: response.body)
        else {
            throw LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The answer of the Security Token Service has no temporary key. Check `sign.aws.assume-role.url`.")
        }
        let keys = AWSKeys(id: Secret(id), secret: Secret(secret), token: Secret(token))
        guard keys.isPlain else {
            throw LoginFailure(
                .failed, challenge: challenge, detail: "The temporary key holds a byte that no field can carry.")
        }
        await use.accept(in: conversation)
        let now = conversation.now()
        let end = AWSDocument.text(of: "Expiration", in: response.body).flatMap(AWSTime.moment)
        let expiresAt = end.map { $0.saturatingSubtract(clock.serverTime(at: 0)) } ?? now.saturatingAdd(Self.shortLife)
        conversation.report(
            ConversationStep(
                challenge: challenge,
                text: "role: \(response.status), a key for \(max(0, expiresAt.saturatingSubtract(now)) / 1000) s"))
        return (keys, expiresAt)
    }
}

extension SideRequest {
    /// Adds a signature to the request.
    mutating func sign(by signer: AWSSigner, digests: any MessageDigests, now: Int64) throws(LoginFailure) {
        let body = body.map { body in body.withBytes { digests.digest(.sha256, of: $0) } }
        let request = SigningRequest(
            method: method.rawValue, origin: url.origin, target: url.target,
            body: body.map { .read([BodyReading(.digest(.sha256), $0)]) } ?? .none, now: now,
            fields: SideRequestFields(fields, host: url.origin.authority))
        for field in try signer.sign(request).fields { fields[field.name] = field.value.revealText() }
    }
}

/// Fields of a login's own request, as its signer sees them.
private final class SideRequestFields: SigningFields {
    private let fields: [(name: [UInt8], value: [UInt8])]

    init(_ fields: HTTPFields, host: String) {
        self.fields =
            [(Array("host".utf8), Array(host.utf8))]
            + fields.map { (Array($0.name.rawName.utf8), Array($0.value.utf8)) }
    }

    func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        for field in fields { body(field.name.span, field.value.span) }
    }
}
