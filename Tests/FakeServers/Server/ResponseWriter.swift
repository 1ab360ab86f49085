// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A writer of responses, by their delivery: whole, late, cut off, or never.
struct ResponseWriter {
    private let connection: Connection
    /// Number of bytes that may still be sent before the connection is cut.
    private var budget: Int?

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// Writes it; throws if the connection is over, by the peer's will or by the delivery's.
    mutating func write(
        _ response: FakeResponse, to method: String, date: String, staysOpen: Bool
    ) throws(Connection.End) {
        let delivery = response.delivery
        budget = delivery.cutsAfter
        if delivery.resets { connection.resetAtClose() }
        try connection.pause(delivery.delay)
        if delivery.hangs { try connection.awaitDeparture() }
        if case .raw(let bytes) = response.body { return try send(bytes) }
        try send(head(of: response, to: method, date: date, staysOpen: staysOpen))
        guard method != "HEAD", hasBody(response.status) else { return }
        switch response.body {
        case .bytes(let bytes), .untilClose(let bytes), .raw(let bytes): try send(bytes)
        case .chunks(let pieces):
            for piece in pieces {
                try connection.pause(piece.delay)
                guard !piece.bytes.isEmpty else { continue }
                try send(Array("\(String(piece.bytes.count, radix: 16))\r\n".utf8) + piece.bytes + [0x0d, 0x0a])
            }
            try send(Array("0\r\n\r\n".utf8))
        case .generated(let count):
            let alphabet = Array("abcdefghijklmnopqrstuvwxyz".utf8)
            let block = (0..<2600).flatMap { _ in alphabet }
            for start in stride(from: 0, to: count, by: block.count) { try send(block.prefix(count - start)) }
        }
    }

    private func head(of response: FakeResponse, to method: String, date: String, staysOpen: Bool) -> [UInt8] {
        var lines = ["HTTP/1.1 \(response.status) \(reason(response.status))", "Date: \(date)"]
        lines += response.fields.map { "\($0.name): \($0.value)" }
        if hasBody(response.status) {
            switch response.body {
            case .bytes(let bytes): lines.append("Content-Length: \(bytes.count)")
            case .generated(let count): lines.append("Content-Length: \(count)")
            case .chunks: lines.append("Transfer-Encoding: chunked")
            case .raw, .untilClose: break
            }
        }
        if !staysOpen { lines.append("Connection: close") }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }

    private mutating func send(_ bytes: some Collection<UInt8>) throws(Connection.End) {
        guard let left = budget else { return try connection.send(bytes) }
        try connection.send(bytes.prefix(left))
        guard bytes.count < left else { throw .gone }
        budget = left - bytes.count
    }

    /// RFC 9110 §6.4.1.
    private func hasBody(_ status: Int) -> Bool { status >= 200 && status != 204 && status != 304 }
}

private func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 201: "Created"
    case 204: "No Content"
    case 302: "Found"
    case 303: "See Other"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 429: "Too Many Requests"
    case 500: "Internal Server Error"
    case 503: "Service Unavailable"
    default: "Status"
    }
}
