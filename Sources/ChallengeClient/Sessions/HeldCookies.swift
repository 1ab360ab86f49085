// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import HTTPWire

/// The `Set-Cookie` lines of one response that are a session's, and go to no caller.
package struct HeldCookies {
    /// Where their values begin in the head.
    private var starts: Set<Int> = []

    /// No line.
    package init() {}

    /// Returns whether `line`, of the response that was examined, stays here.
    package func contains(_ line: FieldLine) -> Bool {
        line.kind == .setCookie && !starts.isEmpty && starts.contains(line.value.start)
    }

    mutating func insert(_ line: FieldLine) { starts.insert(line.value.start) }
}

extension UpstreamClient {
    /// Lets the sessions of a request learn from its answer. Returns the cookies in it that are theirs.
    func learn(_ sessions: SessionFields, from transfer: Transfer, target: borrowing ByteQueue) -> HeldCookies {
        if sessions.hasSigners {
            let target = text(of: target)
            let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0, only: sessions.learnsFrom) }
            for signer in sessions.signers { signer.learn(status: head.status, fields: head.fields, target: target) }
        }
        var held = HeldCookies()
        let fields = transfer.answer.fields
        guard sessions.hasCookies, fields.contains(where: { $0.kind == .setCookie }) else { return held }
        let (url, now) = (address(of: target), runtime.wallClock())
        transfer.head.withSpan { bytes in
            for line in fields where line.kind == .setCookie {
                let value = bytes.text(line.value)
                // All are asked: one line may be the cookie of two sessions at the same login.
                var isHeld = false
                for cookies in sessions.cookies where cookies.take(value, from: url, now: now) { isHeld = true }
                if isHeld { held.insert(line) }
            }
        }
        return held
    }

    /// The cookies that go to `target`.
    func cookies(of sessions: SessionFields, for target: borrowing ByteQueue) -> RequestCookies {
        let (origin, now) = (plan.base.origin, runtime.wallClock())
        return target.withSpan {
            RequestCookies(of: sessions.cookies, injected: sessions.cookieFields, to: origin, target: $0, now: now)
        }
    }
}
