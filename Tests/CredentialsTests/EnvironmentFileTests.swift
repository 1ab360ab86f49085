// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Testing

@testable import Credentials

@Suite("Files of variables")
struct EnvironmentFileTests {
    private func variables(_ text: String) throws -> [String: String] {
        try EnvironmentFile.variables(in: Secret(text)).mapValues { $0.revealText() }
    }

    @Test(
        "are read as systemd reads them (systemd.exec(5))",
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

    @Test("one whose quote does not end is refused, with the line where it begins")
    func unfinished() {
        for text in ["A=1\nB=\"2\nC=3\n", "\nA='", "A=1\nB=\"\\"] {
            #expect(throws: EnvironmentFile.Fault.self) { try EnvironmentFile.variables(in: Secret(text)) }
        }
        #expect(throws: EnvironmentFile.Fault(line: 2, reason: "a quote begins that does not end")) {
            try EnvironmentFile.variables(in: Secret("A=1\nB=\"2\nC=3\n"))
        }
    }

    @Test("hold credentials by the names of the environment, and are read anew when they change")
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

    @Test("that others may read, that are missing or broken are told, without what they hold")
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
        #expect(reason() == "\(path):1: a quote begins that does not end")
        #expect(unsafe chmod(path, 0o644) == 0)
        #expect(reason().contains("run: chmod 600 \(path)"))
        #expect(unsafe unlink(path) == 0)
        #expect(reason().contains(path))
    }
}
