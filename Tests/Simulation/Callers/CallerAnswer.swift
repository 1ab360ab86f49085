// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An answer as a caller receives it.
struct CallerAnswer {
    var status = 0
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// True if all of it has come.
    var isWhole = false
    /// The number of its bytes on the connection.
    var length = 0

    /// Returns the value of a field, or `nil`.
    func value(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Reads the final answer at the beginning of `bytes`; `nil` if its head is not there. Interim answers are skipped.
    ///
    /// `isAtEnd`: no more bytes will come.
    init?(_ bytes: [UInt8], to method: String, isAtEnd: Bool) {
        var start = 0
        while true {
            guard let end = Self.endOfHead(bytes, from: start) else { return nil }
            let lines = String(decoding: bytes[start..<end], as: UTF8.self).split(separator: "\r\n").map(String.init)
            guard let first = lines.first, first.hasPrefix("HTTP/1.1 "), let code = Int(first.dropFirst(9).prefix(3))
            else { return nil }
            start = end + 4
            guard code >= 200 else { continue }
            status = code
            for line in lines.dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                fields.append((String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " })))
            }
            break
        }
        readBody(bytes, from: start, method, isAtEnd)
    }

    private mutating func readBody(_ bytes: [UInt8], from start: Int, _ method: String, _ isAtEnd: Bool) {
        if method == "HEAD" || status == 204 || status == 304 {
            (isWhole, length) = (true, start)
        } else if value("transfer-encoding") == "chunked" {
            readChunks(bytes, from: start)
        } else if let count = value("content-length").flatMap({ Int($0) }) {
            body = Array(bytes[start..<min(bytes.count, start + count)])
            (isWhole, length) = (body.count == count, start + count)
        } else {
            body = Array(bytes[start...])
            (isWhole, length) = (isAtEnd, bytes.count)
        }
    }

    private mutating func readChunks(_ bytes: [UInt8], from start: Int) {
        var place = start
        while true {
            var end = place
            while end + 1 < bytes.count, bytes[end] != 13 || bytes[end + 1] != 10 { end += 1 }
            guard end + 1 < bytes.count else { return }
            let line = String(decoding: bytes[place..<end], as: UTF8.self)
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16) else { return }
            place = end + 2
            guard size > 0 else { break }
            guard bytes.count >= place + size + 2 else {
                body += bytes[place..<min(bytes.count, place + size)]
                return
            }
            body += bytes[place..<place + size]
            place += size + 2
        }
        while true {
            var end = place
            while end + 1 < bytes.count, bytes[end] != 13 || bytes[end + 1] != 10 { end += 1 }
            guard end + 1 < bytes.count else { return }
            let isLast = end == place
            place = end + 2
            if isLast { break }
        }
        (isWhole, length) = (true, place)
    }

    private static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= start + 4 else { return nil }
        return (start...bytes.count - 4).first {
            bytes[$0] == 13 && bytes[$0 + 1] == 10 && bytes[$0 + 2] == 13 && bytes[$0 + 3] == 10
        }
    }

    /// The code of a local reply (RFC 9457), or `nil`.
    var code: String? {
        guard value("content-type")?.hasPrefix("application/problem+json") == true else { return nil }
        return String(decoding: body, as: UTF8.self).components(between: "\"code\":\"", and: "\"")
    }
}

extension CallerAnswer {
    /// True if a value waits after a login without a verdict, such as one in the middle of a restart. An answer to HEAD has no words.
    var isHeldBack: Bool {
        body.isEmpty
            ? value("retry-after") != nil : String(decoding: body, as: UTF8.self).contains("No answer has shown yet")
    }
}
