// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a helper wrote to its standard error, as it may be logged: without control characters, without secrets, bounded.
struct HelperErrors {
    /// The lines, each of at most 200 characters.
    let lines: [String]

    /// The first lines of `output`, each text of `secrets` in them replaced.
    init(_ output: HelperProcess.Output, secrets: [String]) {
        var bytes = output.standardError[...]
        // A secret that is cut in two would not be recognised.
        if bytes.count >= HelperProcess.errorLimit {
            bytes = bytes[..<(bytes.lastIndex(of: UInt8(ascii: "\n")) ?? bytes.startIndex)]
        }
        var text = String(decoding: bytes, as: UTF8.self)
        for secret in secrets.sorted(by: { $0.count > $1.count }) where !secret.isEmpty {
            text = Self.replacing(secret, in: text)
        }
        lines = text.split(whereSeparator: \.isNewline).map { line in
            let printable = line.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
            return String(String.UnicodeScalarView(printable.prefix(200)))
        }
    }

    private static func replacing(_ secret: String, in text: String) -> String {
        var result = ""
        var rest = text[...]
        while let found = rest.firstRange(of: secret) {
            result += rest[..<found.lowerBound] + "<redacted>"
            rest = rest[found.upperBound...]
        }
        return result + rest
    }
}
