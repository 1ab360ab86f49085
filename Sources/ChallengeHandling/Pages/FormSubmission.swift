// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Charsets
package import Secrets

/// A form's entries as a browser sends them (WHATWG HTML §4.10.22.6 to §4.10.22.8).
package struct FormSubmission: Sendable {
    /// The entries in order.
    package let entries: [FormEntry]
    /// The encoding of the entries in a body.
    package let body: HTMLPage.Form.Body
    /// The encoding of the text.
    package let charset: Charset

    /// Creates a submission; without more, that of a form in UTF-8.
    package init(_ entries: [FormEntry], as body: HTMLPage.Form.Body = .urlEncoded, in charset: Charset = .utf8) {
        self.entries = entries
        self.body = body
        self.charset = charset
    }

    /// The names of the entries with characters that the encoding lacks. A browser sends `&#N;` for them.
    package var incompleteNames: [String] {
        entries.filter { entry in
            var isWhole = true
            _ = charset.encoded(Array(entry.name.utf8), isWhole: &isWhole)
            _ = charset.encoded(entry.value.revealBytes(), isWhole: &isWhole)
            return !isWhole
        }.map(\.name)
    }

    /// Returns the query of the form's address by GET; `nil` if the system cannot convert to the encoding.
    package func query() -> Secret? { pairs().map(FormEncoding.body) }

    /// Returns the body and its media type; `nil` if the system cannot convert to the encoding.
    package func encoded() -> (type: String, body: Secret)? {
        switch body {
        case .urlEncoded: return pairs().map { (FormEncoding.mediaType, FormEncoding.body($0)) }
        case .multipart:
            let boundary = Self.boundary()
            return parts(boundary).map { ("multipart/form-data; boundary=\(boundary)", Secret($0)) }
        case .plain:
            guard let pairs = pairs() else { return nil }
            return (
                "text/plain",
                Secret(pairs.flatMap { $0.name + [UInt8(ascii: "=")] + $0.value.revealBytes() + [0x0D, 0x0A] })
            )
        }
    }

    private func parts(_ boundary: String) -> [UInt8]? {
        guard let pairs = pairs() else { return nil }
        var bytes: [UInt8] = []
        for (pair, entry) in zip(pairs, entries) {
            bytes += "--\(boundary)\r\nContent-Disposition: form-data; name=\"".utf8
            for byte in pair.name {
                switch byte {
                case UInt8(ascii: "\""), 0x0D, 0x0A: bytes += Hex.percentEncoded(byte)
                default: bytes.append(byte)
                }
            }
            bytes.append(UInt8(ascii: "\""))
            if entry.isFile { bytes += "; filename=\"\"\r\nContent-Type: application/octet-stream".utf8 }
            bytes += "\r\n\r\n".utf8
            bytes += pair.value.revealBytes()
            bytes += "\r\n".utf8
        }
        return bytes + Array("--\(boundary)--\r\n".utf8)
    }

    /// Returns the entries in the form's encoding, with each line end as CR LF.
    private func pairs() -> [(name: [UInt8], value: Secret)]? {
        var pairs: [(name: [UInt8], value: Secret)] = []
        for entry in entries {
            var isWhole = true
            guard let name = charset.encoded(Self.normalized(Array(entry.name.utf8)), isWhole: &isWhole),
                let value = charset.encoded(Self.normalized(entry.value.revealBytes()), isWhole: &isWhole)
            else { return nil }
            pairs.append((name, Secret(value)))
        }
        return pairs
    }

    private static func normalized(_ text: [UInt8]) -> [UInt8] {
        guard text.contains(where: { $0 == 0x0D || $0 == 0x0A }) else { return text }
        var result: [UInt8] = []
        for (index, byte) in text.enumerated() {
            switch byte {
            case 0x0D: result += [0x0D, 0x0A]
            case 0x0A: if index == 0 || text[index - 1] != 0x0D { result += [0x0D, 0x0A] }
            default: result.append(byte)
            }
        }
        return result
    }

    /// Returns a boundary that no value contains but by a miracle.
    private static func boundary() -> String {
        let signs = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        var random = SystemRandomNumberGenerator()
        let tail = (0..<24).map { _ in signs[Int.random(in: 0..<signs.count, using: &random)] }
        return "----CountersignFormBoundary\(String(decoding: tail, as: UTF8.self))"
    }
}
