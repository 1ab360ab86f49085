// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

// Who is let in where nothing goes upstream: the admin listener, and another proxy's questions.
extension Admission {
    /// Returns the reply that refuses a request to an admin listener, or `nil`. A page of another origin must not read it, nor
    /// make a browser ask it.
    static func refusal(
        ofLocal head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, isUnixSocket: Bool
    ) -> LocalReply? {
        if !isUnixSocket, let authority = head.authority, !plan.hosts.accepts(authority, in: bytes) {
            return LocalReply(.hostNotAllowed, detail: "Only loopback names are served here.")
        }
        var metadata = FetchMetadata()
        for line in head.fields { metadata.take(line) }
        guard metadata.isRefused(by: plan.browsers, head, in: bytes) else { return nil }
        return LocalReply(
            .callerNotAllowed,
            detail: "A browser sent this on behalf of a page of another origin. Here only its own pages are served.")
    }

    /// Returns the answer to `OPTIONS *` that is to go no further (`Max-Forwards: 0`, RFC 9110 §7.6.2), whatever the listener is for
    /// and its routes take. So `countersign doctor` can ask whether a listener's address is held by a countersign, and no
    /// refused request is logged. `nil`: the request is another one.
    static func ownAnswer(to request: RequestHead, in bytes: Span<UInt8>, for caller: AcceptedCaller) -> LocalAnswer? {
        guard request.target.form == .asterisk, MaxForwards(request, in: bytes) == .left(0) else { return nil }
        let listener = caller.listener
        guard request.authority.map({ listener.hosts.accepts($0, in: bytes) }) ?? true,
            listener.users.map({ users in caller.user.map { users.contains($0) } ?? false }) ?? true
        else { return nil }
        return LocalAnswer(
            status: 200, contentType: "", body: [], fields: [("Allow", methods), ("Proxy-Status", "countersign")])
    }

    /// Returns the reply that refuses the question of another proxy by what it says of itself, or `nil`.
    ///
    /// An authority hands out the session. A page whose name was made to point here (DNS rebinding) could ask, and read the answer:
    /// no field of the request in question tells, for the page writes those itself.
    static func refusal(
        ofQuestion head: RequestHead, in bytes: Span<UInt8>, by caller: AcceptedCaller
    ) -> LocalReply? {
        if let refusal = refusal(ofAskingBy: caller) { return refusal }
        let plan = caller.listener
        guard !caller.isUnixSocket, let authority = head.authority else { return nil }
        guard plan.hosts.accepts(authority, in: bytes) || isLabel(authority, in: bytes) else {
            return LocalReply(
                .hostNotAllowed,
                detail: """
                    The sub-request's own Host is neither a loopback name, nor under `hosts` of listener \(plan.name), nor a name \
                    without a dot, as a protection against DNS rebinding. Have the proxy that asks send `Host: localhost`.
                    """)
        }
        return isSentByOwnPage(head, in: bytes) ? .crossOrigin(listener: plan.name) : nil
    }

    /// Returns the reply that refuses whatever a caller asks of an authority, or `nil`. HAProxy's frames have no head of their own,
    /// and only this is looked at.
    static func refusal(ofAskingBy caller: AcceptedCaller) -> LocalReply? {
        let plan = caller.listener
        guard !caller.isUnixSocket else { return nil }
        guard plan.users != nil else {
            return LocalReply(
                .callerNotAllowed,
                detail: """
                    Listener \(plan.name) is an authority, which hands out sessions: over TCP it answers only callers that are under \
                    its `users`.
                    """)
        }
        return nil
    }

    /// Returns whether the host is a name without a dot, as nginx sends that of an `upstream` block.
    private static func isLabel(_ authority: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard let parsed = Authority(bytes, authority), bytes[parsed.host.start] != UInt8(ascii: "[") else {
            return false
        }
        for index in parsed.host.bounds where bytes[index] == .dot { return false }
        return true
    }

    /// Returns whether a page of the authority's own address sent the question: `Origin` is that of the question's target, and
    /// the request in question has another.
    private static func isSentByOwnPage(_ head: RequestHead, in bytes: Span<UInt8>) -> Bool {
        guard let forwarded = head.first(.xForwardedHost), let origin = head.first(.origin),
            FetchMetadata.isOwn(origin.value, of: head, in: bytes, isSchemeKnown: true)
        else { return false }
        return bytes.text(forwarded.value).lowercased() != head.authority.map { bytes.text($0).lowercased() }
    }
}
