// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

extension LocalReply {
    /// The whole response to a caller who is turned away before its request is read. Without `Date`, which a 5xx may lack
    /// (RFC 9110 §6.6.1), so that it can be kept ready.
    var farewell: [UInt8] {
        let answer = answer()
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
}
