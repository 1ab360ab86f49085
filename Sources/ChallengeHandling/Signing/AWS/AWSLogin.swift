// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Login of requests that are signed for AWS: the key, of the credential or of a role, or a registry's token.
struct AWSLogin: SessionLogin {
    let settings: AWSSignature
    let key: SessionKey
    let retryRejectedAfter: Duration?
    let digests: any MessageDigests
    let clock: AWSClock
    /// Response that refused the last signature.
    let challenge: ExaminedResponse?

    init(
        _ settings: AWSSignature, _ key: SessionKey, retryRejectedAfter: Duration?, digests: any MessageDigests,
        clock: AWSClock, challenge: ExaminedResponse?
    ) {
        self.settings = settings
        self.key = key
        self.retryRejectedAfter = retryRejectedAfter
        self.digests = digests
        self.clock = clock
        self.challenge = challenge
    }

    /// Obtains the key, and returns a session that signs with it.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        if let challenge, challenge.body.map({ AWSFault($0).isOfTime }) == true {
            Self.report(
                clock.learn(from: challenge, now: conversation.now()), challenge: key.challenge, in: conversation)
        }
        var keys: AWSKeys
        var session = Session()
        if let role = settings.role {
            let latch = LatchKey(origin: role.url.origin, challenge: key.challenge, credential: key.credential)
            let use = try await CredentialUse.lookUp(
                latch, retryRejectedAfter: retryRejectedAfter, in: conversation)
            let login = AWSRoleLogin(
                role: role, region: settings.service.region, use: use, digests: digests, clock: clock,
                conversation: conversation)
            (keys, session.expiresAt) = try await login.assume()
        } else {
            keys = try AWSKeys(
                try await conversation.credential(named: key.credential, for: key.challenge), for: key.challenge)
            session.expiresAt = conversation.now().saturatingAdd(SigningLogin.lookUpEvery)
        }
        if let registry = settings.registry {
            return try await AWSRegistryToken(
                url: registry, service: settings.service, challenge: key.challenge, digests: digests, clock: clock
            ).session(by: keys, conversation)
        }
        session.signer = AWSSigner(
            keys, settings.service, leavesBodiesUnsigned: settings.payload == .unsigned, challenge: key.challenge,
            digests: digests, clock: clock)
        return session
    }

    /// Takes the server's time from the response to a login's own request, and tells if the clocks differ.
    static func learnClock(
        _ clock: AWSClock, from response: SideResponse, at url: WebURL, challenge: String,
        _ conversation: Conversation
    ) {
        let examined = ExaminedResponse(
            status: response.status, fields: response.fields, method: .post, url: url.withoutQuery)
        report(clock.learn(from: examined, now: conversation.now()), challenge: challenge, in: conversation)
    }

    private static func report(_ difference: Int64?, challenge: String, in conversation: Conversation) {
        let text =
            difference.map {
                "clock: this machine's is \($0.magnitude / 1000) s \($0 > 0 ? "behind" : "ahead of") the server's, whose time is "
                    + "signed from now on; set the clock"
            } ?? "clock: the server refuses the time, and the clocks do not differ"
        conversation.report(ConversationStep(challenge: challenge, text: text))
    }
}
