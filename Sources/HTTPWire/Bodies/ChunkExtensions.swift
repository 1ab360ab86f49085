// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The extensions behind a chunk size, checked and dropped (RFC 9112 section 7.1.1):
/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`.
///
/// "Bad" white space has to be taken where the grammar has it (RFC 9110 section 5.6.3), and nowhere else: `5 CRLF` with a
/// space behind the size is refused.
struct ChunkExtensions: Sendable {
    private enum State {
        case beforeSemicolon, beforeName, name, afterName, beforeValue, token, quoted, escaped, afterQuoted
    }

    private var state = State.beforeSemicolon

    /// Takes one byte; true when it was the CR that ends the extensions.
    mutating func endsAfter(_ byte: UInt8) throws(WireErrorCode) -> Bool {
        // A bare LF inside is how two readers come to see different chunks.
        guard byte != .lineFeed else { throw .chunkTerminatorInvalid }
        switch state {
        case .beforeSemicolon:
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        case .beforeName:
            if ByteClass.token.contains(byte) { state = .name } else if !byte.isBlank { throw .chunkExtensionInvalid }
        case .name:
            if ByteClass.token.contains(byte) { break }
            if byte == .carriageReturn { return true }
            try nameEnd(byte)
        case .afterName:
            try nameEnd(byte)
        case .beforeValue:
            if byte == UInt8(ascii: "\"") {
                state = .quoted
            } else if ByteClass.token.contains(byte) {
                state = .token
            } else if !byte.isBlank {
                throw .chunkExtensionInvalid
            }
        case .token:
            if ByteClass.token.contains(byte) { break }
            if byte == .carriageReturn { return true }
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        case .quoted:
            if byte == UInt8(ascii: "\"") {
                state = .afterQuoted
            } else if byte == UInt8(ascii: "\\") {
                state = .escaped
            } else if !ByteClass.quotedText.contains(byte), byte < 0x80 {
                throw .chunkExtensionInvalid
            }
        case .escaped:
            guard byte.isFieldValue else { throw .chunkExtensionInvalid }
            state = .quoted
        case .afterQuoted:
            if byte == .carriageReturn { return true }
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        }
        return false
    }

    private mutating func nameEnd(_ byte: UInt8) throws(WireErrorCode) {
        if byte == UInt8(ascii: "=") {
            state = .beforeValue
        } else {
            try separator(byte, blankLeadsTo: .afterName)
        }
    }

    private mutating func separator(_ byte: UInt8, blankLeadsTo next: State) throws(WireErrorCode) {
        if byte == UInt8(ascii: ";") {
            state = .beforeName
        } else if byte.isBlank {
            state = next
        } else {
            throw .chunkExtensionInvalid
        }
    }
}
