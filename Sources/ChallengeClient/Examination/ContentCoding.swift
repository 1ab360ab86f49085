// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CZlib

/// Content codings (RFC 9110 §8.4), decoded to examine the beginning of a page. Delivered bytes stay encoded.
enum ContentCoding {
    /// zlib's window bits: gzip or zlib by the first bytes, and raw deflate, which some servers send although RFC 9110
    /// §8.4.1.2 wants a zlib wrapper.
    private static let (wrapped, bare): (Int32, Int32) = (15 + 32, -15)

    /// Decodes the beginning of `bytes`, at most `limit` bytes of output.
    ///
    /// Truncated gzip or deflate yields its beginning. Unknown, combined or broken codings yield nothing.
    static func undone(_ bytes: [UInt8], _ codings: [String], limit: Int) -> [UInt8] {
        let names = codings.flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }.filter { $0 != "identity" && !$0.isEmpty }
        switch names {
        case []: return bytes
        case ["gzip"], ["x-gzip"]: return inflated(bytes, wrapped, limit: limit) ?? []
        case ["deflate"]: return inflated(bytes, wrapped, limit: limit) ?? inflated(bytes, bare, limit: limit) ?? []
        default: return []
        }
    }

    private static func inflated(_ bytes: [UInt8], _ windowBits: Int32, limit: Int) -> [UInt8]? {
        let result = unsafe [UInt8](unsafeUninitializedCapacity: limit) { output, count in
            let made = unsafe bytes.withUnsafeBufferPointer { input in
                unsafe countersign_inflate_beginning(
                    input.baseAddress, UInt32(clamping: input.count), output.baseAddress, UInt32(clamping: limit),
                    windowBits)
            }
            count = max(0, made)
        }
        return result.isEmpty && !bytes.isEmpty ? nil : result
    }
}

/// The content codings that can be decoded to find login forms.
package enum ReadableCodings {
    private static let known: Set<String> = ["deflate", "gzip", "identity", "x-gzip"]

    /// Returns the readable members of an `Accept-Encoding` with their weights, or `identity` (RFC 9110 §12.5.3).
    package static func among(_ list: String) -> String {
        let kept = list.split(separator: ",").filter { member in
            let name = member.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
            return known.contains(name.lowercased())
        }
        // Without `*`, any coding that is not named is refused, or at most allowed (§12.5.3).
        return kept.isEmpty ? "identity" : kept.joined(separator: ",")
    }
}
