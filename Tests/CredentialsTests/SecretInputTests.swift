// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Secrets
import Testing

@testable import Credentials

@Suite("A secret from standard input")
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

    @Test("is all of it but one newline at the end")
    func newline() throws {
        #expect(try value(of: Array("1234\n".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234\r\n".utf8)) == Secret("1234"))
        #expect(try value(of: [5, 2, 0, 10]) == Secret([5, 2, 0, 10]))
    }

    @Test("is never empty, nor without bound")
    func bounds() throws {
        for content in [[], Array("\n".utf8), Array(repeating: 65, count: (1 << 20) + 1)] {
            let error = #expect(throws: KeyringError.self) { try value(of: content) }
            #expect(error?.kind == .invalid)
        }
        #expect(try value(of: Array(repeating: 65, count: 1 << 20)).count == 1 << 20)
    }

    @Test("cannot be asked for without a terminal, which is told with what to do instead")
    func noTerminal() {
        let input = SecretInput(terminal: "/no/such/tty")
        let error = #expect(throws: KeyringError.self) { try input.ask("Passphrase: ") }
        #expect(error?.kind == .noPassphrase)
        #expect(error?.reason.contains("key file") == true)
    }
}
