// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Reader of the host and port of an address (WHATWG URL §3.5).
enum URLHost {
    /// Returns the origin that `authority`, without user information, names.
    ///
    /// Hosts are names of letters, digits, `-` and `_`, IPv4 numbers in any of their forms, and IPv6 addresses in brackets.
    static func origin(
        _ scheme: Origin.Scheme, _ authority: some Collection<UInt8>
    ) throws(AddressFault) -> Origin {
        let text = Array(authority)
        var host = text[...]
        var digits = text[text.endIndex...]
        let bracket = host.first == UInt8(ascii: "[") ? host.firstIndex(of: UInt8(ascii: "]")) : host.startIndex
        guard let bracket else { throw AddressFault("has a bracket that is not closed") }
        if let colon = text[bracket...].firstIndex(of: UInt8(ascii: ":")) {
            host = text[..<colon]
            digits = text[(colon + 1)...]
        }
        // "host:" means the default port.
        let port = digits.isEmpty ? nil : try number(ofPort: digits)
        return Origin(scheme: scheme, host: try name(host), port: port)
    }

    private static func number(ofPort digits: ArraySlice<UInt8>) throws(AddressFault) -> UInt16 {
        guard digits.allSatisfy(\.isDigit), let number = UInt16(String(decoding: digits, as: UTF8.self)), number > 0
        else { throw AddressFault("has no valid port") }
        return number
    }

    /// Returns the host in its canonical form, an IPv6 address without brackets.
    private static func name(_ host: ArraySlice<UInt8>) throws(AddressFault) -> String {
        if host.first == UInt8(ascii: "[") {
            let inner = String(decoding: host.dropFirst().dropLast(), as: UTF8.self)
            guard host.last == UInt8(ascii: "]"), host.count > 1, let address = IPv6Address(inner[...]) else {
                throw AddressFault("has no valid IPv6 address")
            }
            return address.description
        }
        let decoded = percentDecoded(host)
        guard decoded.allSatisfy({ $0 < 0x80 }) else {
            throw AddressFault(
                "has a host name that is not ASCII, which is not supported; the server must write it as xn--…")
        }
        guard decoded.allSatisfy({ $0.isAlphanumeric || ".-_".utf8.contains($0) }) else {
            throw AddressFault("has a character in its host that no name has")
        }
        // One trailing dot is dropped. More, or a leading one, make empty labels, which no name has (RFC 1035 §2.3.1).
        let name = decoded.last == UInt8(ascii: ".") ? decoded.dropLast() : decoded[...]
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard !labels.contains(where: \.isEmpty) else {
            throw AddressFault(name.isEmpty ? "has no host" : "has a host with an empty label")
        }
        if let last = labels.last, last.allSatisfy(\.isDigit) || number(last) != nil {
            guard let address = ipv4(labels) else { throw AddressFault("has no valid IPv4 address") }
            return address
        }
        return String(decoding: name, as: UTF8.self).lowercased()
    }

    /// Returns four decimal numbers for the forms of IPv4 addresses (WHATWG URL §3.5, IPv4 parser): `127.1`, `0x7f000001`.
    private static func ipv4(_ labels: [ArraySlice<UInt8>]) -> String? {
        let numbers = labels.compactMap(number)
        guard labels.count <= 4, numbers.count == labels.count, let last = numbers.last,
            numbers.dropLast().allSatisfy({ $0 <= 255 }), last < 1 << UInt64(8 * (5 - numbers.count))
        else { return nil }
        var octets = Array(numbers.dropLast())
        for index in octets.count..<4 { octets.append(last >> UInt64(8 * (3 - index)) & 255) }
        return octets.map { "\($0)" }.joined(separator: ".")
    }

    /// Returns a number in decimal, octal with `0`, or hexadecimal with `0x`. Those that are too large are all equal.
    private static func number(_ label: ArraySlice<UInt8>) -> UInt64? {
        var digits = label
        var radix = 10
        if digits.count >= 2, digits.first == UInt8(ascii: "0") {
            digits.removeFirst()
            radix = 8
            if digits.first.map({ $0 | 0x20 }) == UInt8(ascii: "x") {
                digits.removeFirst()
                radix = 16
            }
        }
        guard digits.allSatisfy({ $0.hexadecimalValue.map { $0 < radix } ?? false }) else { return nil }
        if digits.isEmpty { return 0 }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: radix) ?? .max
    }

    /// Returns the bytes with their percent-encoded ones decoded, once.
    private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.endIndex,
                let byte = Hex.byte(bytes[index + 1], bytes[index + 2])
            {
                decoded.append(byte)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }
}
