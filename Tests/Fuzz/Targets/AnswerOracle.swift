// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The answer in the bytes of an upstream's connection, read slowly as RFC 9112 §6.3 has it.
struct AnswerOracle {
    /// The statuses of the interim heads before the final one.
    private(set) var interims: [Int] = []
    /// The final head with its empty line; `nil` if there is none.
    private(set) var head: [UInt8]?
    /// The number of bytes up to the end of the final head.
    private(set) var headEnd = 0
    private(set) var status = 0
    private(set) var body: [UInt8] = []
    /// The number of bytes after the answer; `nil` if it does not end by itself, or has not ended.
    private(set) var rest: Int?
    /// True if only the end of the connection ends the body.
    private(set) var isUntilEnd = false
    /// True if the connection may take another request, as far as the head says (RFC 9112 §9.3).
    private(set) var isPersistent = false

    /// True if the answer is whole when the connection ends here.
    var isWhole: Bool { rest != nil || isUntilEnd }

    init(_ bytes: [UInt8], isHeadRequest: Bool) {
        var start = 0
        while let (lines, end) = Oracle.section(bytes[start...]), let line = lines.first,
            let status = Int(String(decoding: line.dropFirst(9).prefix(3), as: UTF8.self))
        {
            defer { start = end }
            if status < 200, status != 101 {
                interims.append(status)
                continue
            }
            self.status = status
            head = Array(bytes[start..<end])
            headEnd = end
            let fields = lines.dropFirst().compactMap(Oracle.field)
            let closes = fields.contains { $0.name == "connection" && $0.members.contains("close") }
            isPersistent = !line.starts(with: "HTTP/1.0".utf8) && !closes
            frame(bytes[end...], fields, isHeadRequest: isHeadRequest)
            return
        }
    }

    private mutating func frame(_ bytes: ArraySlice<UInt8>, _ fields: [Oracle.Field], isHeadRequest: Bool) {
        if isHeadRequest || status == 204 || status == 304 {
            rest = bytes.count
        } else if fields.contains(where: { $0.name == "transfer-encoding" }) {
            let read = ChunkOracle.read(Array(bytes))
            body = read.data
            rest = read.end.map { bytes.count - $0 }
        } else if let field = fields.first(where: { $0.name == "content-length" }) {
            let length = field.members.first { !$0.isEmpty }.flatMap(UInt64.init) ?? 0
            body = Array(bytes.prefix(Int(min(length, UInt64(bytes.count)))))
            if UInt64(body.count) == length { rest = bytes.count - body.count }
        } else {
            body = Array(bytes)
            isUntilEnd = true
        }
    }
}
