// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire

// The request's body: what is kept of it, what happens where that is not enough, and what comes behind it.
extension Exchange {
    /// Decides what is kept of the body that is to come, and begins with it.
    func prepareBody(_ client: UpstreamClient, _ route: RouteSessions) {
        guard request.hasBody else {
            isTooLong = false
            body.reset(tiers: .none, spool: nil, isEmpty: true)
            return
        }
        let keeping = client.plan.replay.keeping(
            bodyOf: request, canBeChallenged: route.canBeChallenged, spool: runtime.services.replay)
        isTooLong = keeping.isTooLong
        body.reset(tiers: keeping.tiers, spool: runtime.services.replay, isEmpty: false)
        if isTooLong, !request.isUpgrade, client.expectations.isHonored(at: runtime.loop.now) {
            request.expectsContinue = true
        }
    }

    /// The exchange ends because its body is gone. The caller is told to send it again, so the session is won meanwhile.
    func giveUpReplay(at slot: Int) {
        guard let client, let route else { return }
        runtime.services.replay?.figures.wasNotReplayable()
        guard route.slots[slot].login.refusal == nil else { return }
        let rejected = slot < used.count && used[slot] != 0 ? used[slot] : nil
        runtime.winUnawaited(
            route, slot: slot, rejected: rejected, ticket: ticket, of: client, challenge: challenge, cause: loginCause)
    }

    /// The body is asked for: the upstream has agreed, or let the wait pass, or it is HTTP/2, where libcurl does not wait.
    func noteExpectation() {
        defer { expectingSince = .never }
        guard let client, let stream else { return }
        // libcurl waits by the system's clock.
        let end = expectingSince.advanced(byMilliseconds: ExpectationMemory.waitMilliseconds)
        let isOver = stream.hasWaited ?? (runtime.loop.systemNow >= end)
        if stream.transfer.upload.wasContinued || isOver {
            client.expectations.note(isHonored: stream.transfer.upload.wasContinued, at: runtime.loop.now)
        }
    }

    /// Those that a session's fields take the place of stay here, as they would among the fields of the head.
    func supplyTrailers() -> Bool {
        guard let stream, let sessions = route?.fields else { return false }
        do throws(CurlError) {
            try trailers.forEach { (name, value) throws(CurlError) in
                let kind = FieldName(name, ByteRange(start: 0, end: name.count))
                if sessions.override(kind, named: name) { return }
                try stream.appendTrailer(name: name, value: value)
            }
            return true
        } catch {
            return false
        }
    }
}
