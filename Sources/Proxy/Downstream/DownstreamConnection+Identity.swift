// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

// Who answers here.
extension DownstreamConnection {
    /// Answers `OPTIONS *` that is to go no further (`Max-Forwards: 0`, RFC 9110 §7.6.2), whatever the listener is for and its
    /// routes take. So `countersign doctor` can ask whether a listener's address is held by a countersign, and no refused
    /// request is logged. Whether it was that.
    func answersForItself(_ request: RequestHead) -> Bool {
        guard request.target.form == .asterisk else { return false }
        let isServed = head.withSpan { bytes in
            MaxForwards(request, in: bytes) == .left(0)
                && request.authority.map { listener.hosts.accepts($0, in: bytes) } ?? true
        }
        guard isServed, listener.users.map({ user.map($0.contains) ?? false }) ?? true else { return false }
        let fields = [("Allow", Admission.methods), ("Proxy-Status", "countersign")]
        deliver(LocalAnswer(status: 200, contentType: "", body: [], fields: fields))
        return true
    }
}
