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
        if let challenge { try requireChange(after: challenge, conversation) }
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

    /// Learns why the last signature was refused; throws if another one would be refused as well.
    private func requireChange(
        after response: ExaminedResponse, _ conversation: Conversation
    ) throws(LoginFailure) {
        let fault = AWSFault(response.body ?? [])
        let now = conversation.now()
        if fault.isOfTime {
            let isNew = clock.learn(from: response, now: now)
            Self.reportClock(clock, isNew: isNew, challenge: key.challenge, in: conversation)
            guard !isNew else { return }
            throw LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server refuses the time of the signature, and its own \"Date\" shows no other. Check the clocks of this "
                    + "machine and the server; the key was not rejected.")
        }
        guard fault.isOfExpiry, let next = clock.keyExpired(at: now) else { return }
        throw LoginFailure(
            .failed, challenge: key.challenge,
            detail:
                "The server calls the temporary key of the credential \"\(key.credential)\" expired, also after it was looked up "
                + "again. Store a new one.", retryAt: next)
    }

    /// Takes the server's time from the response to a login's own request, and returns true if the clocks differ.
    static func learnClock(
        _ clock: AWSClock, from response: SideResponse, at url: WebURL, challenge: String,
        _ conversation: Conversation
    ) {
        let examined = ExaminedResponse(
            status: response.status, fields: response.fields, method: .post, url: url.withoutQuery)
        let isNew = clock.learn(from: examined, now: conversation.now())
        reportClock(clock, isNew: isNew, challenge: challenge, in: conversation)
    }

    private static func reportClock(
        _ clock: AWSClock, isNew: Bool, challenge: String, in conversation: Conversation
    ) {
        let seconds = clock.difference.magnitude / 1000
        let side = clock.difference > 0 ? "behind" : "ahead of"
        let text =
            isNew && seconds > 0
            ? "clock: this machine's is \(seconds) s \(side) the server's, whose time is signed from now on; set the clock"
            : "clock: the server refuses the time, and names no other"
        conversation.report(ConversationStep(challenge: challenge, text: text, kind: .remark))
    }
}
