// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import FieldBytes
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

/// The question if a login page is behind an answer that does not show its page.
struct PageLook {
    /// What the page shows.
    enum Outcome {
        /// This login page came.
        case asks(ExaminedResponse)
        /// Another page came.
        case passes
        /// No usable answer came.
        case unknown
    }

    /// The login whose page it may be.
    let slot: RouteSessions.Slot
    /// The session of that login which the request carried; `nil` if it carried none.
    let session: (session: Session, acceptance: SessionAcceptance)?
    /// The fields of all sessions that the request carried.
    let fields: SessionFields
    /// The request's own address.
    let address: WebURL
    let plan: UpstreamPlan
    /// True if an answer to a request that was sent a moment ago is new enough.
    let mayShare: Bool
}

/// Looks at concealed pages: GET requests without conditions, at most one at a time for a session.
///
/// An address that asks for a login without the session tells about the session itself: `prove-at`, or a path that was
/// found to ask. Without one, the request's own address tells about that address.
final class PageLooks {
    private unowned let runtime: ClientRuntime
    private var waiting: [SessionKey: [(PageLook.Outcome) -> Void]] = [:]

    /// Creates the looks of `runtime`, which outlives them.
    init(_ runtime: ClientRuntime) { self.runtime = runtime }

    /// Looks, and calls `finish` once, on the loop's thread, not from within.
    func look(_ look: PageLook, finish: @escaping (PageLook.Outcome) -> Void) {
        guard let acceptance = look.session?.acceptance, let proof = proof(of: look, acceptance) else {
            return lookAtAddress(look, finish: finish)
        }
        let key = look.slot.key
        if look.mayShare {
            if waiting[key]?.append(finish) != nil { return }
            waiting[key] = []
        }
        let began = runtime.loop.now.nanoseconds
        ask(proof, as: look, hasSession: true) { [self] outcome in
            let others = look.mayShare ? waiting.removeValue(forKey: key) ?? [] : []
            if case .passes = outcome { acceptance.recordVerification(at: began) }
            if case .unknown = outcome { lookAtAddress(look, finish: finish) } else { finish(outcome) }
            for other in others { other(outcome) }
        }
    }

    private func proof(of look: PageLook, _ acceptance: SessionAcceptance) -> WebURL? {
        look.slot.login.proof ?? acceptance.asking.map { WebURL(origin: look.address.origin, path: $0) }
    }

    /// Asks for the request's own page, and then if its address asks for a login without the session.
    private func lookAtAddress(_ look: PageLook, finish: @escaping (PageLook.Outcome) -> Void) {
        let began = runtime.loop.now.nanoseconds
        ask(look.address, as: look, hasSession: look.session != nil) { [self] outcome in
            finish(outcome)
            guard case .passes = outcome, let acceptance = look.session?.acceptance, look.address.query == nil,
                acceptance.maySearch()
            else { return }
            ask(look.address, as: look, hasSession: false) { outcome in
                guard case .asks = outcome else { return }
                acceptance.remember(asking: look.address.path)
                acceptance.recordVerification(at: began)
            }
        }
    }

    /// Asks for a page by GET, with or without the sessions of the request.
    private func ask(
        _ address: WebURL, as look: PageLook, hasSession: Bool, finish: @escaping (PageLook.Outcome) -> Void
    ) {
        var request = SideRequest(method: .get, url: address)
        request.allowsPartialBody = true
        request.isLook = true
        var isComplete = true
        if hasSession {
            do throws(LoginFailure) {
                try look.fields.write(into: &request, now: runtime.wallClock())
            } catch {
                isComplete = false
            }
        }
        runtime.transport.send(request, of: look.slot.login.name, plan: look.plan) { [self, isComplete] result in
            guard isComplete, case .success(let response) = result, !InconclusiveStatus.contains(response.status) else {
                return finish(.unknown)
            }
            let page = ExaminedResponse(response, url: address)
            switch look.slot.login.trigger.detector?.examine(page, hasSession: hasSession) {
            case .challenged: finish(.asks(page))
            case .replay, .stale, .refused: finish(.unknown)
            case .needsBody, .pass, nil:
                if hasSession { takeCookies(of: response, from: address, for: look) }
                finish(.passes)
            }
        }
    }

    /// Takes renewed cookies of the session.
    private func takeCookies(of response: SideResponse, from address: WebURL, for look: PageLook) {
        for value in response.fields.bytes(of: .setCookie) {
            _ = look.session?.session.cookies?.take(value, from: address, now: runtime.wallClock())
        }
    }
}

extension SessionFields {
    /// Adds the fields to a request of the daemon's own.
    fileprivate func write(into request: inout SideRequest, now: Int64) throws(LoginFailure) {
        var fields = request.fields
        func add(_ name: Span<UInt8>, _ value: Span<UInt8>) {
            let text = name.text(ByteRange(start: 0, end: name.count))
            guard let name = HTTPField.Name(text) else { return }
            fields.append(
                HTTPField(name: name, value: value.text(ByteRange(start: 0, end: value.count))))
        }
        forEach(keepingCredentials: false, add)
        if hasSigners {
            let signing = SigningRequest(
                method: "GET", origin: request.url.origin, target: request.url.target, now: now)
            _ = try sign(signing) { name, value in add(name.rawName.utf8.span, value) }
        }
        if hasCookies {
            var target = ByteQueue()
            target.append(request.url.target.utf8.span)
            if let line = cookies(for: target, to: request.url.origin, now: now).merged(with: []) {
                fields.set(.cookie, to: line)
            }
        }
        request.fields = fields
    }
}
