// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire

@testable import ChallengeClient

/// A caller without a connection: notes what it is told, in order.
final class FakeCaller: ExchangeCaller {
    private(set) var events: [String] = []
    /// The error that ended the exchange.
    private(set) var error: ExchangeError?
    /// Further fields of its requests.
    var fields: [(name: StaticString, value: String)] = []
    /// The head of the last response.
    private(set) var head = ""
    /// True if it takes what comes of a body.
    var takesBody = true
    let identity: CallerIdentity? = .user(1000)

    func writeFields(into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?) {
        fields.append(name: "Host", value: "bank")
        for field in self.fields { fields.append(name: field.name, value: field.value) }
        cookies?.write(mergedWith: [], to: fields)
    }

    /// Events since the last call.
    func takeEvents() -> [String] {
        defer { events = [] }
        return events
    }

    func exchangeAuthorizes(_ answer: AuthRequestAnswer) {
        var names: [String] = []
        answer.forEachField { name, _ in names.append(name.text(.all(of: name))) }
        events.append("fields \(names.joined(separator: ", ")) for \(answer.lifetime) s")
    }

    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) { events.append("interim \(head.status)") }
    func exchangeDelivers(headOf transfer: Transfer) {
        head = transfer.head.text
        events.append("head \(transfer.answer.status)")
    }

    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        events.append("switched")
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        guard takesBody else { return }
        events.append("body \(transfer.body.text)")
        transfer.body.removeAll()
    }

    func exchangeDelivers(trailersOf transfer: Transfer) { events.append("trailers") }
    func exchangeHasAll() { events.append("whole") }
    func exchangeEnded() { events.append("ended") }

    func exchangeFailed(_ error: ExchangeError) {
        self.error = error
        events.append("failed \(error.kind)")
    }

    func exchangeBroke(_ error: ExchangeError) {
        self.error = error
        events.append("broke \(error.kind)")
    }

    func exchangeWantsBody() { events.append("wants body") }
}
