// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
package import HTTPWire

/// Asks an upstream from time to time whether it serves, by an exchange as callers have it: with the sessions of the path, and
/// with a login where one is needed. It never waits among the callers for that login, and leads to none while a latch of
/// it is closed.
package final class UpstreamCheck {
    /// How long a login that is under way is left alone until the check asks again.
    private static let patience = Duration.milliseconds(200)
    /// How long is read of an answer whose head is known.
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
    /// What the head of the answer says.
    private var verdict: CheckReading.State?

    /// The check of `plan` at the upstream of `client`, on its worker. `onChange` is told when the upstream goes up or down.
    package init(_ plan: UpstreamCheckPlan, of client: UpstreamClient, onChange: @escaping (CheckReading) -> Void) {
        self.plan = plan
        self.client = client
        self.onChange = onChange
        runtime = client.runtime
        timer = LazyTimer(loop: runtime.loop)
        timer.onExpiry = { [unowned self] in timePassed() }
    }

    /// Asks from now on; for the first time within a second, so that several do not ask at once.
    package func start() {
        timer.arm(at: runtime.loop.now + Duration.seconds(1) * runtime.services.chance())
    }

    /// Asks no more.
    package func stop() {
        timer.cancel()
        isAsking = false
        exchange?.close()
        exchange = nil
    }

    private var name: String { client.plan.name }

    private func timePassed() {
        if isAsking {
            // The head is known; nobody needs the rest.
            exchange?.cancel()
            if let verdict { finish(verdict) }
            return
        }
        if let reason = obstacle {
            tell(runtime.services.checks.skipped(name, because: reason, now: runtime.wallClock()))
            rest()
            return
        }
        if began == .never { began = runtime.loop.now }
        ask()
    }

    /// Why nothing may be asked: the request would lead to a login that is known to be rejected.
    private var obstacle: String? {
        var target = ByteQueue()
        client.plan.writeTarget(plan.path.utf8.span, into: &target)
        let closed = Set(
            runtime.gate.closed(now: runtime.wallClock(), replacedIn: runtime.services.ledger).map(\.challenge))
        if closed.isEmpty { return nil }
        for slot in client.routes.route(method: .get, target: target).slots where slot.login.trigger.detector != nil {
            if runtime.gate.held(slot.key) != nil { continue }
            if closed.contains(where: slot.login.isMeant) {
                return "a latch of \(slot.login.name) is closed: no login is begun for a check"
            }
        }
        return nil
    }

    private func ask() {
        isAsking = true
        verdict = nil
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
        tell(runtime.services.checks.asked(name, state, after: took, now: runtime.wallClock()))
        rest()
    }

    /// Until the next time: a tenth more or less, so that the checks of many daemons do not fall into step.
    private func rest() {
        began = .never
        timer.arm(at: runtime.loop.now + plan.period * (0.9 + 0.2 * runtime.services.chance()))
    }

    private func tell(_ isNews: Bool) {
        if isNews, let reading = runtime.services.checks.all[name] { onChange(reading) }
    }
}

extension UpstreamCheck: ExchangeCaller {
    /// Writes the fields of a check.
    package func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        let authority = client.authority
        fields.append(name: "Host", value: authority.span)
        fields.append(name: "User-Agent", value: "countersign-check")
        fields.append(name: "Accept", value: "*/*")
        cookies?.write(mergedWith: [], to: fields)
        fields.append(name: "Via", value: "1.1 countersign")
    }

    /// Judges the answer by its status.
    package func exchangeDelivers(headOf transfer: Transfer) {
        let status = transfer.answer.status
        let wanted = plan.statuses.sorted().map(String.init).joined(separator: ", ")
        verdict = plan.statuses.contains(status) ? .up : .down("it answered \(status) in place of \(wanted)")
        timer.arm(at: runtime.loop.now + Self.bodyTime)
    }

    /// Reads over the body.
    package func exchangeDelivers(bodyOf transfer: Transfer) { transfer.body.removeAll() }

    /// The answer is complete.
    package func exchangeEnded() { finish(verdict ?? .down("it did not answer")) }

    /// There is no answer; where a login has only begun, it is asked again.
    package func exchangeFailed(_ error: ExchangeError) {
        guard error == .loginUnderWay, runtime.loop.now < began + client.responseDelay else {
            finish(.down(error == .loginUnderWay ? "its login takes too long" : error.detail))
            return
        }
        isAsking = false
        timer.arm(at: runtime.loop.now + Self.patience)
    }

    /// The answer broke off.
    package func exchangeBroke(_ error: ExchangeError) { finish(.down(error.detail)) }

    /// Never asked for.
    package func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        throw WireError(upstream: .switchInvalid)
    }

    /// Nobody is told.
    package func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {}
    /// Nobody is told.
    package func exchangeDelivers(trailersOf transfer: Transfer) {}
    /// There is no body to send.
    package func exchangeHasAll() {}
    /// There is no body to send.
    package func exchangeWantsBody() {}
    /// Nobody calls.
    package var callerUser: UInt32? { nil }
}

extension ExchangeError {
    /// A check needs a login that has just begun, and does not wait for it.
    static let loginUnderWay = ExchangeError(.loginTimeout, detail: "A login is under way.")
}
