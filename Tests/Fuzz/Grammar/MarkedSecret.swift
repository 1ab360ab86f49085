// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// A secret that is in nothing else, and whatever it may look like.
enum MarkedSecret {
    /// It has what each coding treats in a way of its own.
    static let text = "Zq7/x+ w&\"k%9=vJ"

    /// By the name of the coding; base64 as it is within something longer, too, whatever stands before it.
    static let forms: [(coding: String, bytes: [UInt8])] = {
        let secret = Array(text.utf8)
        func percent(_ isUpper: Bool, _ isForm: Bool) -> [UInt8] {
            secret.flatMap { byte -> [UInt8] in
                if isForm, byte == 0x20 { return [0x2B] }
                let isPlain =
                    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                if isPlain { return [byte] }
                let digits = String(byte, radix: 16, uppercase: isUpper)
                return Array("%\(digits)".utf8)
            }
        }
        func hexadecimal(_ isUpper: Bool) -> [UInt8] {
            secret.flatMap { Array((($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: isUpper)).utf8) }
        }
        var forms: [(String, [UInt8])] = [
            ("itself", secret), ("JSON", Array("Zq7/x+ w&\\\"k%9=vJ".utf8)), ("percent", percent(true, false)),
            ("percent", percent(false, false)),
            ("form", percent(true, true)), ("form", percent(false, true)), ("hexadecimal", hexadecimal(true)),
            ("hexadecimal", hexadecimal(false)),
        ]
        for alphabet in [Base64.Alphabet.standard, .url] {
            for before in 0..<3 {
                // The digits that depend on nothing but the secret.
                let written = Array(Base64.encode(Array(repeating: 0x61, count: before) + secret, alphabet).utf8)
                let bits = (before + secret.count) * 8
                forms.append(("base64", Array(written[((before * 8 + 5) / 6)..<(bits / 6)])))
            }
        }
        return forms
    }()

    /// The coding in which `bytes` hold it; `nil` if they do not.
    static func coding(in bytes: [UInt8]) -> String? {
        forms.first { holds(bytes, $0.bytes) }?.coding
    }

    private static func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        guard bytes.count >= part.count else { return false }
        for start in 0...(bytes.count - part.count) where bytes[start] == part[0] {
            var index = 1
            while index < part.count, bytes[start + index] == part[index] { index += 1 }
            if index == part.count { return true }
        }
        return false
    }
}
