// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
package import EventLoop
public import HTTPTypes

/// Sends HTTP requests, and answers the authentication challenges of servers.
///
/// ```swift
/// let client = try ChallengeClient()
/// try client.registerChallengeHandler(PinCodeHandler())
/// let response = try await client.send(HTTPRequest(to: balance))
/// print(try await response.text(upTo: 64 * 1024))
/// ```
///
/// The daemon `countersign` is built on the same code: one login runs at a time for all requests that need it, a
/// session is held and used until it ends, a rejected answer is not sent twice, and the original request is sent again
/// after a login. A client has one thread with one loop, which end with `shutdown()`, or when the client and all of its
/// responses are released.
public final class ChallengeClient: Sendable {
    let life: ClientLife

    /// Creates a client without handlers. Throws `unavailable` if no thread or descriptor is available.
    public convenience init(_ configuration: ClientConfiguration = ClientConfiguration()) throws(ClientError) {
        try self.init(configuration, clock: nil)
    }

    /// Creates a client whose time limits use a manual clock.
    package init(_ configuration: ClientConfiguration, clock: ManualLoopClock?) throws(ClientError) {
        life = try ClientLife(configuration, clock: clock)
    }

    /// The configuration of this client.
    public var configuration: ClientConfiguration { life.shared.configuration }

    /// Sends `request` and returns the response once its head is received.
    ///
    /// Challenges are answered if a registered handler can; all others are ordinary responses, including 401. No login
    /// is made for a request with its own `Authorization`. Redirects are not followed.
    ///
    /// `timeout`: the limit until the head is received, including logins; without it only the limits in the
    /// configuration apply. Cancelling the task ends the transfer at once. Throws the errors of `ClientError`.
    public func send(
        _ request: HTTPRequest, body: RequestBody = .none, timeout: Duration? = nil
    ) async throws(ClientError) -> ClientResponse {
        try await perform(try ClientRequest(request, body: body, timeout: timeout)).response
    }

    /// Sends a request, and returns also its number on the loop.
    func perform(
        _ request: ClientRequest
    ) async throws(ClientError) -> (response: ClientResponse, number: UInt64) {
        guard !Task.isCancelled else { throw ClientError.cancelled }
        let number = life.nextNumber()
        let life = life
        let pipe = BodyPipe { [loop = life.loop, site = life.site] call in
            loop.execute { site.value?.exchange(number)?.handle(call) }
        }
        let result: Result<ClientResponse, ClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { answer in
                let isTaken = life.perform { site in
                    let exchange = ClientExchange(
                        request, number: number, pipe: pipe, site: site, life: life, answer: answer)
                    site.start(exchange, number: number)
                } else: {
                    answer.resume(returning: .failure(.unavailable))
                }
                guard isTaken else { return answer.resume(returning: .failure(.shutDown)) }
                life.feed(request.body, to: number)
            }
        } onCancel: {
            pipe.breakOff(.cancelled)
        }
        return (try result.get(), number)
    }

    /// Sends a request to `address`, which has to be absolute; see `send(_:body:timeout:)`.
    public func send(
        _ method: HTTPRequest.Method = .get, to address: String, fields: HTTPFields = [:], body: RequestBody = .none,
        timeout: Duration? = nil
    ) async throws(ClientError) -> ClientResponse {
        guard let url = WebURL(address) else {
            throw ClientError(.badRequest, detail: "The address is not an absolute http or https URL.")
        }
        return try await send(HTTPRequest(method, to: url, fields: fields), body: body, timeout: timeout)
    }

    /// Ends all requests with `shutDown`, and waits until the client's thread is about to end.
    ///
    /// That is at once, or after the logins under way, within 5 s. Later calls fail with `shutDown`. The handlers are released, so a
    /// handler may retain its client.
    public func shutdown() async {
        await withCheckedContinuation { continuation in life.close { continuation.resume() } }
    }

    // MARK: Handlers of gateways and of HTTP challenges

    /// Registers `handler` for its gateway's login page, from the next request on.
    ///
    /// The page is expected at the locations of `patterns`, or at every server if empty. Throws `alreadyRegistered` if
    /// that gateway name is in use, `noLocation` for an invalid `LocationPattern`.
    public func registerChallengeHandler(
        _ handler: some GatewayChallengeHandler, at patterns: String...
    ) throws(RegistrationError) {
        try life.shared.registry.register(handler, at: patterns)
    }

    /// Unregisters the handler of that gateway, and drops its session; does nothing without one.
    public func unregisterChallengeHandler(gatewayName: String) {
        life.shared.registry.unregister(gatewayName: gatewayName)
    }

    /// Registers `handler` for HTTP challenges of every server.
    ///
    /// If several handlers match a location, the first that can handle a challenge is asked.
    public func registerChallengeHandler(_ handler: some ChallengeHandler) {
        life.shared.registry.register(.everywhere(handler, RegistrationNumber()))
    }

    /// Registers the handlers of `dispatcher` for HTTP challenges, each at its pattern.
    ///
    /// The answers of a handler end when it is unregistered from `dispatcher`.
    public func registerChallengeHandler(_ dispatcher: DispatchChallengeHandler) {
        life.shared.registry.register(.dispatched(dispatcher))
    }

    /// Unregisters `handler`, and drops its answers; does nothing if not registered.
    public func unregisterChallengeHandler(_ handler: some ChallengeHandler) {
        life.shared.registry.unregister(handler)
    }
}
