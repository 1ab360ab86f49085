// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Names under which a `StateStore` keeps something.
enum StateName {
    /// `text` in signs that a name may hold, each other byte as `_XX`, so that no two texts share one.
    static func word(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                String(Character(Unicode.Scalar(byte)))
            default:
                "_\(byte < 16 ? "0" : "")\(String(byte, radix: 16))"
            }
        }.joined()
    }
}
