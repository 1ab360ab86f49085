// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@Suite("The status page, in a browser")
struct StatusPageTests {
    @Test("shows what the daemon does, brings itself up to date, and breaks no rule of its own policy")
    func browser() async throws {
        try await withBank(startsDaemon: false) { bank in
            let port = Ports.next()
            bank.configure { $0.adminPort = port }
            try await bank.startDaemon()
            #expect(try await bank.curl("/balance").status == 200)
            let address = "http://127.0.0.1:\(port)/"
            let plain = try await Curl.run(["-i", address], in: bank.folder)
            #expect(plain.status == 200)
            let (page, errors) = try await dump(address, in: bank.folder)
            for text in [
                "session held", "bank", "Conversations", "preauthorize", "1 request in 10 min", "p99", "10 min ago",
                "<dt>Listeners</dt><dd>127.0.0.1:\(bank.port)</dd>",
            ] {
                #expect(page.contains(text), "\(text)")
            }
            // The browser's own clock runs ahead while nothing is under way: three times it looks again.
            #expect(page.contains("data-updates=\""))
            #expect(!errors.contains("CONSOLE"), "\(errors)")
            // At three widths, light and dark.
            let looked = try await Command.run([PagePictures.script, address], in: bank.folder)
            #expect(looked.exit == 0, "\(looked.output)\(looked.errors)")
        }
    }

    private func dump(_ address: String, in folder: Folder) async throws -> (page: String, errors: String) {
        let run = try await chromium(["--virtual-time-budget=7000", "--dump-dom", address], in: folder)
        return (run.output, run.errors)
    }

    private func chromium(_ arguments: [String], in folder: Folder) async throws -> Command {
        let options = [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
            "--user-data-dir=\(folder.path(of: "browser"))",
        ]
        return try await Command.run(options + arguments, in: folder)
    }
}
