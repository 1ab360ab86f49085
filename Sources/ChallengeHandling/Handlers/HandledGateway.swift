// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// A `GatewayChallengeHandler` as the machinery has it: what finds its challenges, and what wins its session.
package struct HandledGateway: Sendable {
    let handler: any GatewayChallengeHandler
    let caller: any HandlerCaller
    /// What failures call it.
    package let name: String
    /// What tells its sessions from those of another registration of that name; empty where the name does.
    package let identity: String

    /// The gateway of `handler`, which is called by `caller`.
    package init(
        _ handler: any GatewayChallengeHandler, name: String? = nil, identity: String = "",
        caller: any HandlerCaller
    ) {
        self.name = name ?? handler.gatewayName
        self.identity = identity
        self.handler = handler
        self.caller = caller
    }

    /// The login that stands ready at `origin`. `base`: the upstream's address, which shows the page before any address that a caller
    /// chose; `nil` if the program itself is the only caller.
    package func login(at origin: Origin, base: WebURL? = nil) -> Authenticator {
        return Authenticator(
            name: name, trigger: .detected(HandledGatewayDetector(handler: handler)), isAhead: false,
            key: SessionKey(origin: origin, challenge: name, credential: identity), credentials: [],
            confirmsSessions: base != nil, isLoginPage: true,
            makeLogin: { occasion in
                HandledGatewayLogin(
                    gateway: self, met: occasion.challenge, origin: origin, base: base,
                    target: occasion.challenge == nil ? occasion.target : nil)
            })
    }
}

/// Asks a handler whether a response is its own.
package struct HandledGatewayDetector: ChallengeDetector {
    let handler: any GatewayChallengeHandler

    /// For `explain`.
    package var kind: String { "gateway \(handler.gatewayName)" }

    /// Login pages have any status, and what the handler looks at is its own.
    package var filter: ResponseFilter { .everything }

    /// A challenge where the handler says so, first by the head alone.
    package func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if handler.canHandleResponse(response) { return .challenged() }
        return response.body == nil && mayHaveBody(response) ? .needsBody : .pass
    }

    private func mayHaveBody(_ response: ExaminedResponse) -> Bool {
        guard response.method != .head, ![204, 206, 304].contains(response.status) else { return false }
        let type = (response.fields[.contentType] ?? "").prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
        return handler.bodyTypes.contains(type.lowercased())
    }
}
