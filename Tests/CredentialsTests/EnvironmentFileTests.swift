// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Testing

@testable import Credentials

@Suite("Environment files")
struct EnvironmentFileTests {
    private func variables(_ text: String) throws -> [String: String] {
        try EnvironmentFile.variables(in: Secret(text)).mapValues { $0.revealText() }
    }

    @Test(
        "an environment file is parsed as by systemd (systemd.exec(5))",
        arguments: [
            ("A=1\nB=2\n", ["A": "1", "B": "2"]),
            ("A=1\r\nB=2", ["A": "1", "B": "2"]),
            ("# A=1\n ; B=2\n\nC=3 # no comment", ["C": "3 # no comment"]),
            ("  A  =  one two  \n", ["A": "one two"]),
            ("A='a b '\nB=\"c \\\"d\\\" \\$e \\n\"\n", ["A": "a b ", "B": "c \"d\" $e \\n"]),
            ("A=a\\\nb\nB=\"c\\\nd\"\nC='e\nf'\n", ["A": "ab", "B": "cd", "C": "e\nf"]),
            ("A=it\\'s \\\\ \\x\n", ["A": "it's \\ x"]),
            ("A=x\"y\"\nB=''\nC=\"a\"'b'c\n", ["A": "x\"y\"", "B": "", "C": "abc"]),
            ("A=1\nA=2\nno sign\n=none\nB=p=q\n", ["A": "2", "B": "p=q"]),
        ])
    func read(text: String, expected: [String: String]) throws {
        #expect(try variables(text) == expected)
    }

    @Test("an environment file with an unterminated quote is refused, with the line of the quote")
    func unfinished() {
        for text in ["A=1\nB=\"2\nC=3\n", "\nA='", "A=1\nB=\"\\"] {
            #expect(throws: EnvironmentFile.Fault.self) { try EnvironmentFile.variables(in: Secret(text)) }
        }
        #expect(throws: EnvironmentFile.Fault(line: 2, reason: "unterminated quote")) {
            try EnvironmentFile.variables(in: Secret("A=1\nB=\"2\nC=3\n"))
        }
    }

    @Test("an environment file names credentials as the environment does, and is read again after a change")
    func credentials() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("COUNTERSIGN_BANK_PIN__PIN=1234\nPATH=/bin\n", to: "secrets.env")
        let source = EnvironmentFileSource(path: path)
        #expect(try source.credential(named: "bank-pin")?["pin"]?.revealText() == "1234")
        #expect(try source.credential(named: "other") == nil)
        #expect(try source.open() == 1)
        let before = source.files
        try directory.write("COUNTERSIGN_BANK_PIN__PIN='56 78'\n", to: "secrets.env")
        #expect(source.files != before)
        #expect(try source.credential(named: "bank-pin")?["pin"]?.revealText() == "56 78")
    }

    @Test("an exposed, missing or malformed environment file is reported without its content")
    func unusable() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("COUNTERSIGN_BANK_PIN__PIN=\"1234\n", to: "secrets.env")
        func reason() -> String {
            do {
                _ = try EnvironmentFileSource(path: path).credential(named: "bank-pin")
                return ""
            } catch {
                return error.reason
            }
        }
        #expect(reason() == "\(path):1: unterminated quote")
        #expect(unsafe chmod(path, 0o644) == 0)
        #expect(reason().contains("run: chmod 600 \(path)"))
        #expect(unsafe unlink(path) == 0)
        #expect(reason().contains(path))
    }
}
