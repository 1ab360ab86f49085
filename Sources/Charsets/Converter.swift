// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// One conversion of the C library (`iconv`), in the state that the bytes so far have left.
@safe
final class Converter {
    private static let windowSize = 4096

    private let handle: iconv_t

    /// Returns `nil` if the library has no such conversion.
    init?(from source: String, to target: String) {
        let found = unsafe iconv_open(target, source)
        guard unsafe found != UnsafeMutableRawPointer(bitPattern: -1), let handle = unsafe found else { return nil }
        unsafe self.handle = handle
    }

    deinit { _ = unsafe iconv_close(handle) }

    /// Converts `bytes` from an index on. Returns the index of what cannot be converted; `nil` at the end.
    func convert(_ bytes: [UInt8], from start: Int, into output: inout [UInt8]) -> Int? {
        var position = start
        var bytes = bytes
        while position < bytes.count {
            let (end, isStopped) = step(&bytes, position, &output)
            if isStopped { return end }
            guard end > position else { return position }
            position = end
        }
        return nil
    }

    /// Returns to the initial state, writing the bytes that lead there.
    func reset(into output: inout [UInt8]) {
        var none: [UInt8] = []
        _ = step(&none, 0, &output)
    }

    private func step(_ bytes: inout [UInt8], _ start: Int, _ output: inout [UInt8]) -> (end: Int, isStopped: Bool) {
        var window = [UInt8](repeating: 0, count: Self.windowSize)
        var inputLeft = bytes.count - start
        var outputLeft = window.count
        var isStopped = false
        let isReset = bytes.isEmpty
        unsafe bytes.withUnsafeMutableBytes { input in
            unsafe window.withUnsafeMutableBytes { target in
                var from =
                    unsafe isReset ? nil : input.baseAddress?.advanced(by: start).assumingMemoryBound(to: CChar.self)
                var to = unsafe target.baseAddress?.assumingMemoryBound(to: CChar.self)
                let result = unsafe iconv(handle, &from, &inputLeft, &to, &outputLeft)
                // E2BIG: the window is full.
                isStopped = result == -1 && errno != E2BIG
            }
        }
        output += window[..<(window.count - outputLeft)]
        return (bytes.count - inputLeft, isStopped)
    }
}

/// The upper half of an encoding of one byte per character.
struct SingleByteTable {
    /// Text of the bytes from 0x80 on; `nil` for a byte that means nothing.
    private var characters: [Unicode.Scalar?]

    /// Returns `nil` if the C library has no such encoding.
    init?(_ converter: String, of name: String) {
        guard let converter = Converter(from: converter, to: "UTF-8") else { return nil }
        characters = (UInt8(0x80)...0xFF).map { byte in
            var text: [UInt8] = []
            let isMissing = converter.convert([byte], from: 0, into: &text) != nil
            // Vietnamese and Hebrew letters are held back for an accent that may follow.
            converter.reset(into: &text)
            if isMissing {
                // Of the standard's tables, those of Windows map the bytes that they lack to controls.
                return byte < 0xA0 ? Unicode.Scalar(byte) : nil
            }
            return String(decoding: text, as: UTF8.self).unicodeScalars.first
        }
        for (byte, scalar) in CharsetLabels.corrections[name] ?? [] { characters[Int(byte & 0x7F)] = scalar }
    }

    func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count + bytes.count / 2)
        let pieces = characters.map { $0.map { Array(String($0).utf8) } }
        for byte in bytes {
            if byte >= 0x80, let piece = pieces[Int(byte & 0x7F)] { text += piece } else { text.append(byte) }
        }
        return text
    }

    func byte(of scalar: Unicode.Scalar) -> UInt8? {
        characters.firstIndex(of: scalar).map { UInt8(truncatingIfNeeded: $0) | 0x80 }
    }
}
