// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

extension LocalReply {
    /// The whole response to a caller who is turned away before its request is read. Without `Date`, which a 5xx may lack
    /// (RFC 9110 §6.6.1), so that it can be kept ready.
    var farewell: [UInt8] { farewell(isAuthority: false) }

    /// The same, from a listener that answers other proxies or not.
    func farewell(isAuthority: Bool) -> [UInt8] {
        var answer = isAuthority ? denial.answer() : answer()
        if isAuthority { answer.fields += denialFields }
        var queue = ByteQueue()
        ResponseWriter.statusLine(answer.status, to: &queue)
        ResponseWriter.field("Content-Type", answer.contentType, to: &queue)
        ResponseWriter.contentLength(UInt64(answer.body.count), to: &queue)
        ResponseWriter.field("Cache-Control", "no-store", to: &queue)
        for field in answer.fields { ResponseWriter.field(field.name, field.value, to: &queue) }
        ResponseWriter.connection(keepsAlive: false, to: .http11, in: &queue)
        ResponseWriter.endOfHead(to: &queue)
        queue.append(answer.body)
        return queue.withSpan { bytes in bytes.indices.map { bytes[$0] } }
    }

    /// The reply to a caller whom nothing at `listener` is for.
    static func notAdmitted(user: UInt32?, by listener: ListenerPlan) -> LocalReply {
        let place = listener.users == nil ? "of any route of" : "of"
        return LocalReply(
            .callerNotAllowed,
            detail: user == nil
                ? "\(Admission.stranger) Listener \(listener.name) has `users`."
                : "The caller's user is not under `users` \(place) listener \(listener.name). Add it there, or call as one of those."
        )
    }
}
