// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
package import EventLoop
public import HTTPTypes

/// Sends HTTP requests, and answers the authentication challenges that servers meet them with.
///
/// ```swift
/// let client = try ChallengeClient()
/// try client.registerChallengeHandler(PinCodeHandler())
/// let response = try await client.send(HTTPRequest(to: balance))
/// print(try await response.text(upTo: 64 * 1024))
/// ```
///
/// It is what the daemon `countersign` is built on: one login runs at a time however many requests need it, a session is held
/// and used until it ends, a rejected answer is not sent twice, and the original request is sent again after a login. It has one
/// thread with one loop, which end with `shutdown()`, or when the client and all of its responses are let go of.
public final class ChallengeClient: Sendable {
    let life: ClientLife

    /// A client without handlers. Throws `unavailable` where this machine has no thread or descriptors for it.
    public convenience init(_ configuration: ClientConfiguration = ClientConfiguration()) throws(ClientError) {
        try self.init(configuration, clock: nil)
    }

    /// The same, with its time limits by a clock that is turned by hand.
    package init(_ configuration: ClientConfiguration, clock: ManualLoopClock?) throws(ClientError) {
        life = try ClientLife(configuration, clock: clock)
    }

    /// The configuration it was made with.
    public var configuration: ClientConfiguration { life.shared.configuration }

    /// Sends `request` and returns the response as soon as its head is there.
    ///
    /// Challenges that a registered handler can answer are answered on the way; all others are responses like any other, 401
    /// included. A request with an `Authorization` of its own is not logged in for. Redirects are not followed.
    ///
    /// `timeout`: how long all of it may take until the head is there, logins included; without it the limits of the
    /// configuration for each part hold. Cancelling the task ends the transfer at once. Throws what `ClientError` lists.
    public func send(
        _ request: HTTPRequest, body: RequestBody = .none, timeout: Duration? = nil
    ) async throws(ClientError) -> ClientResponse {
        try await perform(try ClientRequest(request, body: body, timeout: timeout)).response
    }

    /// Sends a request; the number is what the loop knows it by.
    func perform(
        _ request: ClientRequest
    ) async throws(ClientError) -> (response: ClientResponse, number: UInt64) {
        guard !Task.isCancelled else { throw ClientError.cancelled }
        let number = life.nextNumber()
        let life = life
        let pipe = BodyPipe { [loop = life.loop, site = life.site] call in
            loop.execute { site.value?.exchange(number)?.hear(call) }
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
            throw ClientError(.badRequest, detail: "The address is no absolute one of http or https.")
        }
        return try await send(HTTPRequest(method, to: url, fields: fields), body: body, timeout: timeout)
    }

    /// Ends all requests, which fail as `shutDown`, and waits until the client's thread is about to end: at once, or as soon as
    /// the logins under way have, within 5 s. What is asked of it afterwards fails as `shutDown`.
    public func shutdown() async {
        await withCheckedContinuation { continuation in life.close { continuation.resume() } }
    }

    // MARK: Handlers of gateways and of challenges of HTTP

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
