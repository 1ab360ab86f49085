// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import FieldBytes
internal import HTTPTypes

/// Side requests of a login that is protected by a login page (WebSEAL in front of MobileFirst).
///
/// They carry the page's session, and log in to the page if it comes in place of an answer. The logins of gateways
/// themselves send theirs directly.
struct GuardedSideRequests: SideRequests {
    private let direct: LoopSideRequests
    private let loop: EventLoop
    private let runtime: LoopBound<ClientRuntime>
    private let plan: UpstreamPlan
    private let cause: LoginCause
    private let gate: SharedAttemptGate
    private let wallClock: @Sendable () -> Int64

    /// Creates side requests of the login named `login` for the upstream of `plan`, on the loop's thread.
    init(runtime: ClientRuntime, plan: UpstreamPlan, login: String, cause: LoginCause) {
        self.cause = cause
        direct = LoopSideRequests(runtime: runtime, plan: plan, login: login)
        loop = runtime.loop
        self.runtime = LoopBound(runtime, to: runtime.loop)
        self.plan = plan
        gate = runtime.gate
        wallClock = runtime.services.wallClock
    }

    /// Sends `request`, and sends it again if a login page answers and its login succeeds.
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let pages = pages(at: request.url)
        guard !pages.isEmpty else { return try await direct.send(request) }
        let (answer, met) = try await send(request, with: pages)
        guard let met else { return answer }
        // A login page answers instead of the server, which has not seen the request.
        if let generation = met.generation, met.slot.login.confirmsSessions {
            let isOver = await withCheckedContinuation { continuation in
                loop.execute {
                    runtime.value.confirmations.requestConfirmation(
                        of: met.slot, generation: generation, at: plan, challenge: met.challenge, cause: cause
                    ) { continuation.resume(returning: $0) }
                }
            }
            // The page is the proper answer of that one URL.
            guard isOver else { return answer }
        }
        let outcome = await withCheckedContinuation { continuation in
            loop.execute {
                runtime.value.logins.request(
                    met.slot, rejected: met.generation, at: plan, challenge: met.challenge, cause: cause
                ) { continuation.resume(returning: $0) }
            }
        }
        if case .failed(let failure) = outcome {
            throw SideRequestError(.guarded(failure), reason: "\(met.slot.login.name): \(failure.code.rawValue)")
        }
        return try await send(request, with: pages).answer
    }

    /// A login page that came in place of an answer.
    private struct Met {
        let slot: RouteSessions.Slot
        /// The generation of the session that the request carried.
        let generation: UInt64?
        let challenge: ExaminedResponse
    }

    private func send(
        _ request: SideRequest, with pages: [RouteSessions.Slot]
    ) async throws(SideRequestError) -> (answer: SideResponse, met: Met?) {
        let now = wallClock()
        let sessions = pages.map { slot in gate.held(slot.key).flatMap { $0.isExpired(at: now) ? nil : $0 } }
        var request = request
        for cookies in sessions.compactMap(\.?.session.cookies) {
            request.fields.set(
                .cookie, to: cookies.merged(withLines: request.fields.bytes(of: .cookie), for: request.url, now: now))
        }
        let answer = try await direct.send(request)
        let examined = ExaminedResponse(answer, method: request.method, url: request.url)
        for (slot, session) in zip(pages, sessions) {
            let asked = slot.login.trigger.detector?.examine(examined, hasSession: session?.session.isEmpty == false)
            guard asked == .challenged() else { continue }
            return (answer, Met(slot: slot, generation: session?.generation, challenge: examined))
        }
        for value in answer.fields.bytes(of: .setCookie) {
            for session in sessions.compactMap(\.self) {
                if session.session.cookies?.take(value, from: request.url, now: now) == true { break }
            }
        }
        return (answer, nil)
    }

    /// Returns the login pages before a URL.
    private func pages(at url: WebURL) -> [RouteSessions.Slot] {
        guard url.origin == plan.base.origin else { return [] }
        return plan.logins.matching(Location(url)).filter { $0.isLoginPage && $0.refusal == nil }.map {
            RouteSessions.Slot(login: $0, scope: $0.defaultScope)
        }
    }
}
