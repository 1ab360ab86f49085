// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
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

/// The script that opens a page at three widths, light and dark, and the pictures that it compares with.
enum PagePictures {
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    static let script = "\(root)/Tests/Scripts/page-pictures"
    /// The pictures of `docs/operating.md`.
    static let folder = "\(root)/docs/images"
}

@Suite("The pictures of the status page")
struct StatusPagePictureTests {
    private func look(at html: String, _ options: [String] = [PagePictures.folder]) async throws -> Command {
        let folder = try Folder()
        let page = folder.write(html, to: "page.html")
        return try await Command.run([PagePictures.script, page] + options, in: folder)
    }

    /// With COUNTERSIGN_WRITE_PICTURES=1 the pictures are stored instead.
    @Test(
        "the status page looks as in the documentation, fits three widths, and can be read in the light and in the dark"
    )
    func same() async throws {
        let isWriting = unsafe getenv("COUNTERSIGN_WRITE_PICTURES") != nil
        let looked = try await look(
            at: SamplePage.html(), isWriting ? ["--write", PagePictures.folder] : [PagePictures.folder])
        #expect(looked.exit == 0, "\(looked.output)\(looked.errors)")
    }

    @Test("another time and other digits are no other look")
    func digits() async throws {
        let html = SamplePage.html().replacing("14:03:07", with: "15:58:46").replacing("27 MB", with: "31 MB")
        let looked = try await look(at: html)
        #expect(looked.exit == 0, "\(looked.output)\(looked.errors)")
    }

    @Test("a section that is missing, a color that is another, and text that cannot be read are found")
    func different() async throws {
        let html = SamplePage.html()
        let start = try #require(html.firstRange(of: "<section><h2>Latches"))
        let end = try #require(html[start.upperBound...].firstRange(of: "</section>"))
        let missing = try await look(at: html.replacingCharacters(in: start.lowerBound..<end.upperBound))
        #expect(missing.exit == 1)
        for name in ["status-360.png", "status-768.png", "status-1280.png", "status-1280-dark.png"] {
            #expect(missing.output.contains("\(name) was "), "\(missing.output)\(missing.errors)")
        }
        let pale = try await look(
            at: html.replacing("--badback:#fbe1e2", with: "--badback:#fff").replacing(
                "--dim:#5b6470", with: "--dim:#aab0b8"))
        #expect(pale.exit == 1)
        #expect(pale.output.contains("status-1280.png differs by "), "\(pale.output)\(pale.errors)")
        #expect(pale.output.contains("360 px, light: contrast "))
        #expect(!pale.output.contains("dark"))
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<Index>) -> String {
        String(self[..<range.lowerBound]) + self[range.upperBound...]
    }
}
