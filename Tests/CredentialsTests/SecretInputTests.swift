// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Secrets
import System
import Testing

@testable import Credentials

@Suite("Secret input")
struct SecretInputTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func value(of content: [UInt8]) throws -> Secret {
        let file = try Descriptor(opening: directory.write(content, to: "input"), O_RDONLY)
        let input = SecretInput(input: file.number, terminal: "/no/such/tty")
        #expect(!input.isTyped)
        return try input.value("Value: ")
    }

    @Test("a secret from standard input is the whole input without one final newline")
    func newline() throws {
        #expect(try value(of: Array("1234\n".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234\r\n".utf8)) == Secret("1234"))
        #expect(try value(of: [5, 2, 0, 10]) == Secret([5, 2, 0, 10]))
    }

    @Test("a secret from standard input is refused if empty or too long")
    func bounds() throws {
        for content in [[], Array("\n".utf8), Array(repeating: 65, count: (1 << 20) + 1)] {
            let error = #expect(throws: KeyringError.self) { try value(of: content) }
            #expect(error?.kind == .invalid)
        }
        #expect(try value(of: Array(repeating: 65, count: 1 << 20)).count == 1 << 20)
    }

    @Test("a secret prompt without a terminal fails with the alternatives")
    func noTerminal() {
        let input = SecretInput(terminal: "/no/such/tty")
        let error = #expect(throws: KeyringError.self) { try input.ask("Passphrase: ") }
        #expect(error?.kind == .noPassphrase)
        #expect(error?.reason.contains("key file") == true)
    }
}
