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

    /// True if there is no such line.
    var isEmpty: Bool { starts.isEmpty }

    /// Returns whether `line`, of the response that was examined, stays here.
    package func contains(_ line: FieldLine) -> Bool {
        line.kind == .setCookie && !starts.isEmpty && starts.contains(line.value.start)
    }

    mutating func insert(_ line: FieldLine) { starts.insert(line.value.start) }
}

extension SessionFields {
    /// Lets the sessions of a request to `target` learn from its answer. Returns the cookies in it that are theirs.
    func learn(
        from transfer: Transfer, of plan: UpstreamPlan, target: borrowing ByteQueue, now: Int64
    ) -> HeldCookies {
        if hasSigners {
            let target = target.text
            let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0, only: learnsFrom) }
            for signer in signers { signer.learn(status: head.status, fields: head.fields, target: target) }
        }
        var held = HeldCookies()
        let fields = transfer.answer.fields
        guard hasCookies, fields.contains(where: { $0.kind == .setCookie }) else { return held }
        let url = plan.address(of: target)
        transfer.head.withSpan { bytes in
            for line in fields where line.kind == .setCookie {
                let value = bytes.text(line.value)
                // All are asked: one line may be the cookie of two sessions at the same login.
                var isHeld = false
                for cookies in cookies where cookies.take(value, from: url, now: now) { isHeld = true }
                if isHeld { held.insert(line) }
            }
        }
        return held
    }

    /// The cookies that go to `target`.
    func cookies(for target: borrowing ByteQueue, to origin: Origin, now: Int64) -> RequestCookies {
        target.withSpan { RequestCookies(of: cookies, injected: cookieFields, to: origin, target: $0, now: now) }
    }
}
