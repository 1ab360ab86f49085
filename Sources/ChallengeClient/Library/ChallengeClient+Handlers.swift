// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

// Handlers of gateways and of challenges of HTTP.
extension ChallengeClient {
    /// Has `handler` answer its gateway's login page at the locations of `patterns`, or at every server without any, from the
    /// next request on.
    ///
    /// Throws `alreadyRegistered` where there is a gateway of that name, `noLocation` for what is no `LocationPattern`.
    public func registerChallengeHandler(
        _ handler: some GatewayChallengeHandler, at patterns: String...
    ) throws(RegistrationError) {
        try life.shared.registry.register(handler, at: patterns)
    }

    /// Takes the handler of that gateway back, with the session that it has won; does nothing where there is none.
    public func unregisterChallengeHandler(gatewayName: String) {
        life.shared.registry.unregister(gatewayName: gatewayName)
    }

    /// Has `handler` answer challenges of HTTP at every server. Of several that stand at one place the first that can handle a
    /// challenge is asked.
    public func registerChallengeHandler(_ handler: some ChallengeHandler) {
        life.shared.registry.register(.everywhere(handler, RegistrationNumber()))
    }

    /// Has the handlers of `dispatcher` answer challenges of HTTP, each at its pattern. What one of them has answered ends when it is
    /// unregistered from `dispatcher`.
    public func registerChallengeHandler(_ dispatcher: DispatchChallengeHandler) {
        life.shared.registry.register(.dispatched(dispatcher))
    }

    /// Takes `handler` back, with what it has answered; does nothing where it is not registered.
    public func unregisterChallengeHandler(_ handler: some ChallengeHandler) {
        life.shared.registry.unregister(handler)
    }
}
