// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The secrets that reach a server: each is for some servers only. The judge of rule 11.
///
/// A secret is the mark, letters and a number, such as `…sessionc0n1`: the last letter and the number are its owner.
enum SecretWatch {
    /// Returns the owners of the secrets among the bytes.
    static func owners(in bytes: [UInt8]) -> Set<String> {
        let mark = Array(Simulation.secretMark.utf8)
        var owners: Set<String> = []
        var index = 0
        while index + mark.count < bytes.count {
            guard bytes[index] == mark[0], bytes[index..<index + mark.count].elementsEqual(mark) else {
                index += 1
                continue
            }
            index += mark.count
            let letters = bytes[index...].prefix { isLetter($0) }
            let digits = bytes[(index + letters.count)...].prefix { isDigit($0) }
            if let letter = letters.last, !digits.isEmpty {
                owners.insert(String(decoding: [letter] + Array(digits), as: UTF8.self))
            }
        }
        return owners
    }

    /// Returns true if a secret is among the bytes.
    static func holdsSecret(_ bytes: [UInt8]) -> Bool {
        var index = 0
        while index + 4 < bytes.count {
            // zQ..7
            if bytes[index] == 0x7A, bytes[index + 1] == 0x51, bytes[index + 2] == 0x2E, bytes[index + 3] == 0x2E,
                bytes[index + 4] == 0x37
            {
                return true
            }
            index += 1
        }
        return false
    }

    /// Returns the line with the first secret among the bytes.
    static func lineWithSecret(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first {
            $0.contains(Simulation.secretMark)
        }
        .map { String($0.prefix(200)) } ?? ""
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte | 0x20 &- 0x20) }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Notes the secrets of a request that are not for `server`.
    static func check(_ request: ServerRequest, at server: SimulatedServer) {
        var bytes = Array(request.target.utf8) + request.body
        for field in request.fields {
            bytes.append(0x20)
            bytes += Array(field.value.utf8)
            if field.value.hasPrefix("Basic ") {
                bytes += Array(Base64Text.decode(String(field.value.dropFirst(6))).utf8)
            }
        }
        if request.fields.count(where: { $0.name.lowercased() == "cookie" }) > 1 {
            server.simulation.violated("rule 9: several Cookie lines (RFC 6265 §5.4)")
        }
        let strange = owners(in: bytes).subtracting(server.protection.secrets)
        if let owner = strange.min() {
            server.simulation.violated(
                "rule 11: a secret of \(owner) reaches \(server.name): \(request.method) \(request.target)")
        }
    }
}

/// The fields in which a proxy describes the caller to a server: exactly one line each, whatever the caller wrote.
enum CallerReport {
    /// Returns the rule that a request breaks, or `nil`.
    static func fault(of request: ServerRequest, for order: Order) -> String? {
        func lines(_ name: String) -> [String] {
            request.fields.filter { $0.name.lowercased().replacing("_", with: "-") == name }.map(\.value)
        }
        let wanted = [
            ("x-forwarded-for", order.forwardedFor.map { "\($0), unknown" } ?? "unknown"),
            ("x-forwarded-proto", "http"), ("x-forwarded-host", "\(order.server.name).localhost:8080"),
        ]
        for (name, value) in wanted where lines(name) != [value] { return "\(name) is \(lines(name))" }
        let names = request.trailers.map { $0.name.lowercased().replacing("_", with: "-") }
        return names.contains("x-forwarded-for") ? "X-Forwarded-For is among the trailers" : nil
    }
}
