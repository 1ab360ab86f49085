// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CZlib

/// Content codings (RFC 9110 §8.4), undone for a look at the beginning of a page. What passes to the caller stays as it is.
enum ContentCoding {
    /// zlib's word for "gzip or zlib, whichever it begins as", and for deflate without any wrapper, which some servers send
    /// where RFC 9110 §8.4.1.2 wants that of zlib.
    private static let (wrapped, bare): (Int32, Int32) = (15 + 32, -15)

    /// The beginning of what `bytes` mean, at most `limit` bytes: of gzip and deflate what comes out of them, also where they
    /// end in their middle; nothing where a coding is unknown, several are laid on one another, or it is broken.
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
