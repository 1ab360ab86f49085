// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// HTTP/1.1 read a second time: slowly, in the words of the RFCs, and without any line of `HTTPWire`.
enum Oracle {
    /// RFC 9110 section 5.6.2.
    static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { isTokenByte($0) }
    }

    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), 0x30...0x39: true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// RFC 9110 section 5.5: no controls but the tab.
    static func isValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 == 9 || ($0 >= 32 && $0 != 127) }
    }

    /// Whether no white space is around it.
    static func isTrimmed(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        let blanks: [UInt8?] = [32, 9]
        return !blanks.contains(bytes.first) && !blanks.contains(bytes.last)
    }

    /// The lines before the empty one that ends a head or a trailer section, and where what follows begins; `nil` where
    /// there is no empty line. A line ends with CRLF and holds neither.
    static func section(_ bytes: ArraySlice<UInt8>) -> (lines: [ArraySlice<UInt8>], end: Int)? {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var index = start
        while index + 1 < bytes.endIndex {
            guard bytes[index] == 13, bytes[index + 1] == 10 else {
                index += 1
                continue
            }
            if index == start { return (lines, index + 2) }
            lines.append(bytes[start..<index])
            index += 2
            start = index
        }
        return nil
    }

    /// Name in lower case and value of a line; `nil` where it follows no grammar (RFC 9112 section 5).
    static func field(_ line: ArraySlice<UInt8>) -> Field? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 32 || first == 9 { value.removeFirst() }
        while let last = value.last, last == 32 || last == 9 { value.removeLast() }
        guard isToken(line[..<colon]), isValue(value) else { return nil }
        return Field(
            name: String(decoding: line[..<colon], as: UTF8.self).lowercased(), value: Array(value),
            nameEnd: colon, valueStart: value.startIndex)
    }

    struct Field: Equatable {
        var name: String
        var value: [UInt8]
        var nameEnd: Int
        var valueStart: Int

        var text: String { String(decoding: value, as: UTF8.self) }
        /// The members of a comma-separated list, in lower case.
        var members: [String] {
            text.lowercased().split(separator: ",").map { member in
                String(member.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
            }
        }
        /// A number of digits and nothing else.
        var number: UInt64? { value.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil }
    }

    /// What concerns one connection only, always (RFC 9110 section 7.6.1 and the fields of proxies, section 11.7).
    static let hopByHop: Set<String> = [
        "connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
}
