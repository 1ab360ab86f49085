// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
package import HTTPWire

/// Checks an upstream periodically by an exchange, including a login if needed.
///
/// A check uses the sessions of its path. It never waits for a login as callers do, and does not start a login while a
/// latch of that login is closed.
package final class UpstreamCheck {
    /// The delay before the next attempt while a login is under way.
    private static let timeout = Duration.milliseconds(200)
    /// The limit for reading an answer's body after its head.
    private static let bodyTime = Duration.seconds(5)

    private let plan: UpstreamCheckPlan
    private let client: UpstreamClient
    private let runtime: ClientRuntime
    private let onChange: (CheckReading) -> Void
    private let timer: LazyTimer
    private var exchange: Exchange?
    /// True if an exchange runs.
    private var isAsking = false
    private var began = LoopInstant.never
    /// The result by the head of the answer.
    private var verdict: CheckReading.State?
    /// The status of that head.
    private var status: Int?

    /// Creates the check of `plan` on the worker of `client`. `onChange` is called when the upstream goes up or down.
    package init(_ plan: UpstreamCheckPlan, of client: UpstreamClient, onChange: @escaping (CheckReading) -> Void) {
        self.plan = plan
        self.client = client
        self.onChange = onChange
        runtime = client.runtime
        timer = LazyTimer(loop: runtime.loop)
        timer.onExpiry = { [unowned self] in timePassed() }
    }

    /// Starts the checks. The first one follows at a random time within a second, to spread the load.
    package func start() {
        timer.arm(at: runtime.loop.now + Duration.seconds(1) * runtime.services.chance())
    }

    /// Stops the checks.
    package func stop() {
        timer.cancel()
        isAsking = false
        exchange?.close()
        exchange = nil
    }

    private var name: String { client.plan.name }

    private func timePassed() {
        if isAsking {
            // The head is known, and the rest is not needed.
            exchange?.cancel()
            if let verdict { finish(verdict) }
            return
        }
        if let reason = obstacle {
            report(runtime.services.checks.recordSkip(name, because: reason, now: runtime.wallClock()))
            rest()
            return
        }
        if began == .never { began = runtime.loop.now }
        ask()
    }

    /// The reason to skip a check now: the request would lead to a login that is known to be rejected.
    private var obstacle: String? {
        var target = ByteQueue()
        client.plan.writeTarget(plan.path.utf8.span, into: &target)
        let closed = Set(
            runtime.gate.closed(now: runtime.wallClock(), replacedIn: runtime.services.credentialVersions).map(
                \.challenge))
        if closed.isEmpty { return nil }
        for slot in client.routes.route(method: .get, target: target).slots where slot.login.trigger.detector != nil {
            if runtime.gate.held(slot.key) != nil { continue }
            if closed.contains(where: slot.login.isMeant) {
                return "a latch of \(slot.login.name) is closed: no login is started for a check"
            }
        }
        return nil
    }

    private func ask() {
        isAsking = true
        verdict = nil
        status = nil
        let exchange = self.exchange ?? Exchange(runtime: runtime, caller: self)
        self.exchange = exchange
        exchange.begin(
            ExchangeRequest(method: .get, framing: .none, isCheck: true), path: plan.path.utf8.span, to: client)
        exchange.start()
    }

    private func finish(_ state: CheckReading.State) {
        isAsking = false
        let took = runtime.loop.now.nanoseconds(since: began)
        began = .never
        report(
            runtime.services.checks.recordResult(
                name, state, status: status, after: took, now: runtime.wallClock()))
        rest()
    }

    /// Waits for the next check. Varied by a tenth, so that the checks of many daemons do not synchronize.
    private func rest() {
        began = .never
        timer.arm(at: runtime.loop.now + plan.period * (0.9 + 0.2 * runtime.services.chance()))
    }

    private func report(_ isChange: Bool) {
        if isChange, let reading = runtime.services.checks.all[name] { onChange(reading) }
    }
}

extension UpstreamCheck: ExchangeCaller {
    /// Writes the fields of a check.
    package func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        let authority = client.authority
        fields.append(name: "Host", value: authority.span)
        if !sessions.override(.userAgent, named: Span()) {
            fields.append(name: "User-Agent", value: UpstreamPlan.product as String)
        }
        fields.append(name: "Accept", value: "*/*")
        cookies?.write(mergedWith: [], to: fields)
        fields.append(name: "Via", value: "1.1 countersign")
    }

    /// Records the result by the status.
    package func exchangeDelivers(headOf transfer: Transfer) {
        let status = transfer.answer.status
        self.status = status
        let wanted = plan.statuses.sorted().map(String.init).joined(separator: ", ")
        verdict = plan.statuses.contains(status) ? .up : .down("it answered \(status) instead of \(wanted)")
        timer.arm(at: runtime.loop.now + Self.bodyTime)
    }

    /// Discards the body.
    package func exchangeDelivers(bodyOf transfer: Transfer) { transfer.body.removeAll() }

    /// Finishes the check after a complete answer.
    package func exchangeEnded() { finish(verdict ?? .down("it did not answer")) }

    /// Finishes the check without an answer, or repeats it if a login has only begun.
    package func exchangeFailed(_ error: ExchangeError) {
        guard error == .loginUnderWay, runtime.loop.now < began + client.responseDelay else {
            finish(.down(error == .loginUnderWay ? "its login takes too long" : error.detail))
            return
        }
        isAsking = false
        timer.arm(at: runtime.loop.now + Self.timeout)
    }

    /// Finishes the check after a truncated answer.
    package func exchangeBroke(_ error: ExchangeError) { finish(.down(error.detail)) }

    /// Throws, because a check never asks for another protocol.
    package func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        throw WireError(upstream: .switchInvalid)
    }

    /// Ignores interim responses.
    package func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {}
    /// Ignores trailers.
    package func exchangeDelivers(trailersOf transfer: Transfer) {}
    /// Does nothing, because there is no body to send.
    package func exchangeHasAll() {}
    /// Does nothing, because there is no body to send.
    package func exchangeWantsBody() {}
    /// `nil`, because a check has no caller.
    package var identity: CallerIdentity? { nil }
}

extension ExchangeError {
    /// A check needs a login that has just begun, and does not wait.
    static let loginUnderWay = ExchangeError(.loginTimeout, detail: "A login is under way.")
}
